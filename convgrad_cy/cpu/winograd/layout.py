"""The order in memory in which Winograd's algorithm wants its arrays."""

import numpy as np

from ...arrays import NUMPY
from ...problem import DGRAD, FPROP
from ..rewrites.copies import Axes
from .walks import has_parts_of_filter, most_added, skips

#: Axes from the outermost to the innermost: of a tensor (N, G, C, D, H, W) with channels last; of a filter
#: (G, O, C, D, H, W) with taps first and, of each tap, output or input channels adjacent.
_CHANNELS_LAST, _OUTPUTS_LAST, _INPUTS_LAST = (0, 3, 4, 5, 1, 2), (3, 4, 5, 0, 2, 1), (3, 4, 5, 0, 1, 2)


def _ordered(array, axes):
    """An array of the same shape, with its axes in memory in this order."""
    made = NUMPY.empty(tuple(array.shape[axis] for axis in axes), array.dtype)
    return made.transpose(np.argsort(axes))


def _is_nearest(array, axis, others):
    """Whether neighbours on an axis are nearer to each other in memory than those on others."""
    others = [other for other in others if array.shape[other] > 1]
    return bool(others) and all(abs(array.strides[axis]) < abs(array.strides[other]) for other in others)


def reorders(operation, problem):
    """Whether x, w and y are brought into another order in some layout."""
    of_x, of_y = skips(operation, problem)
    return of_x, has_parts_of_filter(operation, problem), of_y


def gathered(operation, problem, tensors, keeps_filter, most_reads):
    """The tensors x, w and y; in the place of those whose neighbours are taken apart, arrays of another order.

    Elements that lie apart are read and written one by one, and each line of the cache again for every walk. So where
    walks skip adjacent positions, channels become last, and where they have some of a filter's adjacent taps, taps
    become first. Not so where their sums are added, and all taps, side by side, are read at once: by a step that keeps
    the transformed filter for all tasks once, else for each walk; up to ``most_reads`` times.
    """
    x, w, y = tensors
    skipped = [
        is_skipped and _is_nearest(tensor, 5, (2,))
        for is_skipped, tensor in zip(skips(operation, problem), (x, y), strict=True)
    ]
    reads = 1 if keeps_filter else most_added(operation, problem)
    together = operation == FPROP and reads <= most_reads and Axes(w.shape[3:], w.strides[3:]).nested() == w.itemsize
    parted = has_parts_of_filter(operation, problem) and any(
        w.shape[axis] > 1 and _is_nearest(w, axis, (1, 2)) for axis in (3, 4, 5)
    )
    return [
        _ordered(x, _CHANNELS_LAST) if skipped[0] else x,
        _ordered(w, _INPUTS_LAST if operation == DGRAD else _OUTPUTS_LAST) if parted and not together else w,
        _ordered(y, _CHANNELS_LAST) if skipped[1] else y,
    ]
