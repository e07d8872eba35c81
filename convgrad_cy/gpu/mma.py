"""Tensor cores, sm_80 and later: implicit matrix products of packed operands (``mma.cu``, ``mma_wgrad.cu``).

float16 and bfloat16 are multiplied as they are and summed in float32. float32 numbers are split into bfloat16 numbers
(``pack.cu``): three under precision "high" and two under "medium". Only significant products of them are formed: six
and three (``tile.cuh``). The errors are then as in float32, and as with 16 bits of mantissa. float64 has fast
instructions on GPUs for science only. NaN and infinity reach exactly the results that the definition gives them.
"""

from math import inf, prod

from ..problem import WGRAD
from . import engine, mma_engine, reduce, simt
from .costs import LAUNCH_CLOCKS, STORED_SINGLY, best_split, best_tile, memory_clocks
from .joins import ALONE, joins, view
from .operands import correlation, digits_of, macros_of, packed_operands, result_of, with_reduction
from .pack import CHANNELS, can_pack
from .plan import FILTER, SOURCE, TARGET, WORKSPACE, Device, Launch, Plan, integers
from .products import MOST, kind_of, phases_of, products_of, walks_of
from .tiles import Kind, shared_bytes, stages, tiles

#: Most launches of a task. Strides that need more are rare.
_MOST_PARTS = 8
#: Limit of coordinates, which may lie outside of the source.
_FARTHEST = 2**29
_MOST_GROUPS = 65535
#: mma_wgrad.cu finds the joined group of a row by a fixed-point product, in units of 1 / this.
_ROW_PARTS = 1 << 16
#: Architectures whose tensor cores multiply float64 faster than their other units do.
_DOUBLE_ARCHS = (80, 90)
#: Bytes of packed operands and partial sums beyond which kernels without them are taken.
_MOST_WORKSPACE = 16 << 30


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
        and len(phases_of(task)) <= _MOST_PARTS
        and task.problem.groups <= _MOST_GROUPS
        and all(_is_near(axis) for walk in walks_of(task) for axis in walk)
        and all(max(sizes) <= MOST for sizes in products_of(task, kind_of(task)))
    )


def suits(task):
    """Whether these kernels are probably faster than kernels of other units, by the clocks of both.

    The clocks include the empty parts of tiles, packing and launches.
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
    """Clocks of the plan without one launch, which any other plan has, too; infinite if these kernels have no plan."""
    if not can(task):
        return inf
    plan, clocks = _planned(task)
    return clocks if sum(plan.workspaces) <= _MOST_WORKSPACE else inf


def launches(task):
    return _planned(task)[0]


def _planned(task):
    """The cheapest plan over all joins of groups and phases, and its clocks."""
    planners = (_wgrad,) if task.operation == WGRAD else (_correlate, mma_engine.planned)
    every = (planned(task, join) for join in joins(task) for planned in planners)
    return min((plan for plan in every if plan is not None), key=lambda plan: plan[1])


def _correlate(task, join):
    kind, device, target = kind_of(task), task.device, view(task.target, join.groups)
    (source, filter), steps, sizes = packed_operands(task, kind, join, SOURCE, FILTER)
    batch, groups, channels = target.shape[:3]
    columns = channels * prod(join.phases)
    products = list(products_of(task, kind, join))
    tile, splits, each, clocks = best_tile(kind, device, groups, products, tiles(kind, device))
    clocks += len(steps) * LAUNCH_CLOCKS + 2 * memory_clocks(device, sum(sizes))
    count = stages(kind, tile, device)
    result = result_of(task, kind, target, splits, sizes)
    pointers = (source.number, filter.number, result.number)
    last = result.strides[CHANNELS] == 1
    if not last and kind.size == 2 and kind.planes == 1:
        clocks += prod(target.shape) / (STORED_SINGLY * device.processors)
    for phases in phases_of(task, join):
        arguments = integers(
            correlation(phases, batch, source, filter, channels, columns, splits, each),
            (result.strides, prod(target.shape)),
            (last, result.whole_chunks, join.phases, join != ALONE),
        )
        rows = batch * prod(max(walk.positions for walk in axis) for axis in phases)
        grid = (-(-rows // tile.rows) * -(-columns // tile.columns), prod(map(len, phases)), groups * splits)
        macros, shared = macros_of(kind, tile, count, RESULT=result.element), shared_bytes(kind, tile, count)
        steps.append(Launch("mma.cu", macros, "correlate", grid, (tile.threads, 1, 1), shared, pointers, arguments))
    return Plan(*with_reduction(task, target, result, splits, steps, sizes)), clocks


def _columns_by_engine(task, kind, join, *packed):
    """The number of columns with TMA, or None if TMA cannot copy these operands."""
    operands = zip((view(task.source, join.groups), view(task.target, join.groups)), packed, strict=True)
    operands = [(operand.shape, one) for operand, one in operands]
    groups = task.problem.groups // join.groups
    if engine.declined(task.device, kind, groups, phases_of(task, join), operands) is not None:
        return None
    ((_, columns, _),) = products_of(task, kind, join, engine.CHANNELS)
    return columns if columns <= MOST else None


def engine_brings(task, join=ALONE):
    """Whether TMA can copy the task's operands."""
    if task.operation != WGRAD:
        return mma_engine.planned(task, join) is not None
    packed, *_ = packed_operands(task, kind_of(task), join, SOURCE, TARGET)
    return _columns_by_engine(task, kind_of(task), join, *packed) is not None


def _wgrad(task, join):
    kind, device, groups = kind_of(task), task.device, task.problem.groups // join.groups
    (source, target), steps, sizes = packed_operands(task, kind, join, SOURCE, TARGET)
    ((rows, columns, depth),) = products_of(task, kind, join)
    of_row = -(-_ROW_PARTS // task.target.shape[CHANNELS]) if join.groups > 1 else 0
    by_engine = _columns_by_engine(task, kind, join, source, target)
    tile, each, clocks = best_split(kind, device, groups, rows, columns, depth, tiles(kind, device, True), by_engine)
    count = stages(kind, tile, device, True)
    splits = -(-depth // (each * kind.depth(tile)))
    extents, strides, _ = digits_of(task.filter)
    partials = WORKSPACE + len(sizes)
    walk, batch = task.problem.forward_walk(), task.source.shape[0]
    across, counted, maps = -(-columns // tile.columns), source.channels, ()
    axes = engine.image_axes(phases_of(task, join))
    if tile.engine:
        across, counted = -(-by_engine // tile.columns), -(-source.channels // engine.CHANNELS) * engine.CHANNELS
        maps = engine.filter_gradient_maps(kind, kind.depth(tile), walk, axes, batch, source, target)
    arguments = integers(
        walk,
        batch,
        (counted, task.source.shape[CHANNELS], target.channels, rows, of_row),
        (across, each),
        (source.strides, source.plane),
        (target.strides, target.plane, axes),
    )
    grid = (-(-rows // tile.rows) * across, splits, groups)
    macros, shared = macros_of(kind, tile, count), shared_bytes(kind, tile, count)
    pointers = (source.number, target.number, partials)
    block = (tile.threads, 1, 1)
    steps.append(Launch("mma_wgrad.cu", macros, "wgrad", grid, block, shared, pointers, arguments, maps))
    steps.append(reduce.launch(task.dtype, partials, FILTER, splits, extents, strides))
    clocks += (len(steps) - 1) * LAUNCH_CLOCKS + 2 * memory_clocks(device, sum(sizes))
    return Plan(tuple(steps), (*sizes, reduce.workspace_bytes(task.dtype, splits, extents))), clocks


#: Devices that differ in architecture and shared memory of a block.
_DEVICES = (
    *(Device(80, 108, 163 << 10), Device(86, 84, 99 << 10)),
    Device(90, 132, 227 << 10, grouped=True, engine=True),
)


def variants(devices=_DEVICES):
    """All macro sets that ``launches`` can choose on these devices, as (source, kernel, macros)."""
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
        if kind.size == 2:
            found.add(("transpose.cu", "transpose", packed))
        for device in devices:
            for tile in tiles(kind, device):
                for result in {storage, kind.sums}:
                    macros = macros_of(kind, tile, stages(kind, tile, device), RESULT=result)
                    found.add(("mma.cu", "correlate", macros))
            found |= mma_engine.variants(storage, kind, device)
            for tile in tiles(kind, device, by_depth=True):
                found.add(("mma_wgrad.cu", "wgrad", macros_of(kind, tile, stages(kind, tile, device, True))))
    return sorted(found)
