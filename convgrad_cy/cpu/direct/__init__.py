"""The direct sum of the definition, computed from windows of the source and blocks of the filter (``pyx/direct/``).

It is the last family, and refuses no task.
"""

from functools import partial

from ...problem import DGRAD, WGRAD
from ..plan.job import Job
from ..plan.pipeline import Pipeline
from ..plan.sum_problem import sum_problem_of
from ..rewrites.folded_taps import folds_in_wgrad, taps_as_channels
from ..rewrites.views import are_positions_adjacent, merged
from .details import details
from .mirrored import is_better_mirrored
from .order import order_of
from .packed import most_shared as most_shared
from .plan import plan as make_plan


def _with_fewer_taps(task):
    """The wgrad task with taps folded into channels, where each image is one patch (``folds_in_wgrad``)."""
    source, filter, target = task.tensors
    problem, joined, source = taps_as_channels(task.problem, filter.swapaxes(1, 2), source)
    return task.viewing(source, joined.swapaxes(1, 2), target)._replace(problem=problem)


def refusal(task):
    """None: the direct sum computes every task."""
    return None


def pipeline(task, rest=None, order=None):
    """One kernel: the ``Job`` of a task. ``order``: the ``Order`` of fprop or dgrad, if it is not the problem's own."""
    operation, _, dtype, _, _, machine = whole = task
    if operation == WGRAD and folds_in_wgrad(task.problem):
        task = _with_fewer_taps(task)
    mirrored = operation == WGRAD and is_better_mirrored(task.problem, machine.tile, dtype.compute_itemsize)
    if operation == DGRAD or mirrored:
        task = task.turned()
    problem, (source, filter, target) = task.problem, task.tensors
    if operation == DGRAD:
        joined, filter, target = taps_as_channels(problem, filter, target)
        if joined != problem:
            # Only some layouts can fold taps. They keep the order of the unfolded problem, so the bits stay the same.
            order = order or order_of(sum_problem_of(operation, problem, dtype, machine.tile, True))
            problem = joined
    problem, source, target = merged(problem, source, target)
    adjacent = are_positions_adjacent(source, target)
    made = make_plan(operation, problem, dtype, adjacent, machine, mirrored, order)
    seen = task.viewing(source, filter, target)._replace(problem=problem)
    kernel = "wgrad" if operation == WGRAD else "correlate"
    return Pipeline((Job(kernel, made, seen, partial(details, whole)),))
