"""The sum as the definition has it, in windows of the source and blocks of the filter (``pyx/``).

The last family: it declines nothing. Small groups side by side (``small_groups.py``) are a form of its plans.
"""

from math import prod

from ...problem import DGRAD, WGRAD
from ..job import Job
from ..patches import is_dense, taps_as_channels
from ..task import Task
from .mirrored import is_better_mirrored
from .plan import outline
from .plan import plan as make_plan


def _merged(problem, source, target):
    """A pointwise problem in one dimension, where the spatial axes of both tensors are one in memory too."""
    if problem.is_pointwise():
        for tensor in (source, target):
            *_, depth, height, width = tensor.strides
            if height != width * tensor.shape[5] or depth != height * tensor.shape[4]:
                return problem, source, target
        row = (*source.shape[:3], 1, 1, prod(source.shape[3:]))
        return problem.merged(), source.reshape(row), target.reshape((*target.shape[:3], *row[3:]))
    return problem, source, target


def _with_fewer_taps(task):
    """The task with the taps of wgrad as channels, where each image is one patch."""
    source, filter, target = task.tensors
    problem, joined, source = taps_as_channels(task.problem, filter.swapaxes(1, 2), source)
    return task._replace(problem=problem, tensors=(source, joined.swapaxes(1, 2), target))


def suits(task):
    """None: the definition computes whatever there is."""
    return None


def job(task, rest=None):
    """The ``Job`` of a task."""
    operation, _, dtype, algorithm, _, _, here = task
    if operation == WGRAD and is_dense(task.problem):
        task = _with_fewer_taps(task)
    mirrored = operation == WGRAD and is_better_mirrored(task.problem, here, dtype.compute_itemsize)
    if operation == DGRAD or mirrored:
        task = task.turned()
    _, problem, _, _, places, (source, filter, target), _ = task
    chunk = None
    if operation == DGRAD:
        joined, filter, target = taps_as_channels(problem, filter, target)
        if joined != problem:  # the order of each sum stays as it is for other layouts
            chunk = outline(operation, problem, dtype, False, here).blocks.chunk
            problem = joined
    problem, source, target = _merged(problem, source, target)
    channel = 1 if source.shape[2] == 1 < source.shape[1] else 2  # of groups of one channel, the groups are channels
    positions_adjacent = abs(source.strides[5]) < abs(source.strides[channel])
    made = make_plan(operation, problem, dtype, positions_adjacent, here, mirrored, chunk)
    kernel = "wgrad" if operation == WGRAD else "correlate"
    return Job(kernel, made, Task(operation, problem, dtype, algorithm, places, (source, filter, target), here))
