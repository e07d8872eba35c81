"""Bounds checks of plans: each job is checked when it is made ready.

A kernel does not check its plan: it reads and writes at the addresses that the plan gives. So a mistake of the planner
raises a RuntimeError here, before any memory is touched. The checks cover addresses, not the correctness of a result:

- a walk: its indices lie within the shapes of target and filter, the source has its shape, steps are positive;
- a window: every tap of every position of a box lies within its extents;
- blocks of direct and small groups: sizes of a box, a chunk, a block, slices, groups, phases, packed rows, flags;
- blocks of Winograd's algorithm: numbers of points that have tables, boxes, chunks of whole vectors, rows of one part;
- long sums: the order of axes, pieces, slices, and that elements are adjacent along the last axis.

A plan of few rows is checked with Python's integers, a longer one with columns of float64. Neither overflows.
"""

from functools import lru_cache
from math import prod

import numpy as np

from ...problem import AxisWalk
from ..machine import MATRICES
from .shared import whole
from .steps import (
    ADDED,
    BOX_TILES,
    HELD_TAPS,
    PACKS,
    POINTS,
    SIBLINGS,
    TILE_SIZES,
    WALK_COLUMNS,
    Blocks,
    TileBlocks,
    WindowAxis,
)

#: A plan of at most this many rows is checked row by row.
FEW_ROWS = 4
#: Maximum of the counts and sizes of a legal plan.
MOST = 1 << 62
#: Minimum and maximum points of a tile on an axis of several taps (pyx/winograd/cook_toom.py).
TILE_POINTS = (4, 8)


def _columns(field):
    """The columns of a field of ``AxisWalk`` on the axes depth, height, width."""
    first, fields = AxisWalk._fields.index(field), len(AxisWalk._fields)
    return [first + axis * fields for axis in range(3)]


_POSITIONS, _TAPS, _SOURCE_STEPS = _columns("positions"), _columns("taps"), _columns("source_step")
_TARGET_BEGINS, _TARGET_STEPS = _columns("target_begin"), _columns("target_step")
#: Columns of a row of a ``Plan``: the positions of a box on three axes (the first field of each ``WindowAxis``).
_BOX = [WALK_COLUMNS + axis * len(WindowAxis._fields) for axis in range(3)]


def fail(fault):
    raise RuntimeError(f"internal error: plan with {fault}")


def need(condition, fault):
    """Fail unless ``condition``, a bool or an array, is true everywhere."""
    if not (condition if type(condition) is bool else np.all(condition)):
        fail(fault)


def _rows(steps):
    """The rows as lists of integers; if there are many, one row whose entries are the columns, as arrays."""
    return steps.tolist() if len(steps) <= FEW_ROWS else [list(steps.T.astype(np.float64))]


def _within(first, step, count, size):
    """Whether the indices first, first + step, … (``count`` of them, maybe none) lie in 0 .. size - 1."""
    last = first + (count - 1) * step
    return (count < 1) | ((first >= 0) & (first < size) & (last >= 0) & (last < size))


def _axis(row, i):
    """The ``AxisWalk`` of axis ``i`` of a row."""
    fields = len(AxisWalk._fields)
    return AxisWalk._make(row[fields * i : fields * (i + 1)])


def check_walk(row, source, filter, target, held=None):
    """Check the three axes of a walk against the spatial shapes.

    ``held``: on each axis, the number of the walk's taps that the filter has; by default, all of them.
    """
    for i in range(3):
        a = _axis(row, i)
        taps = a.taps if held is None else held[i]
        need((a.positions >= 0) & (a.positions <= target[i]), "positions beyond the target")
        need((a.taps >= 0) & (taps >= 0) & (taps <= a.taps), "taps beyond the walk")
        need((a.source_size == source[i]) & (a.source_step >= 1) & (a.target_step >= 1), "steps or sizes of a walk")
        need(_within(a.target_begin, a.target_step, a.positions, target[i]), "a walk beyond the target")
        need(_within(a.filter_begin, a.filter_step, taps, filter[i]), "a walk beyond the filter")
        # With one position or one tap, strides and dilations up to MOST are legal.
        positions, taps = a.positions - 1.0, a.taps - 1.0
        reach = abs(a.source_begin) * 1.0 + positions * a.source_step + taps * abs(a.source_tap)
        need((reach < MOST) & (positions * a.target_step < MOST), "a walk beyond all indices")


def check_window(row, pairs):
    """Check a window against its walk, on three axes. Returns its elements for one channel of one image."""
    size = 1.0
    for i in range(3):
        a, m = _axis(row, i), WindowAxis._make(row[_BOX[i] : _BOX[i] + len(WindowAxis._fields)])
        need((m.positions >= 1) & (m.extent >= 1) & (m.step >= 1), "an empty window")
        room = m.positions + m.positions % 2 if pairs and i == 2 else m.positions
        back, ahead = m.tap * 1.0 * (a.taps - 1) * (m.tap < 0), m.tap * 1.0 * (a.taps - 1) * (m.tap > 0)
        last = m.begin + (room - 1.0) * m.step + ahead
        unseen = (a.taps < 1) | (row[-1] == PACKS)  # a row that only packs fills no window
        need(unseen | ((m.begin + back >= 0) & (last < m.extent)), "a window smaller than its box")
        filled = (m.positions - 1.0) * m.step + abs(m.tap) * (a.taps - 1.0) + 1
        need(unseen | (m.apart > 0) | (filled <= m.extent), "a window smaller than its elements")
        need((m.apart == 0) | ((m.begin == 0) & (m.step == 1)), "taps of a window apart and shifted")
        size = size * m.extent
    return size


def _flags(*values):
    need(all(value in (0, 1) for value in values), "a flag other than 0 and 1")


def _counts(**values):
    """Check that each value is at least 1 and at most its limit; ``values``: name=(value, limit)."""
    for name, (value, most) in values.items():
        need(1 <= value <= most, f"{name} {value}, not 1 to {most}")


def check_blocks(kernel, steps, blocks, shapes, lanes):
    """Check the ``Blocks`` of direct and of small groups."""
    b, (source, filter, target) = Blocks(*blocks), shapes
    batch, groups, channels = source[:3]
    outputs, sums = filter[1], kernel == "wgrad"
    positions = [max(size, 1) for size in target[3:]]
    _flags(b.lanewise, b.positions_across, b.nontemporal, b.packs, b.target_in_memory)
    modes = b.prefetch, b.spreads, b.pairs
    need(all(mode in (0, 1, 2) for mode in modes), "prefetch, spreads or pairs other than 0, 1 and 2")
    need(not b.lanewise or b.pairs != MATRICES, "lanes in matrices")
    _counts(
        images=(b.images, max(batch, 1)), groups=(b.groups, max(groups, 1)),
        chunk=(b.chunk, max(channels, 1)), slices=(b.slices, batch * prod(positions) if sums else 1),
        outputs=(b.outputs, max(groups * outputs if b.lanewise else outputs, 1)),
        heights=(b.heights, MOST), bands=(b.bands, positions[1]), phases=(b.phases, len(steps)),
    )  # fmt: skip
    need(len(steps) % b.phases == 0, "phases that do not fill its rows")
    if b.groups > 1:
        need(b.chunk == channels and b.outputs == outputs, "several groups, each with a part of its channels")
    across = b.positions_across
    need(not (across and (b.packs or b.pairs or sums)), "tiles across positions that pack or pair")
    need(not (b.packs and (b.groups > 1 or b.phases > 1 or sums)), "tasks that pack for several groups or phases")
    need(not (across and b.phases > 1 and b.groups > 1), "phases of several groups across positions")
    need(not (b.lanewise and (across or b.packs or b.phases > 1 or b.groups > 1)), "lanes of another form")
    if not (sums or b.lanewise):
        _counts(pack_channels=(b.pack_channels, b.chunk))
    if b.lanewise:
        need(channels >= 1 and 2 * max(channels, outputs) <= lanes, "lanes of large groups")
    return b


def _packed_within(steps):
    """Check rows that use the filter that another row packs: that row must have all of their taps."""
    others = steps[:, -1]
    own = (others == PACKS) | (others == np.arange(len(steps)))
    need((others >= PACKS) & (others < len(steps)), "a row whose packing row does not exist")
    for i in range(0 if own.all() else 3):
        a, b = _axis(steps[~own].T, i), _axis(steps[others[~own]].T, i)
        need(b.filter_step == a.filter_step, "a row packed with other steps")
        shift, rest = np.divmod(a.filter_begin - b.filter_begin, np.where(b.filter_step, b.filter_step, 1))
        need((rest == 0) & (shift >= 0) & (shift + a.taps <= b.taps), "a row packed without its taps")
    packers = others[others[~own]] if not own.all() else others[:0]
    need((packers == PACKS) | (packers == others[~own]), "a row whose packing row uses the filter of a third row")


def check_direct(kernel, steps, blocks, shapes, lanes):
    """Check a ``Plan``; ``lanes``: elements of a vector in the type of the sums."""
    need(len(steps) >= 1, "no rows")
    b, (source, filter, target) = check_blocks(kernel, steps, blocks, shapes, lanes), shapes
    for row in _rows(steps):
        check_walk(row, source[3:], filter[3:], target[3:])
        need((kernel == "correlate") | (prod([row[i] for i in _TAPS]) > 0), "a gradient of no taps")
        if b.lanewise:
            sizes = [row[i] for i in _BOX]
            for size, most in zip(sizes, target[3:], strict=True):
                need((size >= 1) & (size <= max(most, 1)), "a box beyond the target")
        else:
            for i in range(3):
                need(row[_BOX[i]] <= max(target[3 + i], 1), "a box beyond the target")
            size = check_window(row, b.pairs and kernel == "wgrad")
            need(size * b.images * b.chunk * b.groups < 1 << 50, "a window beyond all memory")
    if len(steps) == 1:  # the usual case: no other rows to compare with
        need(row[-1] in (0, PACKS), "a row whose packing row does not exist")
        need(b.bands == 1 or (row[_BOX[0]] == 1 and row[_BOX[2]] >= row[_POSITIONS[2]]), "bands of parts of rows")
        return
    boxes = [steps[:, i] for i in _BOX]
    if b.lanewise:
        need(all((box == box[0]).all() for box in boxes), "boxes that differ")
        own, alike = steps[1:] if steps[0, _TAPS[2]] == 0 else steps, _SOURCE_STEPS + _TARGET_STEPS
        need(own[:, alike] == own[0, alike], "lanes of different steps")
        if b.bands > 1:
            need((boxes[0] == 1) & (boxes[2] >= steps[:, _POSITIONS[2]]), "bands of parts of rows")
    elif b.phases > 1:
        fields = len(WindowAxis._fields)
        windows = steps[:, WALK_COLUMNS : WALK_COLUMNS + 3 * fields].reshape(-1, b.phases, 3, fields)
        need(windows[..., :2] == windows[:, :1, :, :2], "phases of different windows")
        need(windows[..., 2:4] == [0, 1], "phases whose taps do not share a window")
        need(steps[:, _TARGET_STEPS] == steps[0, _TARGET_STEPS], "phases of different steps")
        width = int(steps[0, _TARGET_STEPS[2]])
        need(len(steps) % width == 0, "phases that make no whole rows")
        need(
            np.sort(steps[:, _TARGET_BEGINS[2]].reshape(-1, width)) == np.arange(width),
            "phases that make no whole rows",
        )
    if kernel == "correlate" and not b.lanewise:
        _packed_within(steps)


def _check_parts(steps, sums):
    """Check that the rows of each part agree, and count the parts. A part's first row holds its number of rows."""
    lengths, row = (steps[:, ADDED] * steps[:, SIBLINGS]).tolist(), 0
    firsts = []
    while row < len(steps):
        firsts.append(row)
        row += lengths[row]
    need(row == len(steps) and (not sums or bool((steps[firsts, ADDED] == 1).all())), "rows of a part")
    leaders = steps[np.repeat(firsts, np.diff([*firsts, row]))]
    for columns in (POINTS, TILE_SIZES, BOX_TILES):
        need(steps[:, columns] == leaders[:, columns], "tiles that differ in a part")
    need(steps[:, [ADDED, SIBLINGS]] == leaders[:, [ADDED, SIBLINGS]], "rows of a part")
    need(steps[:, _TAPS] == leaders[:, _TAPS], "taps that differ in a part")
    need(steps[:, _POSITIONS] <= leaders[:, _POSITIONS], "a part whose first row is not the longest")
    return len(firsts)


def check_tiles(kernel, steps, blocks, shapes, lanes, strip):
    """Check a ``TilePlan``."""
    b, (source, filter, target) = TileBlocks(*blocks), shapes
    batch, groups, channels = source[:3]
    outputs, sums = filter[1], kernel == "winograd_wgrad"
    need(len(steps) >= 1, "no rows")
    for row in _rows(steps):
        points, made, tiles, held = (row[columns] for columns in (POINTS, TILE_SIZES, BOX_TILES, HELD_TAPS))
        check_walk(row, source[3:], filter[3:], target[3:], held)
        for i in range(3):
            a, (least, most) = _axis(row, i), TILE_POINTS
            one, several = (points[i] == 1) & (a.taps == 1), (points[i] >= least) & (points[i] <= most)
            need(one | (several & (a.taps >= 2) & (a.taps <= 5)), "points without a transform")
            need((made[i] == points[i] + 1 - a.taps) & (made[i] >= 1) & (a.positions >= 1), "outputs of a tile")
            need((tiles[i] >= 1) & (tiles[i] <= target[3 + i]), "a box beyond the target")
            need((a.source_step == a.source_tap) | (a.taps == 1), "taps that are not as far apart as positions")
        size = prod(points) * 1.0 * prod(tiles) * b.images
        need(size * (b.chunk + b.outputs) < 1 << 50, "a box beyond all memory")
        need((row[ADDED] >= 1) & (row[SIBLINGS] >= 1) & (row[ADDED] * row[SIBLINGS] <= len(steps)), "rows of a part")
    parts = 1 if len(steps) == 1 else _check_parts(steps, sums)
    most_added, most_siblings = (1, 1) if len(steps) == 1 else steps[:, [ADDED, SIBLINGS]].max(0).tolist()
    images = batch * most_siblings
    tiles = [max(size, 1) for size in target[3:]]
    _flags(b.tiles_kept, b.nontemporal)
    wide = groups if b.groups > 1 else 1
    _counts(
        images=(b.images, images), chunk=(b.chunk, whole(wide * channels, lanes)),
        outputs=(b.outputs, whole(wide * outputs, strip)), groups=(b.groups, groups),
        slices=(b.slices, images * prod(tiles) if sums else 1),
        chunks_at_once=(b.chunks_at_once, most_added * -(-channels // b.chunk) if b.chunk > 0 else 1),
        filter_strips=(b.filter_strips, MOST), filter_channels=(b.filter_channels, MOST),
        together=(b.together, parts),
    )  # fmt: skip
    need(b.chunk % lanes == 0 and b.outputs % lanes == 0, "a block of part of a vector")
    kept = b.filters_kept
    need(kept == 0 or (kept >= b.outputs and kept % b.outputs == 0), "a group of part of a block")
    if b.groups > 1:
        need(
            b.chunk >= b.groups * channels and b.outputs >= b.groups * outputs,
            "several groups, each with a part of its channels",
        )


def check_long(walk, blocks, views, most_threads):
    """Check a plan of long sums; ``blocks``: the order of axes, the piece, the slices and the threads."""
    source, filter, target = views
    *order, piece, slices, threads = blocks
    need(sorted(order) == [0, 1, 2, 3], "an order that is no permutation of 0 to 3")
    row = walk.ravel().tolist()
    check_walk(row, source.shape[3:], filter.shape[3:], target.shape[3:])
    for i in range(3):
        a = _axis(row, i)
        need(a.source_tap >= 1 and a.taps == filter.shape[3 + i], "taps of a sum")
        need(a.positions == target.shape[3 + i] and a.target_begin == 0 and a.target_step == 1, "positions of a sum")
    _counts(threads=(threads, most_threads), piece=(piece, MOST), slices=(slices, MOST // (8 * prod(target.shape))))
    last = 2 + order[-1]
    for view in (source, filter):
        need(view.shape[last] == 1 or view.strides[last] == view.itemsize, "elements of a run apart")


@lru_cache(maxsize=256)
def _checked_rows(kernel, steps, columns, blocks, shapes, *sizes):
    """Check a plan of few rows, given as bytes. A kept plan serves several jobs, so the last checks are remembered."""
    rows = np.frombuffer(steps, np.int64).reshape(-1, columns)
    _check(kernel, rows, np.frombuffer(blocks, np.int64).tolist(), shapes, *sizes)


def _check(kernel, *arguments):
    if kernel.startswith("winograd"):
        check_tiles(kernel, *arguments)
    else:
        check_direct(kernel, *arguments[:-1])


def check(job):
    """Raise a RuntimeError for a ``Job`` whose plan leaves its tensors."""
    kernel, (steps, blocks), task = job.kernel, job.plan[:2], job.task
    if kernel == "sum_long":
        check_long(steps, blocks.tolist(), task.tensors, task.machine.threads)
        return
    itemsize, machine = task.dtype.compute_itemsize, task.machine
    sizes = machine.vector_bytes // itemsize, machine.tile_column_bytes // itemsize
    shapes = tuple([tensor.shape for tensor in task.tensors])
    _counts(threads=(int(blocks[0]), machine.threads))
    if len(steps) <= FEW_ROWS:
        _checked_rows(kernel, steps.tobytes(), steps.shape[1], blocks.tobytes(), shapes, *sizes)
    else:
        _check(kernel, steps, blocks.tolist(), shapes, *sizes)
