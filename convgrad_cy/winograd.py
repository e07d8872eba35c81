"""How Winograd's algorithm is carried out: tiles, boxes of tiles and blocks of channels, as integers for the kernels.

Pure, like ``plan.py``, and as there nothing depends on the threads but their number itself.
"""

from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from .plan import DGRAD, SERIAL_MULTIPLICATIONS, WGRAD

#: What a task holds is meant to stay in the L2 cache: the transformed tiles of a chunk of channels, and the sums.
VALUES_BYTES = 448 * 1024
SUMS_BYTES = 1040 * 1024
#: Tiles of a box. A row of them passes through the L1 cache.
MOST_TILES, MOST_ROW = 42, 16
MOST_OUTPUTS, MOST_CHUNK = 256, 128
#: Transformed filters go through memory where they are this large, and that pays for this many tiles only. Otherwise,
#: or where they leave the L3 cache, each task transforms those of its outputs, chunk by chunk, for a box of more tiles.
SMALL_FILTER_BYTES, FILTER_BYTES, MANY_TILES = 3 << 20, 24 << 20, 256
MOST_TILES_INSIDE, MOST_OUTPUTS_INSIDE, MOST_CHUNK_INSIDE, MOST_POINTS_INSIDE = 64, 64, 64, 64
#: Transformed tiles are kept for all blocks of outputs where there are several, up to this.
SHARED_BYTES = 24 << 20
#: wgrad: tiles of a box, channels of a block of the filter, and the sums of such a block.
WGRAD_TILES, WGRAD_CHANNELS, WGRAD_SUMS_BYTES = 56, 128, 2400 * 1024
#: Where the filter has fewer blocks, the boxes are cut into slices.
WANTED_TASKS = 8
#: Blocks of a filter for which the transformed tiles of both operands are kept.
SHARING_PARTS = 16


class TileBlocks(NamedTuple):
    """The integers that steer the loops of ``pyx/winograd*.pxd``; the fields are those of ``TileBlocks`` there.

    ``images``: batch extent of a box of tiles. ``chunk``: channels of a window. ``outputs``: output channels of a
    block. ``group``: output channels whose transformed filters are in memory at a time; 0: a task transforms its own.
    ``shared``: transformed tiles of the source are kept for all blocks of outputs. ``slices``: tasks that share the
    boxes of one block of the filter.
    """

    threads: int
    images: int
    chunk: int
    outputs: int
    group: int
    shared: bool
    slices: int


class TilePlan(NamedTuple):
    """One operation on one problem, ready for the kernels.

    Attributes
    ----------
    steps : numpy.ndarray
        The walks to carry out one after the other, each with the points, the outputs and the tiles of a box on its
        three axes: int64, one row for each.
    blocks : numpy.ndarray
        A ``TileBlocks``, as int64.
    chosen : TileBlocks
        The same by name.
    tiles : int
        Of a box.
    memory : int
        Bytes beside the arrays, but for what each thread has.
    """

    steps: np.ndarray
    blocks: np.ndarray
    chosen: TileBlocks
    tiles: int
    memory: int


def _spread(axis):
    """An axis whose taps are further apart than its positions, as axes on which both are equally far."""
    step, tap = axis.source_step, axis.source_tap
    if axis.taps == 1:
        return [axis._replace(source_tap=step)]
    if tap < 0:  # taps in reverse
        last = axis.taps - 1
        reversed_ = axis._replace(
            source_begin=axis.source_begin + last * tap,
            source_tap=-tap,
            filter_begin=axis.filter_begin + last * axis.filter_step,
            filter_step=-axis.filter_step,
        )
        return _spread(reversed_)
    if tap % step:
        return []
    apart = tap // step
    return [
        axis._replace(
            positions=-(-(axis.positions - first) // apart),
            source_begin=axis.source_begin + first * step,
            source_step=tap,
            target_begin=axis.target_begin + first * axis.target_step,
            target_step=axis.target_step * apart,
        )
        for first in range(min(apart, axis.positions))
    ]


def tile_walks(operation, problem):
    """The walks of an operation such that taps and positions are equally far apart; none where that cannot be."""
    walks = problem.backward_walks() if operation == DGRAD else [problem.forward_walk()]
    spread = [[_spread(axis) for axis in walk] for walk in walks]
    if operation == WGRAD and any(len(axes) > 1 for axes in spread[0]):
        return []  # all of them would be summed into one filter
    if any(axis.taps == 0 for walk in walks for axis in walk) or not all(map(all, spread)):
        return []
    return [choice for axes in spread for choice in product(*axes)]


def _even(extent, most):
    """The size of nearly equal parts of at most ``most``."""
    count = -(-extent // max(1, most))
    return -(-extent // max(1, count))


def _box(walks, outputs, batch, most):
    """Extents of a box of at most ``most`` tiles on the axes batch, depth, height, width: rows first."""
    extents = [max(-(-walk[i].positions // m[i]) for walk, m in zip(walks, outputs, strict=True)) for i in range(3)]
    box = [_even(extents[2], min(most, MOST_ROW))]
    for extent in (extents[1], extents[0], batch):
        most = max(1, most // box[-1])
        box.append(_even(extent, most))
    return box[::-1]


def points_of(tiling, walks):
    """The points on the axes of each walk."""
    return [[table[axis.taps] for table, axis in zip(map(dict, tiling), walk, strict=True)] for walk in walks]


def _boxes(walks, given, batch, images, box):
    """Boxes of so many images and tiles, of the walk that has most."""
    return -(-batch // images) * max(
        prod(-(-axis.positions // (m * n)) for axis, m, n in zip(walk, row, box, strict=True))
        for walk, row in zip(walks, given, strict=True)
    )


def _correlation(walks, given, points, groups, channels, outputs, batch, lanes, strip):
    """(blocks, tiles of a box, bytes) of fprop and dgrad."""
    filters = 4 * points * channels * groups
    tiles = _boxes(walks, given, batch, 1, (1, 1, 1))
    most = FILTER_BYTES if tiles >= MANY_TILES else SMALL_FILTER_BYTES
    inside = points <= MOST_POINTS_INSIDE and filters * outputs > most
    block = min(-(-outputs // strip) * strip, MOST_OUTPUTS_INSIDE if inside else MOST_OUTPUTS)
    if points > MOST_POINTS_INSIDE:
        block = min(block, MOST_OUTPUTS_INSIDE)
    most = min(MOST_TILES_INSIDE if inside else MOST_TILES, SUMS_BYTES // (4 * points * block))
    images, *box = _box(walks, given, batch, max(1, most))
    count = images * prod(box)
    chunk = MOST_CHUNK_INSIDE if inside else min(MOST_CHUNK, VALUES_BYTES // (4 * points * count) // lanes * lanes)
    chunk = -(-_even(channels, max(lanes, chunk)) // lanes) * lanes
    values = 4 * points * count * chunk * -(-channels // chunk) * groups * _boxes(walks, given, batch, images, box)
    shared = outputs > block and values <= SHARED_BYTES
    group = 0 if inside else max(block, FILTER_BYTES // filters // block * block)
    memory = (values if shared else 0) + filters * min(group, -(-outputs // strip) * strip)
    return TileBlocks(1, images, chunk, block, group, shared, 1), box, memory


def _accumulation(walks, given, points, groups, channels, outputs, batch, lanes, strip):
    """The same of wgrad."""
    block = min(-(-outputs // strip) * strip, WGRAD_CHANNELS)
    chunk = min(WGRAD_CHANNELS, WGRAD_SUMS_BYTES // (4 * points * block) // lanes * lanes)
    chunk = min(max(lanes, chunk), -(-channels // lanes) * lanes)
    images, *box = _box(walks, given, batch, WGRAD_TILES)
    parts = groups * -(-channels // chunk) * -(-outputs // block)
    slices = max(1, min(-(-WANTED_TASKS // parts), _boxes(walks, given, batch, images, box) // 2))
    memory = 4 * points * parts * slices * chunk * block if slices > 1 else 0
    tiles = groups * images * prod(box) * _boxes(walks, given, batch, images, box)
    values = 4 * points * tiles * (-(-channels // chunk) * chunk + -(-outputs // block) * block)
    shared = parts >= SHARING_PARTS * groups and values <= SHARED_BYTES
    return TileBlocks(1, images, chunk, block, 0, shared, slices), box, memory + (values if shared else 0)


@lru_cache(maxsize=4096)
def plan(operation, problem, tiling, machine):
    """The plan of an operation whose tiles have, on an axis with t taps, n points for each (t, n) of its ``tiling``."""
    walks = tile_walks(operation, problem)
    points = points_of(tiling, walks)
    given = [
        [n + 1 - axis.taps for n, axis in zip(row, walk, strict=True)] for row, walk in zip(points, walks, strict=True)
    ]
    channels, outputs = problem.x_channels, problem.y_channels
    if operation == DGRAD:
        channels, outputs = outputs, channels
    sizes = max(map(prod, points)), problem.groups, channels, outputs, problem.batch
    vectors = machine.vector_bytes // 4, machine.tile_column_bytes // 4
    blocks, box, memory = (_accumulation if operation == WGRAD else _correlation)(walks, given, *sizes, *vectors)
    serial = problem.multiplications < SERIAL_MULTIPLICATIONS
    blocks = blocks._replace(threads=1 if serial else machine.threads)
    rows = [[*sum(walk, ()), *row, *m, *box] for walk, row, m in zip(walks, points, given, strict=True)]
    return TilePlan(
        steps=np.array(rows, np.int64),
        blocks=np.array(blocks, np.int64),
        chosen=blocks,
        tiles=blocks.images * prod(box),
        memory=memory,
    )
