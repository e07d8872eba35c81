"""The memory order of the arrays for Winograd's algorithm."""

from ...problem import DGRAD, FPROP
from ..plan.operand import Operand
from ..rewrites.views import nested
from .walks import has_parts_of_filter, most_added, skips

#: Memory orders, as axes from the outermost to the innermost: a tensor (N, G, C, D, H, W) with channels last; a filter
#: (G, O, C, D, H, W) with taps first and output channels, or input channels, adjacent.
_CHANNELS_LAST, _OUTPUTS_LAST, _INPUTS_LAST = (0, 3, 4, 5, 1, 2), (3, 4, 5, 0, 2, 1), (3, 4, 5, 0, 1, 2)


def _ordered(operand, axes):
    """A new operand of the same shape, with its axes in memory in this order."""
    return Operand.new(operand.view.shape, operand.view.dtype, axes)


def _is_nearest(array, axis, others):
    """Whether the stride of ``axis`` is smaller than the strides of all ``others`` with several elements."""
    others = [other for other in others if array.shape[other] > 1]
    return bool(others) and all(abs(array.strides[axis]) < abs(array.strides[other]) for other in others)


def reorders(operation, problem):
    """Whether x, w and y are reordered, each in at least one layout."""
    of_x, of_y = skips(operation, problem)
    return of_x, has_parts_of_filter(operation, problem), of_y


def gathered(operation, problem, operands, keeps_filter, most_reads):
    """The operands x, w and y. An operand is replaced by a new one in another memory order if walks skip its elements.

    Elements that are not adjacent are read and written one by one, and each walk touches all cache lines again. So if
    walks skip adjacent positions, x or y gets channels last. If a walk takes only some of the filter's adjacent taps,
    the filter gets taps first. The filter of fprop is not replaced if all taps of a channel are contiguous and are read
    at most ``most_reads`` times. They are read once if transformed filters are kept for all tasks, else once for each
    walk that is added.
    """
    x, w, y = [operand.view for operand in operands]
    skipped = [
        is_skipped and _is_nearest(tensor, 5, (2,))
        for is_skipped, tensor in zip(skips(operation, problem), (x, y), strict=True)
    ]
    reads = 1 if keeps_filter else most_added(operation, problem)
    together = operation == FPROP and reads <= most_reads and nested(w.shape[3:], w.strides[3:]) == w.itemsize
    parted = has_parts_of_filter(operation, problem) and any(
        w.shape[axis] > 1 and _is_nearest(w, axis, (1, 2)) for axis in (3, 4, 5)
    )
    of_filter = _INPUTS_LAST if operation == DGRAD else _OUTPUTS_LAST
    return [
        _ordered(operands[0], _CHANNELS_LAST) if skipped[0] else operands[0],
        _ordered(operands[1], of_filter) if parted and not together else operands[1],
        _ordered(operands[2], _CHANNELS_LAST) if skipped[1] else operands[2],
    ]
