"""Boxes and lanes of the tasks of small groups. A lane is an output channel of a group."""

from math import lcm, prod
from typing import NamedTuple

from ...problem import WGRAD, balanced_size
from ..direct.boxes import box_of, span
from ..machine import LINE_BYTES
from ..plan.shared import side_by_side
from .spread import serve_as_they_are


def lanes_bytes(sums, spread, block, taps):
    """Bytes of a packed filter, or in wgrad of the sums of one slice: ``taps`` taps, in blocks of ``block`` lanes."""
    words, of_vector = (sums.channels, sums.lanes) if spread is None else (spread.words, spread.groups * sums.outputs)
    elements = side_by_side(sums.groups * sums.outputs, block, of_vector, sums.lanes)
    return elements * taps * words * sums.itemsize


class TaskSizes(NamedTuple):
    """The sizes of a task: the extents of a box, and the fields of ``Blocks`` with the same names."""

    extents: list  # depth, height, width
    outputs: int  # lanes of a task
    slices: int = 1
    heights: int = 1
    bands: int = 1


def _read(sums, extents):
    """Elements of a source channel that a box reads."""
    walks = [walk for walk in sums.walks if walk[2].taps] or sums.walks
    axes = zip(extents, zip(*walks, strict=True), strict=True)
    return prod(min(own[0].source_size, span(own, extent)[1]) for extent, own in axes)


def _lane_bytes(sums, extents, seen, lanes):
    """Bytes of a task's copies. ``seen``, ``lanes``: elements of a position of the source and of the target."""
    # A box has the targets of all stride phases. They begin at different positions, so one may end one further.
    made = prod((extent + 1) * axis.target_step for extent, axis in zip(extents, sums.typical_walk, strict=True))
    return (_read(sums, extents) * seen + made * lanes) * sums.itemsize


def _lane_extents(sums, seen, lanes):
    """Extents of boxes for which a task's copies take at most ``lane_bytes``.

    A box of one position may take up to ``most_lane_bytes``. The result is None if it takes more.
    """
    tuning = sums.tuning
    walks = [walk for walk in sums.walks if walk[2].taps] or sums.walks
    largest = max(walks, key=lambda walk: prod(axis.positions for axis in walk))
    most = prod(axis.positions for axis in largest)
    while True:
        _, *extents = box_of(largest, 1, most)
        size = _lane_bytes(sums, extents, seen, lanes)
        if size <= tuning.lane_bytes:
            return extents
        if most == 1:
            return extents if size <= tuning.most_lane_bytes else None
        most = max(1, most // 2)


def _copied_bytes(sums, positions_adjacent):
    """Bytes of a task's lanes for one position, if it copies for the spreading tile.

    In wgrad, they must not depend on the layout, because boxes affect the order of sums.
    """
    if sums.operation == WGRAD:
        return sums.tuning.summed_copies_bytes
    return sums.tuning.spread_bytes if positions_adjacent else sums.tuning.position_bytes


def _copying(sums, spread, positions_adjacent):
    """(extents of boxes, lanes of a task) if tasks copy the source of a box; extents are None if it is too large."""
    outputs, total = sums.outputs, sums.groups * sums.outputs
    if spread is not None:
        whole = spread.groups * outputs  # lanes of a vector
        block = balanced_size(total, _copied_bytes(sums, positions_adjacent) // sums.itemsize // whole * whole, whole)
        seen = block // outputs * spread.words + sums.lanes
        return _lane_extents(sums, seen, block + sums.lanes), block
    for width in (sums.strip, sums.strip // 2, sums.lanes):
        block = min(width // outputs * outputs, total)
        lanes = _whole(sums, block)
        extents = _lane_extents(sums, sums.channels * lanes, lanes)
        if extents == [axis.positions for axis in sums.typical_walk]:
            break
    return extents, block


def copies_for_each_product(sums, spread):
    """Whether boxes of the spreading tile are so small that a copied element of the source has at most one product.

    Neighbouring boxes then copy almost the same elements. All layouts get the answer of channels last, so that they
    take the same family.
    """
    extents, _ = _copying(sums, spread, positions_adjacent=False)
    if extents is None or extents == [axis.positions for axis in sums.typical_walk]:
        return False
    return _read(sums, extents) >= prod(extents) * sums.taps


def _whole(sums, lanes):
    """``lanes``, rounded up to whole vectors."""
    return -(-lanes // sums.lanes) * sums.lanes


def _line_block(sums):
    """Lanes of a depthwise task, channels last, that are whole cache lines of channels."""
    return balanced_size(sums.groups, sums.tuning.position_bytes // sums.itemsize, LINE_BYTES // sums.dtype.itemsize)


def _lines(sums, threads):
    """(extents, lanes) of fprop or dgrad with lanes of whole cache lines; None if this leaves too few tasks."""
    block = _line_block(sums)
    lanes = _whole(sums, block)
    extents = _lane_extents(sums, lanes, lanes)
    if extents is None:
        return None
    boxes = prod(-(-axis.positions // n) for axis, n in zip(sums.typical_walk, extents, strict=True))
    tasks = sums.batch * boxes * -(-sums.groups // block)
    return (extents, block) if tasks >= max(sums.tuning.wanted_tasks, threads) else None


def _in_place(sums):
    """(extents of boxes, lanes of a task) of fprop or dgrad if source and target are used in place."""
    # Neighbouring tasks should not write to the same cache line, and processors fetch lines in pairs.
    walk, line, tuning = sums.typical_walk, LINE_BYTES // sums.itemsize, sums.tuning
    if walk[0].taps * walk[1].taps > 1:
        lanes = tuning.row_bytes // (walk[2].positions * walk[2].source_step * sums.itemsize)
    else:
        lanes = tuning.lone_row_bytes // sums.itemsize
    block = balanced_size(sums.groups * sums.outputs, max(2 * line, lanes), line)
    return box_of(walk, 1, tuning.in_place_bytes // (block * sums.itemsize))[1:], block


def cut_correlation(sums, spread, positions_adjacent, in_place, threads):
    """The ``TaskSizes`` of fprop or dgrad, or None if a copy would be too large."""
    alone = sums.channels == sums.outputs == 1
    extents, block = _copying(sums, spread, positions_adjacent)
    if extents is None:
        return None
    if in_place:
        extents, block = _in_place(sums)
    elif alone and not positions_adjacent and (lines := _lines(sums, threads)) is not None:
        extents, block = lines
    return TaskSizes(extents, block)


def _heights(sums, spread):
    """Rows of positions that are summed for one vector of lanes, then for the next, which finds its lines cached."""
    _, height, width = sums.walks[0]
    position = sums.tuning.position_bytes if spread is None else sums.tuning.spread_bytes
    position = min(sums.groups * sums.outputs * sums.itemsize, position)
    row = height.source_step * width.source_step * width.positions * position
    return max(1, sums.tuning.summed_rows_bytes // max(row, 1))


def _banded(sums, cut, threads):
    """The ``TaskSizes`` of depthwise wgrad, channels last, with lanes of whole cache lines of channels if possible.

    With more lanes, the copies of a box need more memory, so the box of ``cut`` is divided into *bands* of fewer rows.
    All bands of a box belong to one slice, which sums them from top to bottom. So the order of sums stays the order of
    ``cut``, and the number of threads may decide whether there are bands.
    """
    extents, wide = cut.extents, _line_block(sums)
    _, height, width = sums.walks[0]
    tasks = cut.slices * -(-sums.groups // wide)  # they take equal times, so half of the usual number suffices
    if wide <= cut.outputs or tasks < max(sums.tuning.wanted_tasks // 2, threads):
        return cut
    if extents[0] > 1 or extents[2] < width.positions:
        return cut
    whole = extents[1] == height.positions
    for rows in range(extents[1], 0, -1):
        # The same rows must be summed together as in ``cut``, and its next box must begin at the same row.
        ends = rows == extents[1] or (rows % cut.heights == 0 and (whole or extents[1] % rows == 0))
        lower, lanes = [1, rows, extents[2]], _whole(sums, wide)
        if ends and _lane_bytes(sums, lower, lanes, lanes) <= sums.tuning.lane_bytes:
            return cut._replace(extents=lower, outputs=wide, bands=-(-extents[1] // rows))
    return cut


def cut_accumulation(sums, spread, positions_adjacent, in_place, threads):
    """The ``TaskSizes`` of wgrad, or None if a copy would be too large.

    The extents times the bands, the slices and the heights affect the order of sums. ``outputs`` does not, because
    each lane has sums of its own.
    """
    total, line, tuning = sums.groups * sums.outputs, LINE_BYTES // sums.itemsize, sums.tuning
    extents, block = _copying(sums, spread, positions_adjacent)
    if extents is None:
        return None
    wide = block
    if serve_as_they_are(sums, spread):
        wide = balanced_size(total, tuning.position_bytes // sums.itemsize, line)
    boxes = sums.batch * prod(-(-axis.positions // n) for axis, n in zip(sums.walks[0], extents, strict=True))
    widths = {block, wide, _line_block(sums) if sums.channels == sums.outputs == 1 else block}
    room = sums.most_scratch // max(lanes_bytes(sums, spread, width, sums.taps) for width in widths)
    slices = max(1, min(-(-tuning.wanted_tasks // -(-total // wide)), boxes, room))
    cut = TaskSizes(extents, wide if in_place else block, slices, _heights(sums, spread))
    cut = cut._replace(outputs=_for_threads(sums, cut, threads, spread))
    lines = sums.channels == sums.outputs == 1 and not in_place and not positions_adjacent
    return _banded(sums, cut, threads) if lines else cut


def _for_threads(sums, cut, threads, spread):
    """Lanes of a task, halved until there is a task for each thread: whole vectors of whole groups."""
    least = lcm(sums.lanes, sums.outputs) if spread is None else spread.groups * sums.outputs
    total, block = sums.groups * sums.outputs, cut.outputs
    while (
        threads > sums.tuning.tuned_threads and cut.slices * -(-total // block) < threads and block % (2 * least) == 0
    ):
        block //= 2
    return block
