"""Many small groups side by side: the lanes of a vector are outputs of different groups (``pyx/small_groups/``).

Each channel needs a vector of lanes. It is made from vectors of the source: in registers by permutation if the machine
has suitable instructions, else by a copy.
"""

from ...problem import DGRAD, WGRAD
from ..plan.job import Job
from ..plan.task import Task
from ..rewrites.views import are_positions_adjacent, merged
from .plan import found
from .plan import most_shared as most_shared
from .plan import plan as make_plan


def _seen(task):
    """The task as a kernel views it, and the arguments of ``found``."""
    operation, _, dtype, algorithm, places, _, here = seen = task.turned() if task.operation == DGRAD else task
    source, filter, target = seen.tensors
    problem, source, target = merged(seen.problem, source, target)
    seen = Task(operation, problem, dtype, algorithm, places, (source, filter, target), here)
    return seen, (operation, problem, dtype, are_positions_adjacent(source), here)


def refusal(task):
    """The reason why this family does not take a task, or None."""
    if task.algorithm == "winograd":
        return "the call asks for the algorithm 'winograd'"
    return "there is one group" if task.problem.groups == 1 else found(*_seen(task)[1]).reason


def job(task, rest=None):
    """The ``Job`` of a task."""
    seen, arguments = _seen(task)
    return Job("wgrad" if task.operation == WGRAD else "correlate", make_plan(*arguments), seen)
