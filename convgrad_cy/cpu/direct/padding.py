"""Walks cut where taps begin or cease to lie inside the source, so that padding is not multiplied, or not copied.

Large dilations put whole taps of many positions into padding. fprop and dgrad are cut into ranges of positions with the
same taps, wgrad into taps, each with its range of positions. Long rows are cut into their ends and what lies between.
"""

from itertools import chain, pairwise, product
from math import prod
from operator import mul

#: Products that may be left of those with padding, for it to be worth while; walks; and positions that each must have.
#: Where taps are near each other, a box has positions of all parts, and leaves out most of it (pyx/direct/zones.pxd).
MOST_LEFT, MOST_WALKS, LEAST_POSITIONS = 0.82, 64, 32
MOST_LEFT_UNDILATED = 0.5
#: Where taps reach less far than this part of the positions, little of them can lie in padding.
LEAST_REACH = 0.25
#: The part of a row's positions that may see padding, for these to be worth walks of their own.
MOST_ENDS = 0.125


def _ranges(axis):
    """For each tap the positions (begin, end) at which it lies inside the source."""
    for tap in range(axis.taps):
        first = axis.source_begin + tap * axis.source_tap
        begin = min(max(0, -(first // axis.source_step)), axis.positions)
        end = min(axis.positions, -((first - axis.source_size) // axis.source_step))
        yield begin, max(begin, end)


def _by_positions(axis):
    """Parts of the axis whose positions all have the same taps; none where some position has no tap."""
    ranges = list(_ranges(axis))
    parts = []
    for begin, end in pairwise(sorted({0, axis.positions, *(edge for pair in ranges for edge in pair)})):
        taps = [tap for tap, (first, last) in enumerate(ranges) if first <= begin and end <= last]
        if not taps:
            return []
        parts.append(axis.part(begin, end, taps[0], len(taps)))
    return parts


def _by_taps(axis):
    """Parts of the axis of one tap each; none where some tap has no position."""
    ranges = list(_ranges(axis))
    if any(begin == end for begin, end in ranges):
        return []
    return [axis.part(begin, end, tap, 1) for tap, (begin, end) in enumerate(ranges)]


def _saves_products(walks, counts, axes):
    """Whether few enough of the products are left without those with padding."""
    inside = {axis: sum([end - begin for begin, end in _ranges(axis)]) for axis in axes}
    left = MOST_LEFT if any(map(_is_dilated, axes)) else MOST_LEFT_UNDILATED
    seen = every = 0
    for walk, count in zip(walks, counts, strict=True):
        seen += count * prod([inside[axis] for axis in walk])
        every += count * prod([axis.positions * axis.taps for axis in walk])
    return seen <= left * every


def _reaches_far(axis):
    return (axis.taps - 1) * abs(axis.source_tap) >= LEAST_REACH * axis.positions * axis.source_step


def _is_dilated(axis):
    return axis.taps > 1 and abs(axis.source_tap) > axis.source_step


def without_padding(walks, counts, batch, by_taps):
    """For each walk its parts, cut if that saves enough products and leaves enough positions; ``by_taps`` in wgrad.

    ``counts``: how many walks like each there are.
    """
    axes, whole = {axis for walk in walks for axis in walk}, [[walk] for walk in walks]
    if sum(counts) > MOST_WALKS or not any(map(_reaches_far, axes)) or max(axis.taps for axis in axes) > MOST_WALKS:
        return whole
    if not _saves_products(walks, counts, axes):
        return whole
    parts = [[(_by_taps if by_taps else _by_positions)(axis) for axis in walk] for walk in walks]
    numbers = [prod(map(len, walk)) for walk in parts]
    if not all(numbers) or sum(map(mul, numbers, counts)) > MOST_WALKS:
        return whole
    cut = [[*product(*walk)] for walk in parts]
    positions = batch * min(prod(axis.positions for axis in walk) for walk in chain(*cut))
    return cut if positions >= LEAST_POSITIONS else whole


def _without_ends(walk):
    """Parts of the walk, with all of its taps, of which one sees no padding; none where other axes do."""
    *outer, row = walk
    if any(axis.is_padded() for axis in outer):
        return []
    ranges = list(_ranges(row))
    begin, end = max(first for first, _ in ranges), min(last for _, last in ranges)
    if row.positions - max(0, end - begin) > MOST_ENDS * row.positions:
        return []
    edges = sorted({0, begin, end, row.positions})
    return [(*outer, row.part(*edge, 0, row.taps)) for edge in pairwise(edges)]


def without_ends(walks):
    """For each walk its parts: positions of a row between its ends, if all walks can be cut so, and the ends."""
    parts = [_without_ends(walk) if all(axis.taps for axis in walk) else [] for walk in walks]
    return parts if all(parts) else [[walk] for walk in walks]
