"""Depthwise convolutions and groups of few channels, at the speed of memory: what each block and each image takes.

``thread_shape.py`` says what a thread does, ``depthwise.cu`` and ``depthwise_wgrad.cu`` what a kernel does.
"""

from math import isqrt, prod

from ..problem import DGRAD, FPROP, WGRAD, even
from . import mma, reduce, simt
from .plan import FILTER, SOURCE, TARGET, WORKSPACE, Launch, Plan, integers
from .thread_shape import channel_stride, shape_of
from .walk_sets import walk_sets

#: Channels of a group beyond which a matrix product is the better way; where the other side of a group has one channel,
#: such a product would have one row or column.
_MOST_CHANNELS, _MOST_MULTIPLIER = 8, 16
_MOST_COORDINATE = 2**29
_MOST_BLOCKS = 2**31 - 1
_THREADS = 256
#: Threads that keep a processor busy, four times over: its last ones are then few beside all. Beyond that, blocks take
#: several images, or more strips, for which the filter and the places of taps are there already.
_WANTED_THREADS = 8192
#: Those of wgrad: the 512 for whose registers a processor has room, four times over, enough where all blocks are alike.
#: More of them are more splits, and ``reduce.cu`` adds those of an element in a few threads, one after another.
_WANTED_FILTER_THREADS = 2048
#: What the filter of a block may take of shared memory.
_FILTER_BYTES = 40 << 10
#: Blocks of channels beside each other, 16 bytes each: whole lines of the cache, and enough is left for positions.
_CHANNEL_THREADS = 16
#: A thread of wgrad has at least so many strips; its sums are then worth the addition across threads.
_LEAST_STRIPS = 8
_ROW_THREADS = 8
#: What share of the ordinary units' products an H200 reached where groups have several channels.
_REACHED = {FPROP: 0.2, DGRAD: 0.2, WGRAD: 0.1}


def can(task):
    """Whether groups are small, channels evenly spaced, all counts within 32 bits, and sums within the registers."""
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
    """Whether these kernels are likely to be the fastest: where groups have several channels, tensor cores may be."""
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
    """Those of batch and of the spatial axes."""
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
    # The channels of a block for which the filter fits, at least those of one thread.
    channel_bytes = taps * shape.ins * shape.channels * task.dtype.compute_itemsize
    most = max(1, _FILTER_BYTES // max(1, channel_bytes))
    if shape.channels_last:
        across = even(blocks, min(most, _CHANNEL_THREADS))
        # Nearly square in positions, so that blocks share little of the source with each other.
        along = even(strips, max(1, isqrt(_THREADS // across)))
        down = min(even(rows, _THREADS // (across * along)), 64)
        along = even(strips, _THREADS // (across * down))
        block = (across, along, down)
    else:
        along = even(strips, 32 if rows > 1 else _THREADS)
        down = even(rows, _THREADS // along)
        across = min(even(blocks, min(most, _THREADS // (along * down))), 64)
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
        across, down = even(blocks, _CHANNEL_THREADS), even(rows, _ROW_THREADS)
        lanes = min(_THREADS // (across * down), strips)
        block = (across, lanes, down)
    else:
        down = even(rows, _ROW_THREADS)
        lanes = min(_THREADS // down, strips)
        across = min(even(blocks, _THREADS // (down * lanes)), 64)
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
