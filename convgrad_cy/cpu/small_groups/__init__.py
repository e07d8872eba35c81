"""Many small groups at once: the lanes of a vector are outputs of several groups (``pyx/small_groups/``).

For each channel c of a group, the kernels need a vector that has in each lane the element of channel c of the lane's
group. With one channel and one output per group, the source in memory already consists of such vectors. Otherwise they
are made by a permutation in registers, or by a copy if the machine has no suitable instructions.
"""

from functools import partial

from ...problem import DGRAD, WGRAD
from ..direct.details import details
from ..plan.job import Job
from ..plan.pipeline import Pipeline
from ..rewrites.views import are_positions_adjacent, merged
from .plan import most_shared as most_shared
from .plan import outline_or_reason
from .plan import plan as make_plan


def _seen(task):
    """The task with the kernel's views of its operands, and the arguments of ``outline_or_reason``."""
    seen = task.turned() if task.operation == DGRAD else task
    source, filter, target = seen.tensors
    problem, source, target = merged(seen.problem, source, target)
    seen = seen.viewing(source, filter, target)._replace(problem=problem)
    return seen, (task.operation, problem, task.dtype, are_positions_adjacent(source, target), task.machine)


def refusal(task):
    """The reason why this family does not take a task, or None."""
    if task.algorithm == "winograd":
        return "the call asks for the algorithm 'winograd'"
    return "there is one group" if task.problem.groups == 1 else outline_or_reason(*_seen(task)[1]).reason


def pipeline(task, rest=None):
    """One kernel: the ``Job`` of a task."""
    seen, arguments = _seen(task)
    kernel = "wgrad" if task.operation == WGRAD else "correlate"
    return Pipeline((Job(kernel, make_plan(*arguments), seen, partial(details, task)),))
