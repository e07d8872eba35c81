"""Long filters of wgrad, whose taps are cut into blocks: a task holds the sums of all taps that it has.

Uncut, each thread, and each slice of a sum, would have as many as the filter has taps, and they would leave the cache.
"""

from itertools import product

from ...problem import even

#: A block of the filter has at least so many channels of the source, where there are so many (order.chunk_of).
LEAST_CHANNELS = 4


def most_taps(case):
    """Taps that a task may have."""
    tuning = case.tuning
    tap = max(min(case.channels, LEAST_CHANNELS), 1) * case.itemsize
    row = max(even(case.outputs, tuning.wgrad_outputs, case.strip), case.lanes)
    # What they see has to leave room for positions in a window.
    return max(1, min(tuning.large_filter_bytes // (tap * row), tuning.window_bytes // (2 * tap)))


def _cut(axis, most):
    """Parts of an axis, of at most so many taps each."""
    size = even(axis.taps, most)
    return [axis.part(0, axis.positions, tap, min(size, axis.taps - tap)) for tap in range(0, axis.taps, size)]


def cut_taps(case, parts):
    """The case and the ``parts`` of its walks with their taps cut, whole rows of them as long as there is room."""
    most = most_taps(case)
    if case.taps <= most:
        return case, parts
    cut = []
    for own in parts:
        pieces = []
        for walk in own:
            axes, left = [], most
            for axis in walk[::-1]:
                axes.append(_cut(axis, left))
                left = max(1, left // axes[-1][0].taps)
            pieces += product(*axes[::-1])
        cut.append(pieces)
    return case.parted(cut), cut
