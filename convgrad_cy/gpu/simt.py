"""Dense convolutions as matrix products on the ordinary arithmetic units, in all types, for every GPU.

``simt_tiles.py`` chooses tiles. This file chooses the macros for reading operands and storing the result.
"""

from math import prod

from ..problem import WGRAD, is_one_axis
from . import reduce
from .plan import FILTER, SOURCE, TARGET, WORKSPACE, Launch, Plan, integers
from .simt_tiles import Extents, cheapest, choice
from .walk_sets import walk_sets

#: Rows, columns and depths are counted in 32 bits, and coordinates stay below NOWHERE of places.cuh.
_MOST_ROWS = 2**31 - 2**9
_MOST_COORDINATE = 2**29
_MOST_BLOCKS = 2**31 - 1
#: Products per clock of a multiprocessor, and the fraction of them that an H200 reached after the other costs.
_RATES = {("float32", 80): 64, ("float64", 80): 32, ("float64", 90): 64}
_RATE, _REACHED = 128, 0.75


def suits(task):
    """Whether all counts fit into 32 bits and all blocks into one grid."""
    for walks in walk_sets(task):
        extents = _extents(task, walks)
        if max(extents.rows, extents.depth, extents.columns) > _MOST_ROWS:
            return False
        if any(max(map(abs, _coordinates(walk))) >= _MOST_COORDINATE for axis in walks for walk in axis):
            return False
        tile, splits = choice(extents, task.dtype, task.device.processors)
        if extents.blocks(tile) * splits > _MOST_BLOCKS:
            return False
    return prod(task.filter.shape) <= reduce.MOST_ELEMENTS


def rate(task):
    """Products per clock of a multiprocessor's ordinary arithmetic units."""
    return _RATES.get((task.dtype.name, task.device.arch), _RATE)


def takes_longer(task, clocks):
    """Whether the launches take longer than ``clocks``, by the cost of their tiles.

    Often the number of products alone decides.
    """
    products = clocks * _REACHED * rate(task)
    if task.problem.multiplications > products * task.device.processors:
        return True
    costs = (cheapest(_extents(task, walks), task.dtype, task.device.processors) for walks in walk_sets(task))
    return sum(costs) > products


def launches(task):
    task = _merged(task)
    sets = walk_sets(task)
    planned = [_launch(task, walks) for walks in sets]
    # Only a single walk can be split, so there is at most one workspace.
    return Plan(
        tuple(launch for launches, _ in planned for launch in launches),
        tuple(size for _, sizes in planned for size in sizes),
    )


def _merged(task):
    """A pointwise task on one spatial axis, if the spatial axes of both tensors can be merged."""
    if not task.problem.is_pointwise() or prod(task.problem.x) >= _MOST_COORDINATE:
        return task
    if not (is_one_axis(task.source) and is_one_axis(task.target)):
        return task
    return task._replace(
        problem=task.problem.merged(), source=_in_one_row(task.source), target=_in_one_row(task.target)
    )


def _in_one_row(operand):
    stride = operand.strides[5]
    return operand._replace(
        shape=(*operand.shape[:3], 1, 1, prod(operand.shape[3:])), strides=(*operand.strides[:3], 0, 0, stride)
    )


def _coordinates(walk):
    return (*walk.extremes(), walk.source_size, walk.source_begin, (walk.taps - 1) * walk.source_tap)


def _extents(task, walks):
    positions = task.problem.batch * prod(max(walk.positions for walk in axis) for axis in walks)
    taps = task.source.shape[2] * prod(max(walk.taps for walk in axis) for axis in walks)
    rows, depth = (taps, positions) if task.operation == WGRAD else (positions, taps)
    return Extents(prod(map(len, walks)), task.problem.groups, rows, task.target.shape[2], depth)


def _launch(task, walks):
    """The launches of one set of walks, and the sizes of their workspaces."""
    extents = _extents(task, walks)
    tile, splits = choice(extents, task.dtype, task.device.processors)
    is_wgrad = task.operation == WGRAD
    macros = _macros(task, walks, tile, splits > 1)
    row_tiles, column_tiles = extents.tiles(tile)
    arguments = integers(
        (task.problem.batch, task.problem.groups, task.source.shape[2], task.target.shape[2]),
        (splits, extents.split_depth(tile, splits), row_tiles, column_tiles),
        (task.source.strides, task.filter.strides, task.target.strides),
        [len(axis) for axis in walks],
        *walks,
    )
    pointers = (SOURCE, TARGET, FILTER) if is_wgrad else (SOURCE, FILTER, TARGET)
    if splits > 1:
        pointers = (*pointers[:2], WORKSPACE)
    grid, block = (extents.blocks(tile) * splits, 1, 1), (tile.threads, 1, 1)
    launch = Launch("simt.cu", macros, "product", grid, block, 0, pointers, arguments)
    if splits == 1:
        return (launch,), ()
    parts = _result(task, walks, dict(macros)["TAPS_INNER"] == "1")
    sum_up = reduce.launch(task.dtype, WORKSPACE, task.written, splits, *parts)
    return (launch, sum_up), (reduce.workspace_bytes(task.dtype, splits, parts[0]),)


def _result(task, walks, taps_inner):
    """Extents, strides and begin of the result in digits: group, four digits of a row, column."""
    operand = task.filter if task.operation == WGRAD else task.target
    if task.operation == WGRAD:
        group, out, ins, *taps = zip(operand.shape, operand.strides, strict=True)
        digits, begin = (group, *((ins, *taps) if taps_inner else (*taps, ins)), out), 0
    else:
        batch, group, channel, *strides = zip(operand.shape, operand.strides, strict=True)
        axes = [(walk.positions, stride * walk.target_step) for [walk], (_, stride) in zip(walks, strides, strict=True)]
        digits = (group, batch, *axes, channel)
        begin = sum(walk.target_begin * stride for [walk], (_, stride) in zip(walks, strides, strict=True))
    return *zip(*digits, strict=True), begin


def _macros(task, walks, tile, partials):
    """The macros of simt.cu. The strides decide how it reads and stores."""
    source, filter, target = task.source.strides, task.filter.strides, task.target.strides
    is_wgrad = task.operation == WGRAD
    width = walks[2]
    channels_adjacent = task.source.shape[5] == 1 or abs(source[2]) < abs(source[5])
    taps_inner = not channels_adjacent and max(walk.taps for axis in walks for walk in axis) > 1
    tap_step, position_step = (
        max(abs(getattr(walk, name)) for walk in width) for name in ("filter_step", "target_step")
    )
    # The digit that runs fastest through the filter, and through the operand TARGET.
    by_tap = abs(filter[5]) * tap_step if taps_inner else abs(filter[2])
    by_position = abs(target[5]) * position_step
    a_by_depth = channels_adjacent != is_wgrad
    b_by_depth = by_position < abs(target[2]) if is_wgrad else by_tap < abs(filter[1])
    c_by_row = not partials and (by_tap < abs(filter[1]) if is_wgrad else by_position < abs(target[2]))
    padded = [any(walk.is_padded() for walk in axis) for axis in walks]

    vector = 16 // task.dtype.itemsize
    channels = not taps_inner and task.source.shape[2] % vector == 0
    columns = task.target.shape[2] % vector == 0
    row = all(walk.positions % vector == 0 for walk in width)
    a_full = (
        (channels and _is_aligned(task.source, 2, vector))
        if channels_adjacent
        else (
            row
            and not padded[2]
            and _is_aligned(task.source, 5, vector)
            and all(_keeps_aligned(w, vector) for w in width)
        )
    )
    if not is_wgrad:
        b_full = (
            (channels and _is_aligned(task.filter, 2, vector))
            if b_by_depth
            else (columns and _is_aligned(task.filter, 1, vector))
        )
    else:
        b_full = (
            (row and _is_aligned(task.target, 5, vector))
            if b_by_depth
            else (columns and _is_aligned(task.target, 2, vector))
        )
    values = {
        "A_BY_DEPTH": int(a_by_depth),
        "A_VECTOR": _vector(tile.rows, tile, vector) if a_full else 1,
        "B_BY_DEPTH": int(b_by_depth),
        "B_VECTOR": _vector(tile.columns, tile, vector) if b_full else 1,
        "C_BY_ROW": int(c_by_row),
        "PADDED": int(any(padded)),
        "PARTIALS": int(partials),
        "RANK": max([1, *(3 - axis for axis in range(3) if padded[axis])]),
        # Conversions need registers, too.
        "RESIDENT": max(1, tile.resident - (task.dtype.itemsize < task.dtype.compute_itemsize)),
        "STORAGE": task.dtype.cuda,
        "TAPS_INNER": int(taps_inner),
        "THREAD_COLUMNS": tile.thread_columns,
        "THREAD_ROWS": tile.thread_rows,
        "TILE_COLUMNS": tile.columns,
        "TILE_DEPTH": tile.depth,
        "TILE_ROWS": tile.rows,
        "WALKS": sum(map(len, walks)),
        "WGRAD": int(is_wgrad),
    }
    return tuple((name, str(value)) for name, value in values.items())


def _vector(across, tile, vector):
    """Elements that a thread reads at once, at most its part of a tile."""
    return min(vector, across * tile.depth // tile.threads)


def _is_aligned(operand, axis, vector):
    """Whether a vector along an axis is aligned if its first index is a multiple of its size."""
    others = [s for i, (s, n) in enumerate(zip(operand.strides, operand.shape, strict=True)) if i != axis and n > 1]
    return operand.aligned and operand.strides[axis] == 1 and not any(stride % vector for stride in others)


def _keeps_aligned(walk, vector):
    """Whether each tap maps positions that are multiples of ``vector`` to such multiples in the source."""
    taps = range(min(walk.taps, vector))
    return walk.source_step == 1 and not any((walk.source_begin + tap * walk.source_tap) % vector for tap in taps)
