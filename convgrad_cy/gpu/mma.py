"""Tensor cores, sm_80 and later: implicit matrix products of packed operands (``mma.cu``, ``mma_wgrad.cu``).

float16 and bfloat16 are multiplied as they are and summed in float32. float32 is taken apart into bfloat16 numbers,
three under precision "high" and two under "medium" (``pack.cu``), of which those products are formed that count: six
and three (``tile.cuh``). The errors are those of float32 and of 16 bits of mantissa. float64 has instructions of its
own on the GPUs for science; on others they are slow. NaN and infinity reach exactly the results that the definition
says.
"""

from itertools import product
from math import inf, prod

from ..problem import DGRAD, WGRAD
from . import reduce, simt
from .joins import ALONE, joins, phase_walks, spread, view
from .pack import CHANNELS, can_pack, lies_in_chunks, pack
from .plan import FILTER, SOURCE, TARGET, WORKSPACE, Device, Launch, Plan, integers
from .tiles import LAUNCH_CLOCKS, Kind, best_split, best_tile, memory_clocks, shared_bytes, stages, tiles

#: Walks of an axis in one launch: MOST_PHASES of tap_copies.cuh. Strides that want more launches than this are rare.
_MOST_PHASES = 4
_MOST_PARTS = 8
_NO_WALK = (0,) * 10
#: Rows, columns and depths are counted in 32 bits, with what a tile has beyond them; coordinates may lie outside.
_MOST = 2**31 - 2**16
_FARTHEST = 2**29
_MOST_GROUPS = 65535
#: What mma_wgrad.cu multiplies a row with, to know which of the joined groups it is of, is in such parts.
_ROW_PARTS = 1 << 16
#: Architectures whose tensor cores multiply float64 faster than their other units do.
_DOUBLE_ARCHS = (80, 90)
#: Bytes of packed operands and partial sums beyond which kernels without them are taken.
_MOST_WORKSPACE = 16 << 30
#: The axes in the order of partial sums, channels last: (group, out, taps, in) of filters, (N, G, D, H, W, C) of data.
_DIGITS = (0, 1, 3, 4, 5, 2)


def _kind(task):
    """How the task's type is multiplied."""
    if task.dtype.name == "float32":
        return Kind("bf16", 2, {"high": 3, "medium": 2}[task.precision], 4)
    return Kind(task.dtype.cuda, task.dtype.itemsize, 1, task.dtype.compute_itemsize)


def _walks(task, join=ALONE):
    """Every combination of walks."""
    return [walk for axes in _phases(task, join) for walk in product(*axes)]


def _products(task, kind, join=ALONE):
    """(rows, columns, depth) of the matrix product of each walk, in one group or in joined ones."""
    channels = -(-task.source.shape[CHANNELS] * join.groups // kind.chunk) * kind.chunk
    others = task.target.shape[CHANNELS] * join.groups
    for walk in _walks(task, join):
        positions = task.source.shape[0] * prod(axis.positions for axis in walk)
        taps = prod(axis.taps for axis in walk)
        if task.operation == WGRAD:
            yield others, taps * channels, positions
        else:
            yield positions, others * prod(join.phases), taps * channels


def _is_near(axis):
    """Whether coordinates along an axis, and the sizes that they are compared with, fit into 32 bits."""
    return max(*map(abs, axis.extremes()), axis.source_size) <= _FARTHEST


def can(task):
    """Whether these kernels compute the task at all."""
    if task.device.arch < 80 or task.dtype.name == "int32" or (task.dtype.name, task.precision) == ("float32", "ieee"):
        return False
    if task.operation == WGRAD:
        if prod(task.filter.shape) > reduce.MOST_ELEMENTS or not can_pack(task.target):
            return False
    elif not can_pack(task.filter):
        return False
    return (
        can_pack(task.source)
        and len(_phases(task)) <= _MOST_PARTS
        and task.problem.groups <= _MOST_GROUPS
        and all(_is_near(axis) for walk in _walks(task) for axis in walk)
        and all(max(sizes) <= _MOST for sizes in _products(task, _kind(task)))
    )


def suits(task):
    """Whether these kernels are likely to be faster than those of other units, by the clocks that both need.

    What tiles hold beyond the problem counts in full, as do packing and launches.
    """
    if not can(task):
        return False
    name, arch = task.dtype.name, task.device.arch
    if name == "float64" and arch not in _DOUBLE_ARCHS:
        return False
    if task.problem.groups > 1 and min(task.problem.x_channels, task.problem.y_channels) == 1:
        return False
    return simt.takes_longer(task, clocks(task))


def clocks(task):
    """What the plan takes but for one launch, which any other plan has, too; infinite where these kernels have none."""
    if not can(task):
        return inf
    plan, clocks = _planned(task)
    return clocks if sum(plan.workspaces) <= _MOST_WORKSPACE else inf


def launches(task):
    return _planned(task)[0]


def _planned(task):
    """The plan whose groups and phases are joined as it costs least, and its clocks."""
    plan = _wgrad if task.operation == WGRAD else _correlate
    return min((plan(task, join) for join in joins(task)), key=lambda planned: planned[1])


def _phases(task, join=ALONE):
    """The walks of each axis, for one launch after another; those of most taps first, so that short blocks are last.

    Where strides are small, combinations of phases that no tap reaches have blocks of their own, which store zeros;
    else zeros are stored everywhere before.
    """
    problem = task.problem
    if join.phases != ALONE.phases:
        return [tuple([axis] for axis in phase_walks(problem))]
    if task.operation != DGRAD:
        return [tuple([axis] for axis in problem.forward_walk())]
    unreached = problem.unreached_walk()
    zeros, phases = [], problem.backward_phases()
    if unreached is not None and max(problem.stride) <= _MOST_PHASES:
        phases = problem.complete_backward_phases()
    elif unreached is not None:
        zeros = [tuple([axis] for axis in unreached)]
    depths, rows, columns = (
        [walks[i : i + _MOST_PHASES] for i in range(0, len(walks), _MOST_PHASES)]
        for walks in (sorted(axis, key=lambda walk: -walk.taps) for axis in phases)
    )
    return zeros + [(depth, row, column) for depth in depths for row in rows for column in columns]


def _packed(task, kind, join, *numbers):
    """These operands as the kernels read them, the launches that make them so, and the sizes of their workspaces."""
    operands, packs, sizes = [], [], []
    for number in numbers:
        workspace = WORKSPACE + len(sizes)
        if number == FILTER and join != ALONE:
            packed = spread(task, join, kind, workspace)
        else:
            operand = (task.source, task.filter, task.target)[number]
            operand = operand if number == FILTER else view(operand, join.groups)
            packed = pack(number, operand, task.dtype, kind, workspace)
        operands.append(packed)
        if packed.launch is not None:
            packs.append(packed.launch)
            sizes.append(packed.size)
    return operands, packs, sizes


def _macros(kind, tile, count, **others):
    values = {
        "BLOCKS": tile.blocks,
        "ELEMENT": kind.element,
        "PLANES": kind.planes,
        "STAGES": count,
        "TILE_COLUMNS": tile.columns,
        "TILE_ROWS": tile.rows,
        "WARPGROUPS": tile.warpgroups,
    }
    return tuple(sorted((name, str(value)) for name, value in {**values, **others}.items()))


def _filter_strides(strides):
    """As ``struct strides`` of tile.cuh, whose ``batch`` is then that of the target's channels."""
    group, out, *rest = strides
    return (out, group, *rest)


def _digits(operand):
    """Extents and strides of an operand for ``reduce.launch``, and the strides of one split's partial sums."""
    extents, strides = ([of[axis] for axis in _DIGITS] for of in (operand.shape, operand.strides))
    dense = [0] * 6
    for digit, axis in enumerate(_DIGITS):
        dense[axis] = prod(extents[digit + 1 :])
    return extents, strides, dense


def _correlate(task, join):
    kind, device, target = _kind(task), task.device, view(task.target, join.groups)
    (source, filter), steps, sizes = _packed(task, kind, join, SOURCE, FILTER)
    batch, groups, channels = target.shape[:3]
    columns = channels * prod(join.phases)
    tile, splits, each, clocks = best_tile(kind, device, groups, list(_products(task, kind, join)))
    clocks += len(steps) * LAUNCH_CLOCKS + 2 * memory_clocks(device, sum(sizes))
    count = stages(kind, tile, device)
    extents, target_strides, partial_strides = _digits(target)
    if splits == 1:
        result, size, strides, aligned = task.dtype.cuda, task.dtype.itemsize, target.strides, target.aligned
    else:
        result, size, strides, aligned = kind.sums, kind.sum_size, partial_strides, True
    written = target._replace(strides=tuple(strides), aligned=aligned)
    last = written.strides[CHANNELS] == 1
    pointers = (source.number, filter.number, TARGET if splits == 1 else WORKSPACE + len(sizes))
    whole_chunks = last and lies_in_chunks(written, 16 // size)
    for phases in _phases(task, join):
        walks = [axis[i] if i < len(axis) else _NO_WALK for axis in phases for i in range(_MOST_PHASES)]
        arguments = integers(
            [len(axis) for axis in phases],
            walks,
            (batch, source.channels, channels, columns, splits, each),
            (source.strides, source.plane),
            (_filter_strides(filter.strides), filter.plane),
            (written.strides, prod(target.shape)),
            (last, whole_chunks, join.phases, join != ALONE),
        )
        rows = batch * prod(max(walk.positions for walk in axis) for axis in phases)
        grid = (-(-rows // tile.rows) * -(-columns // tile.columns), prod(map(len, phases)), groups * splits)
        macros, shared = _macros(kind, tile, count, RESULT=result), shared_bytes(kind, tile, count)
        steps.append(Launch("mma.cu", macros, "correlate", grid, (tile.threads, 1, 1), shared, pointers, arguments))
    if splits > 1:
        steps.append(reduce.launch(task.dtype, pointers[2], TARGET, splits, extents, target_strides))
        sizes.append(reduce.workspace_bytes(task.dtype, splits, extents))
    return Plan(tuple(steps), tuple(sizes)), clocks


def _wgrad(task, join):
    kind, device, groups = _kind(task), task.device, task.problem.groups // join.groups
    (source, target), steps, sizes = _packed(task, kind, join, SOURCE, TARGET)
    ((rows, columns, depth),) = _products(task, kind, join)
    of_row = -(-_ROW_PARTS // task.target.shape[CHANNELS]) if join.groups > 1 else 0
    tile, each, clocks = best_split(kind, device, groups, rows, columns, depth)
    count = stages(kind, tile, device, True)
    splits = -(-depth // (each * kind.depth(tile)))
    extents, strides, _ = _digits(task.filter)
    partials = WORKSPACE + len(sizes)
    across = -(-columns // tile.columns)
    arguments = integers(
        task.problem.forward_walk(),
        task.source.shape[0],
        (source.channels, task.source.shape[CHANNELS], target.channels, rows, of_row),
        (across, each),
        (source.strides, source.plane),
        (target.strides, target.plane),
    )
    grid = (-(-rows // tile.rows) * across, splits, groups)
    macros, shared = _macros(kind, tile, count), shared_bytes(kind, tile, count)
    pointers = (source.number, target.number, partials)
    steps.append(Launch("mma_wgrad.cu", macros, "wgrad", grid, (tile.threads, 1, 1), shared, pointers, arguments))
    steps.append(reduce.launch(task.dtype, partials, FILTER, splits, extents, strides))
    clocks += (len(steps) - 1) * LAUNCH_CLOCKS + 2 * memory_clocks(device, sum(sizes))
    return Plan(tuple(steps), (*sizes, reduce.workspace_bytes(task.dtype, splits, extents))), clocks


#: Shared memory of a block, by architecture: of those that differ.
_DEVICES = (Device(80, 108, 163 << 10), Device(86, 84, 99 << 10), Device(90, 132, 227 << 10))


def variants(devices=_DEVICES):
    """All macro sets that ``launches`` can choose on these, as (source, kernel, macros)."""
    found = set()
    for storage, kind in (
        ("f16", Kind("f16", 2, 1, 4)),
        ("bf16", Kind("bf16", 2, 1, 4)),
        ("float", Kind("bf16", 2, 2, 4)),
        ("float", Kind("bf16", 2, 3, 4)),
        ("double", Kind("double", 8, 1, 8)),
    ):
        packed = (("PACKED", kind.element), ("PLANES", str(kind.planes)), ("STORAGE", storage))
        found |= {("pack.cu", "pack", packed), ("spread.cu", "spread", packed)}
        for device in devices:
            for tile in tiles(kind, device):
                for result in {storage, kind.sums}:
                    macros = _macros(kind, tile, stages(kind, tile, device), RESULT=result)
                    found.add(("mma.cu", "correlate", macros))
            for tile in tiles(kind, device, by_depth=True):
                found.add(("mma_wgrad.cu", "wgrad", _macros(kind, tile, stages(kind, tile, device, True))))
    return sorted(found)
