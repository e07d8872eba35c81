"""Plans of ``mma_engine.cu``: correlations on tensor cores of sm_90a whose operands TMA copies."""

from math import prod

from . import engine
from .costs import ENGINE_ADVANTAGE, HALF_EMPTY, LAUNCH_CLOCKS, best_tile, memory_clocks
from .joins import ALONE, view
from .operands import Result, correlation, macros_of, packed_operands, result_of, with_reduction
from .pack import CHANNELS, Packed
from .plan import FILTER, SOURCE, WORKSPACE, Launch, Plan, integers
from .products import MOST, kind_of, phases_of, products_of
from .tiles import by_engine, residence, shared_bytes
from .transpose import unpacking


def _by_depth(task, kind):
    """The filter without a copy, or None: the target's channels must be contiguous, and the source's fill chunks."""
    filter = task.filter
    _, _, ins, *_ = filter.shape
    steps = [step for axis, step in enumerate(filter.strides) if axis != 1 and filter.shape[axis] > 1]
    if filter.strides[1] != 1 or ins % kind.chunk or not filter.aligned or any(step % kind.chunk for step in steps):
        return None
    strides = [step if size > 1 else 0 for step, size in zip(filter.strides, filter.shape, strict=True)]
    return Packed(FILTER, tuple(strides), 0, ins, None, 0)


def _operands(task, kind, join):
    """Source and filter, whether the filter is by depth, the launches that pack them, and their workspace sizes."""
    (source, filter), steps, sizes = packed_operands(task, kind, join, SOURCE, FILTER)
    as_it_lies = None if join != ALONE or filter.launch is None else _by_depth(task, kind)
    if as_it_lies is not None:
        (source,), steps, sizes = packed_operands(task, kind, join, SOURCE)
    return source, as_it_lies or filter, as_it_lies is not None, steps, sizes


def planned(task, join):
    """A plan and its clocks, or None if TMA cannot copy the operands, or the result cannot be stored in chunks."""
    kind, device = kind_of(task), task.device
    compiled, phases = by_engine(kind, device), phases_of(task, join)
    if not compiled:
        return None
    target = view(task.target, join.groups)
    source, filter, by_depth, steps, sizes = _operands(task, kind, join)
    batch, groups, channels = target.shape[:3]
    operands = [(view(task.source, join.groups).shape, source), (task.filter.shape, filter)]
    products = list(products_of(task, kind, join, engine.CHANNELS))
    if engine.declined(device, kind, groups, phases, operands) is not None or max(map(max, products)) > MOST:
        return None
    tile, splits, each, clocks = best_tile(kind, device, groups, products, compiled)
    if source.channels <= engine.CHANNELS // 2:
        clocks *= HALF_EMPTY
    result, last = result_of(task, kind, target, splits, sizes), ()
    if result.strides[CHANNELS] != 1 or not result.whole_chunks:
        number = WORKSPACE + len(sizes)
        unpacked = unpacking(target, task.dtype, kind, number) if splits == 1 else None
        if unpacked is None:
            return None
        # A chunk may have columns beyond the last channel, but none of another joined phase: these have 32 channels.
        result, last = Result(number, result.element, unpacked.strides, True), (unpacked.launch,)
        sizes.append(unpacked.size)
    clocks += len((*steps, *last)) * LAUNCH_CLOCKS + 2 * memory_clocks(device, sum(sizes))
    blocks, count = residence(kind, tile, device)
    columns, axes = channels * prod(join.phases), engine.image_axes(phases)
    macros = macros_of(kind, tile, count, RESULT=result.element, FILTER_BY_DEPTH=int(by_depth))
    for walks in phases:
        rows = batch * prod(max(walk.positions for walk in axis) for axis in walks)
        tiles = -(-rows // tile.rows) * -(-columns // tile.columns)
        every = tiles * splits * prod(map(len, walks))
        arguments = integers(
            correlation(walks, batch, source, filter, channels, columns, splits, each),
            (result.strides, prod(target.shape)),
            (True, True, join.phases, join != ALONE, axes, tiles, every),
        )
        steps.append(
            Launch(
                "mma_engine.cu",
                macros,
                "correlate",
                (min(every, device.processors * blocks), 1, 1),
                (tile.threads, 1, 1),
                shared_bytes(kind, tile, count),
                (source.number, filter.number, result.number),
                arguments,
                engine.correlation_maps(kind, tile, walks, axes, batch, source, filter, columns, by_depth),
            )
        )
    steps += last
    return Plan(*with_reduction(task, target, result, splits, steps, sizes)), clocks / ENGINE_ADVANTAGE


def variants(storage, kind, device):
    """All macro sets that plans can have."""
    return {
        (
            "mma_engine.cu",
            "correlate",
            macros_of(kind, tile, residence(kind, tile, device)[1], RESULT=result, FILTER_BY_DEPTH=by_depth),
        )
        for tile in by_engine(kind, device)
        for result in (storage, kind.sums)
        for by_depth in (0, 1)
    }
