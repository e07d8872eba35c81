"""How Winograd's algorithm is carried out: tiles, boxes of tiles and blocks of channels, as integers for the kernels.

Pure, like ``plan.py``, and as there nothing depends on the threads but their number itself.
"""

from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from .plan import DGRAD, WGRAD

#: What a task holds is meant to stay in the L2 cache: the transformed tiles of a chunk of channels, and the sums.
VALUES_BYTES = 448 * 1024
SUMS_BYTES = 480 * 1024
#: The transformed filters that are in memory at a time.
FILTER_BYTES = 24 << 20
#: Tiles of a box. A row of them passes through the L1 cache.
MOST_TILES, MOST_TILES_INSIDE, MOST_ROW = 42, 64, 16
MOST_OUTPUTS, MOST_OUTPUTS_INSIDE, MOST_CHUNK = 128, 64, 128
WANTED_TASKS = 8
SHARED_BYTES = 24 << 20
INSIDE_BYTES = 3 << 20


class TileBlocks(NamedTuple):
    """The integers that steer the loops of ``pyx/winograd*.pxd``; the fields are those of ``TileBlocks`` there.

    ``images``: batch extent of a box of tiles. ``chunk``: channels of a window. ``outputs``: output channels of a
    block. ``group``: output channels whose transformed filters are in memory at a time; 0: each task transforms its own.
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
    outputs, chunk, slices : int
        Of these blocks, for the model of the time.
    """

    steps: np.ndarray
    blocks: np.ndarray
    outputs: int
    chunk: int
    slices: int


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


def most_values(walks, points, given, batch):
    """Transformed values of a channel, of the walk that has most."""
    return max(
        batch * prod(n * -(-axis.positions // m) for axis, n, m in zip(*row, strict=True))
        for row in zip(walks, points, given, strict=True)
    )


@lru_cache(maxsize=4096)
def plan(operation, problem, tiling, machine):
    """The plan of an operation whose tiles have, on an axis with t taps, n points for each (t, n) of ``tiling``."""
    walks = tile_walks(operation, problem)
    channels, outputs = problem.x_channels, problem.y_channels
    if operation == DGRAD:
        channels, outputs = outputs, channels
    points_of = dict(tiling)
    points = [[points_of[axis.taps] for axis in walk] for walk in walks]
    most_points = max(map(prod, points))
    given = [[n + 1 - axis.taps for n, axis in zip(row, walk, strict=True)] for row, walk in zip(points, walks)]
    lanes, strip = machine.vector_bytes // 4, machine.tile_column_bytes // 4
    inside = 4 * most_points * channels * outputs * problem.groups > INSIDE_BYTES
    block = min(-(-outputs // strip) * strip, MOST_OUTPUTS_INSIDE if inside else MOST_OUTPUTS)
    tiles = max(1, MOST_TILES_INSIDE if inside else MOST_TILES)
    images, *box = _box(walks, given, problem.batch, tiles)
    count = images * prod(box)
    chunk = min(MOST_CHUNK, VALUES_BYTES // (4 * most_points * count) // lanes * lanes)
    chunk = -(-_even(channels, max(lanes, chunk)) // lanes) * lanes
    slices, shared = 1, False
    if operation == WGRAD:
        block = chunk = 64
        block, chunk = min(block, -(-outputs // strip) * strip), min(chunk, -(-channels // lanes) * lanes)
        tiles = 32
        images, *box = _box(walks, given, problem.batch, tiles)
        boxes = -(-problem.batch // images)
        for axis, m, n in zip(walks[0], given[0], box, strict=True):
            boxes *= -(-axis.positions // (m * n))
        parts = problem.groups * -(-channels // chunk) * -(-outputs // block)
        slices = max(1, min(-(-WANTED_TASKS // parts), boxes // 2))
    group = max(block, FILTER_BYTES // (4 * most_points * channels * problem.groups) // block * block)
    if operation != WGRAD:
        shared = outputs > block and problem.groups * most_values(walks, points, given, problem.batch) * channels * 4 <= SHARED_BYTES
        group = 0 if inside else group
    threads = machine.threads
    rows = [[*sum(walk, ()), *row, *m, *box] for walk, row, m in zip(walks, points, given, strict=True)]
    return TilePlan(
        steps=np.array(rows, np.int64),
        blocks=np.array(TileBlocks(threads, images, chunk, block, group, shared, slices), np.int64),
        outputs=block,
        chunk=chunk,
        slices=slices,
    )
