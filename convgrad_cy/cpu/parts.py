"""Parts of a result, such as blocks of a Dask array, that are computed by separate calls.

Together they are bitwise identical to the result of one call for the whole problem. For this, the family and the order
of each sum are chosen for the whole problem. Everything else is chosen for the part.
"""

from dataclasses import replace

from ..problem import DGRAD
from . import direct, families, long_sums, small_groups
from .direct.order import Order, order_of
from .plan.sum_problem import sum_problem_of
from .rewrites import overlaps
from .rewrites.reached import without_unreached_taps


def ready(task, whole):
    """The work of a FPROP or DGRAD task with the algorithm "direct". It computes a part of the problem ``whole``.

    The task's problem may differ from ``whole`` in the batch, in the extents of x and y, and in the padding.
    """
    narrowed = without_unreached_taps(task._replace(problem=whole)).problem
    return _pipeline(without_unreached_taps(task, whole), narrowed).ready()


def _pipeline(task, whole):
    """The pipeline of a part of ``whole``. Both are already without the taps that reach no element of the whole x."""

    def order(problem):
        """The ``Order`` of a problem for the task's operation."""
        return order_of(sum_problem_of(task.operation, problem, task.dtype, task.machine.tile, task.operation == DGRAD))

    # A part with one position has stride 1. But the family ``overlaps`` splits the taps by the stride of the whole.
    task = task._replace(problem=replace(task.problem, stride=whole.stride))
    _, family = families.chosen(task._replace(problem=whole))
    if family is long_sums or (family is small_groups and small_groups.refusal(task) is None):
        return family.pipeline(task)
    if family is small_groups:  # It refuses the part, so direct computes it in the order of small groups.
        return direct.pipeline(task, order=Order(whole.channels(task.operation == DGRAD)[0], pairs=False))
    if family is overlaps:
        cells = overlaps.stepped(whole)
        orders = (order(overlaps.inner_problem(cells, parts)) for parts in overlaps.combinations(cells))

        def rest(inner):  # ``overlaps.pipeline`` calls it once for each combination, in the order of ``combinations``
            return direct.pipeline(inner, order=next(orders))

        return overlaps.pipeline(task, rest, overlaps.has_patches(whole))
    return direct.pipeline(task, order=order(whole))
