"""Long filters of wgrad, whose taps are split into blocks, so that the sums of a task stay in the cache.

A task holds the sums of all of its taps. Without a split, each thread and each slice would hold the sums of all taps of
the filter, and these would not fit in the cache.
"""

from itertools import product

from ...problem import balanced_size

#: Minimum channels of the source in a block of the filter, unless the source has fewer (order.chunk_of).
LEAST_CHANNELS = 4


def most_taps(sums):
    """Maximum taps of a task."""
    tuning = sums.tuning
    tap = max(min(sums.channels, LEAST_CHANNELS), 1) * sums.itemsize
    row = max(balanced_size(sums.outputs, tuning.wgrad_outputs, sums.strip), sums.lanes)
    # The elements that the taps read must leave room for positions in a window.
    return max(1, min(tuning.large_filter_bytes // (tap * row), tuning.window_bytes // (2 * tap)))


def _split(axis, max_taps):
    """Parts of an axis with at most ``max_taps`` taps each."""
    size = balanced_size(axis.taps, max_taps)
    return [axis.part(0, axis.positions, tap, min(size, axis.taps - tap)) for tap in range(0, axis.taps, size)]


def split_taps(sums, parts):
    """(sums, parts): the walks of ``parts``, split into blocks of taps. A block has whole rows of taps if possible."""
    max_taps = most_taps(sums)
    if sums.taps <= max_taps:
        return sums, parts
    split = []
    for own in parts:
        pieces = []
        for walk in own:
            axes, left = [], max_taps
            for axis in walk[::-1]:
                axes.append(_split(axis, left))
                left = max(1, left // axes[-1][0].taps)
            pieces += product(*axes[::-1])
        split.append(pieces)
    return sums.parted(split), split
