"""Walks split at the edges of padding, so that padding is not multiplied, or not copied.

With large dilations, whole taps of many positions lie in padding. fprop and dgrad are split into ranges of positions
with the same taps, wgrad into single taps, each with its range of positions.
"""

from itertools import chain, pairwise, product
from math import prod
from operator import mul


def _ranges(axis):
    """For each tap, the range (begin, end) of positions at which it lies inside the source."""
    for tap in range(axis.taps):
        first = axis.source_begin + tap * axis.source_tap
        begin = min(max(0, -(first // axis.source_step)), axis.positions)
        end = min(axis.positions, -((first - axis.source_size) // axis.source_step))
        yield begin, max(begin, end)


def _by_positions(axis):
    """Parts of the axis, each with the same taps at all positions; empty if some position has no tap."""
    ranges = list(_ranges(axis))
    parts = []
    for begin, end in pairwise(sorted({0, axis.positions, *chain(*ranges)})):
        first, after = _taps_at(axis, begin)
        if first >= after:
            return []
        parts.append(axis.part(begin, end, first, after - first))
    return parts


def _taps_at(axis, position):
    """The range (first, end) of the taps that lie inside the source at a position."""
    at, tap = axis.source_begin + position * axis.source_step, axis.source_tap
    if tap < 0:  # count from the other end of the source
        at, tap = axis.source_size - 1 - at, -tap
    tap = tap or 1  # an axis with at most one tap may have steps of 0
    return max(0, -(at // tap)), min(axis.taps, -((at - axis.source_size) // tap))


def _by_taps(axis):
    """Parts of the axis with one tap each; empty if some tap has no position."""
    ranges = list(_ranges(axis))
    if any(begin == end for begin, end in ranges):
        return []
    return [axis.part(begin, end, tap, 1) for tap, (begin, end) in enumerate(ranges)]


def _products(axis):
    """Number of pairs of a position and a tap that lies inside the source at this position."""
    if not axis.is_padded():
        return axis.positions * axis.taps
    return sum([end - begin for begin, end in _ranges(axis)])


def _saves_products(walks, counts, axes, tuning):
    """Whether splitting saves enough products: the share of products without padding must be small."""
    inside = {axis: _products(axis) for axis in axes}
    left = tuning.left_products if any(map(_is_dilated, axes)) else tuning.left_products_undilated
    seen = every = 0
    for walk, count in zip(walks, counts, strict=True):
        seen += count * prod([inside[axis] for axis in walk])
        every += count * prod([axis.positions * axis.taps for axis in walk])
    return seen <= left * every


def _reaches_far(axis, least):
    return (axis.taps - 1) * abs(axis.source_tap) >= least * axis.positions * axis.source_step


def _is_dilated(axis):
    return axis.taps > 1 and abs(axis.source_tap) > axis.source_step


def without_padding(walks, counts, batch, by_taps, tuning):
    """The parts of each walk, split if this saves enough products and leaves enough positions; else the walk itself.

    ``counts``: the number of walks of each shape class. ``by_taps``: split by taps, as for wgrad.
    """
    axes, whole = {axis for walk in walks for axis in walk}, [[walk] for walk in walks]
    most, reach = tuning.most_parts, tuning.least_reach
    if sum(counts) > most or not any(_reaches_far(axis, reach) for axis in axes):
        return whole
    if max([axis.taps for axis in axes]) > most:
        return whole
    if not _saves_products(walks, counts, axes, tuning):
        return whole
    of_axis = {axis: (_by_taps if by_taps else _by_positions)(axis) for axis in axes}
    parts = [[of_axis[axis] for axis in walk] for walk in walks]
    numbers = [prod(map(len, walk)) for walk in parts]
    if not all(numbers) or sum(map(mul, numbers, counts)) > most:
        return whole
    split = [[*product(*walk)] for walk in parts]
    positions = batch * min(prod(axis.positions for axis in walk) for walk in chain(*split))
    return split if positions >= tuning.least_positions else whole
