"""Depthwise convolutions and groups of few channels, at the speed of memory: the division of the work into blocks.

``thread_shape.py`` chooses the work of a thread. ``depthwise.cu`` and ``depthwise_wgrad.cu`` are the kernels.
"""

from math import isqrt, prod

from ..problem import DGRAD, FPROP, WGRAD, balanced_size
from . import mma, reduce, simt
from .plan import FILTER, SOURCE, TARGET, WORKSPACE, Launch, Plan, integers
from .thread_shape import channel_stride, shape_of
from .walk_sets import walk_sets

#: Most channels of a group; for more, matrix products are faster. The second limit holds if one side of a group has one
#: channel, because such a matrix product would have one row or column.
_MOST_CHANNELS, _MOST_MULTIPLIER = 8, 16
_MOST_COORDINATE = 2**29
_MOST_BLOCKS = 2**31 - 1
_THREADS = 256
#: Threads for each multiprocessor: four times as many as keep it busy, so that the idle time at the end is short. If
#: there are more, a block takes several images, and reuses the filter and the offsets of taps.
_WANTED_THREADS = 8192
#: The same number for wgrad: four times the 512 threads whose registers fit on a multiprocessor. This is enough,
#: because all blocks are equal. More threads mean more splits, which few threads of ``reduce.cu`` add one by one.
_WANTED_FILTER_THREADS = 2048
#: Most bytes of shared memory for the filter of a block.
_FILTER_BYTES = 40 << 10
#: Threads along the channels, 16 bytes each. They read whole cache lines and leave enough threads for positions.
_CHANNEL_THREADS = 16
#: Least number of strips of a thread of wgrad. With fewer, the addition across threads costs too much.
_LEAST_STRIPS = 8
_ROW_THREADS = 8
#: Fraction of the peak rate of the ordinary arithmetic units that an H200 reached for groups of several channels.
_REACHED = {FPROP: 0.2, DGRAD: 0.2, WGRAD: 0.1}


def can(task):
    """Whether groups are small, channels are evenly spaced, counts fit into 32 bits, and sums into registers."""
    ins, out = task.source.shape[2], task.target.shape[2]
    most = _MOST_MULTIPLIER if min(ins, out) == 1 else _MOST_CHANNELS
    if max(ins, out) > most or (task.problem.groups == 1 and ins * out > 1):
        return False
    if not (task.source.has_even_channels and task.target.has_even_channels):
        return False
    sets = walk_sets(task)
    walks = [walk for walks in sets for axis in walks for walk in axis]
    if any(max(*map(abs, walk.extremes()), walk.source_size, walk.positions) >= _MOST_COORDINATE for walk in walks):
        return False
    if task.operation == WGRAD:
        positions, elements = task.problem.batch * prod(task.target.shape[3:]), prod(task.filter.shape)
        return positions < 2**31 and elements <= reduce.MOST_ELEMENTS and _shape_of_wgrad(task) is not None
    planned = [_correlate(task, walks) for walks in sets]
    return all(launch.shared <= _FILTER_BYTES and launch.grid[0] <= _MOST_BLOCKS for launch in planned)


def suits(task):
    """Whether these kernels are probably the fastest. For groups of several channels, tensor cores may be faster."""
    if not can(task):
        return False
    if min(task.source.shape[2], task.target.shape[2]) == 1:
        return True
    return task.problem.multiplications / (_REACHED[task.operation] * simt.rate(task) * task.device.processors) <= (
        mma.clocks(task)
    )


def launches(task):
    if task.operation == WGRAD:
        return _wgrad(task)
    return Plan(tuple(_correlate(task, walks) for walks in walk_sets(task)))


def _inner(strides):
    """The strides of the batch and of the spatial axes."""
    return (strides[0], *strides[3:])


def _macros(task, shape, **others):
    values = {"STORAGE": task.dtype.cuda, **shape.macros(), **others}
    return tuple((name, str(values[name])) for name in sorted(values))


def _correlate(task, walks):
    shape = shape_of(task, walks[2])
    batch, channels = task.problem.batch, task.problem.groups * shape.out
    depths, rows, row = (max(walk.positions for walk in axis) for axis in walks)
    taps = prod(max(walk.taps for walk in axis) for axis in walks)
    strips, blocks = -(-row // shape.positions), channels // shape.channels
    # Most blocks of channels whose filter fits; at least one, the channels of one thread.
    channel_bytes = taps * shape.ins * shape.channels * task.dtype.compute_itemsize
    most = max(1, _FILTER_BYTES // max(1, channel_bytes))
    if shape.channels_last:
        across = balanced_size(blocks, min(most, _CHANNEL_THREADS))
        # Blocks are nearly square in positions, so that their halos are small.
        along = balanced_size(strips, max(1, isqrt(_THREADS // across)))
        down = min(balanced_size(rows, _THREADS // (across * along)), 64)
        along = balanced_size(strips, _THREADS // (across * down))
        block = (across, along, down)
    else:
        along = balanced_size(strips, 32 if rows > 1 else _THREADS)
        down = balanced_size(rows, _THREADS // along)
        across = min(balanced_size(blocks, min(most, _THREADS // (along * down))), 64)
        block = (along, down, across)
    tiles = (-(-blocks // across), -(-strips // along), -(-rows // down))
    once = prod(tiles) * depths * prod(map(len, walks))
    turns = min(batch, -(-_WANTED_THREADS * task.device.processors // (once * prod(block))))
    images = -(-batch // turns)
    macros = _macros(
        task,
        shape,
        PADDED=int(any(walk.is_padded() for axis in walks for walk in axis)),
        WALKS=sum(map(len, walks)),
    )
    arguments = integers(
        (batch, channels, *tiles, depths, images),
        (_inner(task.source.strides), task.filter.strides, _inner(task.target.strides)),
        (channel_stride(task.source), channel_stride(task.target)),
        [len(axis) for axis in walks],
        *walks,
    )
    grid = (once * -(-batch // images), 1, 1)
    pointers = (SOURCE, FILTER, TARGET)
    return Launch("depthwise.cu", macros, "correlate", grid, block, across * channel_bytes, pointers, arguments)


def _shape_of_wgrad(task):
    return shape_of(task, [task.problem.forward_walk()[2]], sums_of_filter=True)


def _wgrad(task):
    depth, height, width = task.problem.forward_walk()
    shape = _shape_of_wgrad(task)
    channels = task.problem.groups * shape.out
    strips = task.problem.batch * depth.positions * height.positions * -(-width.positions // shape.positions)
    rows = depth.taps * height.taps * -(-width.taps // shape.taps)
    blocks = channels // shape.channels
    if shape.channels_last:
        across, down = balanced_size(blocks, _CHANNEL_THREADS), balanced_size(rows, _ROW_THREADS)
        lanes = min(_THREADS // (across * down), strips)
        block = (across, lanes, down)
    else:
        down = balanced_size(rows, _ROW_THREADS)
        lanes = min(_THREADS // down, strips)
        across = min(balanced_size(blocks, _THREADS // (down * lanes)), 64)
        block = (lanes, down, across)
    tiles = (-(-blocks // across), -(-rows // down))
    wanted = -(-_WANTED_FILTER_THREADS * task.device.processors // (prod(tiles) * prod(block)))
    split = -(-strips // max(1, min(wanted, strips // (lanes * _LEAST_STRIPS))))
    splits = -(-strips // split)
    group, out, ins, *taps = zip(task.filter.shape, task.filter.strides, strict=True)
    extents, strides = zip(group, *taps, ins, out, strict=True)
    arguments = integers(
        (channels, *tiles, strips, split, prod(extents)),
        (_inner(task.source.strides), _inner(task.target.strides)),
        (channel_stride(task.source), channel_stride(task.target)),
        depth,
        height,
        width,
    )
    grid, pointers = (prod(tiles) * splits, 1, 1), (SOURCE, TARGET, WORKSPACE)
    launch = Launch("depthwise_wgrad.cu", _macros(task, shape), "wgrad", grid, block, 0, pointers, arguments)
    total = reduce.launch(task.dtype, WORKSPACE, FILTER, splits, extents, strides)
    return Plan((launch, total), (reduce.workspace_bytes(task.dtype, splits, extents),))
