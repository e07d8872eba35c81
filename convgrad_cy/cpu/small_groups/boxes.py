"""The boxes and lanes of a task, and which of them its sums depend on."""

from math import lcm, prod
from typing import NamedTuple

from ...problem import WGRAD, even
from ..direct.boxes import box_of, span
from ..machines import LINE_BYTES
from ..shared import side_by_side
from .spread import serve_as_they_are


def lanes_bytes(case, spread, block, taps):
    """Bytes of a packed filter of all walks, or of one slice's sums in wgrad, in such blocks of lanes."""
    words, of_vector = (case.channels, case.lanes) if spread is None else (spread.words, spread.groups * case.outputs)
    elements = side_by_side(case.groups * case.outputs, block, of_vector, case.lanes)
    return elements * taps * words * case.itemsize


class Cut(NamedTuple):
    """How the work is cut into tasks: the fields are those of ``Blocks`` but for the extents of boxes."""

    extents: list  # depth, height, width
    outputs: int  # lanes of a task
    slices: int = 1
    heights: int = 1
    bands: int = 1


def _lane_bytes(case, extents, seen, lanes):
    """Bytes of a task's copies, which have so many elements for a position of the source, and of the target."""
    walks = [walk for walk in case.walks if walk[2].taps] or case.walks
    read = made = 1
    for i, extent in enumerate(extents):
        axes = [walk[i] for walk in walks]
        read *= min(axes[0].source_size, span(axes, extent)[1])
        made *= (extent + 1) * axes[0].target_step
    return (read * seen + made * lanes) * case.itemsize


def _lane_extents(case, seen, lanes):
    """Extents of boxes for which a task's copies have the tuning's ``lane_bytes``; None if too large."""
    tuning = case.tuning
    walks = [walk for walk in case.walks if walk[2].taps] or case.walks
    largest = max(walks, key=lambda walk: prod(axis.positions for axis in walk))
    most = prod(axis.positions for axis in largest)
    while True:
        _, *extents = box_of(largest, 1, most)
        size = _lane_bytes(case, extents, seen, lanes)
        if size <= tuning.lane_bytes:
            return extents
        if most == 1:
            return extents if size <= tuning.most_lane_bytes else None
        most = max(1, most // 2)


def _copied_bytes(case, positions_adjacent):
    """What lanes have of a position that a task copies for the spreading tile; in wgrad boxes decide about sums."""
    if case.operation == WGRAD:
        return case.tuning.summed_copies_bytes
    return case.tuning.spread_bytes if positions_adjacent else case.tuning.position_bytes


def _copying(case, spread, positions_adjacent):
    """(extents of boxes, lanes of a task) where the task copies what it sees; no extents where that is too much."""
    outputs, total = case.outputs, case.groups * case.outputs
    if spread is not None:
        whole = spread.groups * outputs  # lanes of a vector
        block = even(total, _copied_bytes(case, positions_adjacent) // case.itemsize // whole * whole, whole)
        seen = block // outputs * spread.words + case.lanes
        return _lane_extents(case, seen, block + case.lanes), block
    for width in (case.strip, case.strip // 2, case.lanes):
        block = min(width // outputs * outputs, total)
        lanes = _whole(case, block)
        extents = _lane_extents(case, case.channels * lanes, lanes)
        if extents == [axis.positions for axis in case.walks[-1]]:
            break
    return extents, block


def _whole(case, lanes):
    """Lanes of whole vectors."""
    return -(-lanes // case.lanes) * case.lanes


def _line_block(case):
    """Lanes of depthwise, channels last, that are whole cache lines of channels."""
    return even(case.groups, case.tuning.position_bytes // case.itemsize, LINE_BYTES // case.dtype.itemsize)


def _lines(case, threads):
    """(extents, lanes) of fprop or dgrad with such lanes; None where that leaves too few tasks."""
    block = _line_block(case)
    lanes = _whole(case, block)
    extents = _lane_extents(case, lanes, lanes)
    if extents is None:
        return None
    boxes = prod(-(-axis.positions // n) for axis, n in zip(case.walks[-1], extents, strict=True))
    tasks = case.batch * boxes * -(-case.groups // block)
    return (extents, block) if tasks >= max(case.tuning.wanted_tasks, threads) else None


def _in_place(case):
    """(extents of boxes, lanes of a task) of fprop or dgrad where source and target serve as they are."""
    # Neighbouring tasks should not write to the same cache line; and processors fetch two at once.
    walk, line, tuning = case.walks[-1], LINE_BYTES // case.itemsize, case.tuning
    if walk[0].taps * walk[1].taps > 1:
        lanes = tuning.row_bytes // (walk[2].positions * walk[2].source_step * case.itemsize)
    else:
        lanes = tuning.lone_row_bytes // case.itemsize
    block = even(case.groups * case.outputs, max(2 * line, lanes), line)
    return box_of(walk, 1, tuning.in_place_bytes // (block * case.itemsize))[1:], block


def cut_correlation(case, spread, positions_adjacent, in_place, threads):
    """The ``Cut`` of fprop or dgrad, or None where a copy would be too large."""
    alone = case.channels == case.outputs == 1
    extents, block = _copying(case, spread, positions_adjacent)
    if extents is None:
        return None
    if in_place:
        extents, block = _in_place(case)
    elif alone and not positions_adjacent and (lines := _lines(case, threads)) is not None:
        extents, block = lines
    return Cut(extents, block)


def _heights(case, spread):
    """Rows of positions that are summed before the next vector of lanes: its line is in the cache for that one."""
    _, height, width = case.walks[0]
    position = case.tuning.position_bytes if spread is None else case.tuning.spread_bytes
    position = min(case.groups * case.outputs * case.itemsize, position)
    row = height.source_step * width.source_step * width.positions * position
    return max(1, case.tuning.summed_rows_bytes // max(row, 1))


def _banded(case, cut, threads):
    """The ``Cut`` of depthwise wgrad, channels last, where its lanes are whole cache lines of channels.

    Boxes of so many lanes have fewer rows. Those that were one box are summed one below the other, in one slice, so no
    sum has another order.
    """
    extents, wide = cut.extents, _line_block(case)
    _, height, width = case.walks[0]
    tasks = cut.slices * -(-case.groups // wide)  # they are alike, so half as many as elsewhere will do
    if wide <= cut.outputs or tasks < max(case.tuning.wanted_tasks // 2, threads):
        return cut
    if extents[0] > 1 or extents[2] < width.positions:
        return cut
    whole = extents[1] == height.positions
    for rows in range(extents[1], 0, -1):
        # No row is summed with others than before, and the next of what was one box begins where it did.
        ends = rows == extents[1] or (rows % cut.heights == 0 and (whole or extents[1] % rows == 0))
        lower, lanes = [1, rows, extents[2]], _whole(case, wide)
        if ends and _lane_bytes(case, lower, lanes, lanes) <= case.tuning.lane_bytes:
            return cut._replace(extents=lower, outputs=wide, bands=-(-extents[1] // rows))
    return cut


def cut_accumulation(case, spread, positions_adjacent, in_place, threads):
    """The ``Cut`` of wgrad, or None where a copy would be too large: its sums depend on all but lanes and bands.

    Each lane is summed by itself, whatever others a task has.
    """
    total, line, tuning = case.groups * case.outputs, LINE_BYTES // case.itemsize, case.tuning
    extents, block = _copying(case, spread, positions_adjacent)
    if extents is None:
        return None
    wide = block
    if serve_as_they_are(case, spread):
        wide = even(total, tuning.position_bytes // case.itemsize, line)
    boxes = case.batch * prod(-(-axis.positions // n) for axis, n in zip(case.walks[0], extents, strict=True))
    widths = {block, wide, _line_block(case) if case.channels == case.outputs == 1 else block}
    room = case.most_scratch // max(lanes_bytes(case, spread, width, case.taps) for width in widths)
    slices = max(1, min(-(-tuning.wanted_tasks // -(-total // wide)), boxes, room))
    cut = Cut(extents, wide if in_place else block, slices, _heights(case, spread))
    cut = cut._replace(outputs=_for_threads(case, cut, threads, spread))
    lines = case.channels == case.outputs == 1 and not in_place and not positions_adjacent
    return _banded(case, cut, threads) if lines else cut


def _for_threads(case, cut, threads, spread):
    """Lanes of a task for so many threads, each slice of its own: whole vectors, of whole groups."""
    least = lcm(case.lanes, case.outputs) if spread is None else spread.groups * case.outputs
    total, block = case.groups * case.outputs, cut.outputs
    while (
        threads > case.tuning.tuned_threads and cut.slices * -(-total // block) < threads and block % (2 * least) == 0
    ):
        block //= 2
    return block
