"""A part of a result that is computed by itself, such as a block of a Dask array, with the bits of one whole call.

The family and the order of each sum follow from the whole problem. Everything else follows from the part.
"""

from dataclasses import replace

from ..problem import DGRAD
from . import direct, families, long_sums, small_groups
from .direct.order import Order, order_of
from .plan.sum_problem import sum_problem_of
from .rewrites import overlaps
from .rewrites.reached import without_unreached_taps


def ready(task, whole):
    """The work of a FPROP or DGRAD task with the algorithm "direct", whose problem is a part of the problem ``whole``.

    The two may differ in the batch, in the extents of x and y, and in the padding.
    """
    narrowed = without_unreached_taps(task._replace(problem=whole)).problem
    return _pipeline(without_unreached_taps(task, whole), narrowed).ready()


def _pipeline(task, whole):
    """The pipeline for ``ready``, without the taps that the whole does not reach."""

    def order(problem):
        return order_of(sum_problem_of(task.operation, problem, task.dtype, task.machine.tile, task.operation == DGRAD))

    # The problem of a part of one position has stride 1, but the stride decides how overlaps divides the taps.
    task = task._replace(problem=replace(task.problem, stride=whole.stride))
    _, family = families.chosen(task._replace(problem=whole))
    if family is long_sums or (family is small_groups and small_groups.refusal(task) is None):
        return family.pipeline(task)
    if family is small_groups:  # it refuses the part. Direct adds the terms in its order then, one by one.
        return direct.pipeline(task, order=Order(whole.channels(task.operation == DGRAD)[0], pairs=False))
    if family is overlaps:
        cells = overlaps.stepped(whole)
        orders = [order(overlaps.inner_problem(cells, parts)) for parts in overlaps.combinations(cells)]

        def rest(inner):
            return direct.pipeline(inner, order=orders.pop(0))

        return overlaps.pipeline(task, rest, overlaps.has_patches(whole))
    return direct.pipeline(task, order=order(whole))
