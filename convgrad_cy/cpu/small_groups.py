"""The plan of many small groups side by side (pyx/small_groups/lanes.pxd)."""

from math import prod

from .direct.boxes import WANTED_TASKS, box_of, even
from .machines import LINE_BYTES
from .tile import tile_cycles

#: The copies of a task of small groups side by side: what is wanted, and beyond which the general way is taken.
LANE_BYTES, MOST_LANE_BYTES = 512 * 1024, 4 * 1024 * 1024
#: Where source and target serve as they are: what a task writes, and what its lanes have of a row of positions. More
#: lanes are longer pieces of memory, but a row should stay in the first level of the cache until all taps have seen it;
#: vectors narrower than a line, which walk along it more than once, gain more from the longer pieces.
IN_PLACE_BYTES, ROW_BYTES, NARROW_ROW_BYTES = 64 * 1024, 8 * 1024, 48 * 1024
#: The same in wgrad: what its lanes have of a position. The tile reads some rows for one vector after the other.
POSITION_BYTES = 1024
#: Channels of a group in wgrad: the sums of a group are their square.
MOST_SUMMED_CHANNELS = 4
#: Channels of a group up to which, channels first, the phases of a dgrad pay for their copy.
MOST_SHARING_CHANNELS = 4
#: Channels of a group for each of which fprop and dgrad of one walk copy a vector.
MOST_EXPANDED_CHANNELS = 4
#: Products that take as long as a tile's own work for each sum; positions adjacent, rows are copied for it, too.
SHORT_SUM, SHORT_SUM_ADJACENT = 9, 18
#: Entries of a table of taps (pyx/small_groups/runs.pxd), of all runs together.
MOST_TABLE = 65536


def _lane_extents(walks, channels, lanes, itemsize):
    """Extents of boxes (depth, height, width) for which a task's copies have LANE_BYTES; None if they are too large."""
    walks = [walk for walk in walks if walk[2].taps] or walks
    largest = max(walks, key=lambda walk: prod(axis.positions for axis in walk))
    most = prod(axis.positions for axis in largest)
    while True:
        _, *extents = box_of(largest, 1, most)
        seen = made = 1
        for i, extent in enumerate(extents):
            axes = [walk[i] for walk in walks]
            ends = [axis.source_begin + t * axis.source_tap for axis in axes for t in (0, max(axis.taps, 1) - 1)]
            span = (extent - 1) * axes[0].source_step + max(ends) - min(ends) + 1
            seen *= min(axes[0].source_size, span)
            made *= (extent + 1) * axes[0].target_step
        size = (seen * channels + made) * lanes * itemsize
        if size <= LANE_BYTES:
            return extents
        if most == 1:
            return extents if size <= MOST_LANE_BYTES else None
        most = max(1, most // 2)


def _is_worthwhile(case, sums_positions):
    """Whether groups side by side are faster."""
    walks, channels = case.walks, case.channels
    half = max(1, case.lanes // 2)
    if case.groups == 1 or not 1 <= channels <= half or not 1 <= case.outputs <= half:
        return False
    if sums_positions and channels > MOST_SUMMED_CHANNELS:
        return False
    # A copy with a vector for each channel may cost more than the general way; but not in wgrad, nor where phases of a
    # dgrad share it.
    shared = case.count > 1 and not (case.positions_adjacent and channels > MOST_SHARING_CHANNELS)
    if max(channels, case.outputs) > 1 and not sums_positions and not shared and not _expands_well(case):
        return False
    return channels * max((2 * walk[2].taps + 1) * walk[2].taps * walk[1].taps for walk in walks) <= MOST_TABLE


def _expands_well(case):
    """Whether a copy with a vector for each channel, in fprop or dgrad, takes less than the general way.

    The tile needs two loads for each product of vectors; that across positions, many of whose vectors short rows leave
    empty, has its own work for each sum.
    """
    channels, outputs, lanes, row = case.channels, case.outputs, case.lanes, case.walks[-1][2].positions
    machine, terms = case.machine.unsplit(), case.channels * max(case.taps, 1)
    # A vector of lanes made of more than two of channels, or of groups that lie across vectors, takes too long.
    # One output for each group is worth even that: it leaves the general way few rows of a tile.
    if channels > MOST_EXPANDED_CHANNELS or lanes % outputs or 1 < outputs < channels:
        return False
    short = SHORT_SUM_ADJACENT if case.positions_adjacent else SHORT_SUM
    general = tile_cycles(outputs, row, machine, case.itemsize) * (1 + short / terms)
    return row * outputs / lanes <= general


def lanewise(case, sums_positions, in_place):
    """(extents of boxes, lanes of a task, slices) for many small groups side by side, or None for the general way.

    ``sums_positions``: in wgrad. ``in_place``: source and target can serve as they are.
    """
    if not _is_worthwhile(case, sums_positions):
        return None
    walk, lanes, strip, outputs = case.walks[-1], case.lanes, case.strip, case.outputs
    total = case.groups * outputs
    for width in (strip, strip // 2, lanes):
        block = min(width // outputs * outputs, total)
        extents = _lane_extents(case.walks, case.channels, -(-block // lanes) * lanes, case.itemsize)
        if extents == [axis.positions for axis in walk]:
            break
    if extents is None:
        return None
    # Neighbouring tasks should not write to the same cache line; and processors fetch two at once.
    slices, line = 1, LINE_BYTES // case.itemsize
    if sums_positions:  # as many slices in all layouts
        wide = even(total, POSITION_BYTES // case.itemsize, line) if case.channels == outputs == 1 else block
        boxes = case.batch * prod(-(-axis.positions // n) for axis, n in zip(case.walks[0], extents, strict=True))
        slices = max(1, min(-(-WANTED_TASKS // -(-total // wide)), boxes))
        if in_place and total % lanes == 0:
            return extents, wide, slices
    elif in_place and total % lanes == 0:
        row = walk[2].positions * walk[2].source_step
        row_bytes = NARROW_ROW_BYTES if case.machine.vector_bytes < LINE_BYTES else ROW_BYTES
        block = even(total, max(2 * line, row_bytes // (row * case.itemsize)), line)
        extents = box_of(walk, 1, IN_PLACE_BYTES // (block * case.itemsize))[1:]
    return extents, block, slices
