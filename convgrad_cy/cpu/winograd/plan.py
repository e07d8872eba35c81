"""How Winograd's algorithm is carried out: tiles, boxes of tiles and blocks of channels, as integers for the kernels.

Pure, like ``direct/plan.py``, and as there all that reaches a bit is decided by what sees neither threads nor caches.
"""

from functools import lru_cache
from itertools import chain
from math import prod
from typing import NamedTuple

import numpy as np

from ...bounded import count
from ...problem import DGRAD, WGRAD, even
from ..cache import is_streamed, operand_bytes
from ..machines import LINE_BYTES, SERIAL_MULTIPLICATIONS
from .walks import first_walks, tile_walks

#: What a task holds is meant to stay in the L2 cache: the transformed tiles of a chunk of channels, and the sums. These
#: are more where vectors are lines and points are few: the more tiles, the less often are filters read.
VALUES_BYTES = 448 * 1024
SUMS_BYTES, WIDE_SUMS_BYTES = 1040 * 1024, 1300 * 1024
#: Tiles of a box. A row of them passes through the L1 cache.
MOST_TILES, MOST_ROW = 42, 16
MOST_OUTPUTS, MOST_CHUNK = 256, 128
#: Transformed filters go through memory where they are this large, and that pays for this many tiles only. Otherwise,
#: or where they leave the L3 cache, each task transforms those of its outputs, chunk by chunk, for a box of more tiles,
#: up to so many sums of a point (the second number where vectors are lines). With more points a task has few outputs,
#: but does not do that. Where vectors are lines, a chunk is the larger one if its filters then stay in the L2 cache.
SMALL_FILTER_BYTES, FILTER_BYTES, MANY_TILES = 3 << 20, 24 << 20, 256
MOST_SUMS_INSIDE, WIDE_SUMS_INSIDE = 4096, 8192
MOST_OUTPUTS_INSIDE, MOST_POINTS_INSIDE = 32, 64
CHUNK_INSIDE, WIDE_CHUNK_INSIDE, WIDE_INSIDE_BYTES = 64, 128, 832 * 1024
FEW_OUTPUTS = 64
#: Tiles of so many channels are transformed before they are multiplied: the sums of a point then stay in the cache.
SPAN_BYTES = 4 << 20
#: Transformed tiles are kept for all blocks of outputs where there are several, up to this; for two, up to the second.
SHARED_BYTES, SHARED_BY_TWO_BYTES = 24 << 20, 8 << 20
#: wgrad: tiles of a box, channels of a block of the filter, and the sums of such a block.
WGRAD_TILES, WGRAD_CHANNELS, WGRAD_SUMS_BYTES = 56, 128, 2400 * 1024
#: Where there are few tasks, its blocks of outputs are halved down to this: each transforms the source again.
LEAST_OUTPUTS = 64
#: Tasks for all threads: where there are fewer, blocks of outputs are halved. In wgrad boxes are cut into slices first;
#: with one slice only, and tiles that can be kept, blocks are halved up to the second number.
WANTED_TASKS, MORE_TASKS = 8, 24
#: Groups of so many outputs, a vector of 32 bytes, are taken together up to a cache line of channels; fprop and dgrad
#: up to two vectors if these are more, then also groups of a whole vector, and in boxes of more tiles.
BUNDLE_OUTPUTS, BUNDLE_CHANNELS, MOST_BUNDLE_TILES = 8, 16, 56
#: Blocks of a filter for which the transformed tiles of both operands are kept. Where there are several walks, as with
#: a stride, those of the target serve them all: with so many lanes, which make the products short, for any number.
SHARING_PARTS, SHARING_LANES = 16, 16


class TileBlocks(NamedTuple):
    """The integers that steer the loops of ``pyx/winograd/``; the fields are those of ``TileBlocks`` there.

    ``images``: of a box of tiles, those of each sibling counted. ``chunk``: channels of a window. ``outputs``: output
    channels of a block. ``group``: output channels whose transformed filters are in memory at a time; 0: a task
    transforms its own. ``shared``: transformed tiles of the source are kept for all blocks of outputs. ``slices``:
    tasks that share the boxes of one block of the filter. ``span``: chunks that a task of fprop or dgrad transforms
    before it multiplies. ``groups``: neighbours that a task takes, with all their channels in one window and all their
    outputs in one block. ``streams``: a target of whole lines is stored past the cache.
    """

    threads: int
    images: int
    chunk: int
    outputs: int
    group: int
    shared: bool
    slices: int
    span: int
    groups: int
    streams: bool = False


class TileChoice(NamedTuple):
    """How one operation on one problem is carried out.

    Attributes
    ----------
    chosen : TileBlocks
    box : list
        Tiles of a box on the axes depth, height, width.
    tiles : int
        Of a box.
    memory : int
        Bytes beside the arrays, but for what each thread has.
    tasks : int
        That multiply, of the walk that has most.
    """

    chosen: TileBlocks
    box: list
    tiles: int
    memory: int
    tasks: int


class TilePlan(NamedTuple):
    """The same, ready for the kernels.

    Attributes
    ----------
    steps : numpy.ndarray
        The walks of each part of the result, siblings and those whose sums are added, as ``tile_walks`` has them. Each
        with the points, the outputs, the tiles of a box and the taps that the filter holds on its three axes; of how
        many walks, this one and the next, the sums are added; and how many siblings there are: int64, one row for each.
    blocks : numpy.ndarray
        A ``TileBlocks``, as int64.
    chosen : TileBlocks
        The same by name.
    """

    steps: np.ndarray
    blocks: np.ndarray
    chosen: TileBlocks


def _half(block, strip):
    """Half of a block of strips, in whole strips."""
    return -(-(block // strip) // 2) * strip


def _box(walks, outputs, batch, most):
    """Extents of a box of at most ``most`` tiles on the axes batch, depth, height, width: rows first."""
    extents = [max(-(-walk[i].positions // m[i]) for walk, m in zip(walks, outputs, strict=True)) for i in range(3)]
    box = [even(extents[2], min(most, MOST_ROW))]
    for extent in (extents[1], extents[0], batch):
        most = max(1, most // box[-1])
        box.append(even(extent, most))
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


def _bundle_channels(channels, outputs, lanes, sums_positions):
    """Channels of the groups that a task takes together, or 0 if it takes one."""
    whole = outputs == BUNDLE_OUTPUTS or (outputs == lanes > BUNDLE_OUTPUTS and not sums_positions)
    if channels == 1 or not whole:
        return 0
    return BUNDLE_CHANNELS if sums_positions else max(BUNDLE_CHANNELS, 2 * lanes)


def _bundled(blocks, groups, channels, outputs, tasks, lanes, most):
    """The blocks of tasks that take groups of ``most`` channels together, and how many tasks there are then.

    Few channels of channels last are a part of a cache line, or of a vector.
    """
    if channels > blocks.chunk:
        return blocks, tasks
    count = max(1, min(most // max(channels, outputs), tasks // WANTED_TASKS, groups))
    chunk, block = (-(-count * each // lanes) * lanes for each in (channels, outputs))
    group = max(block, blocks.group // block * block) if blocks.group else 0
    return blocks._replace(chunk=chunk, outputs=block, group=group, groups=count), -(-groups // count) * tasks // groups


def _correlation(walks, given, added, points, groups, channels, outputs, batch, lanes, strip):
    """(blocks, tiles of a box, bytes, tasks) of fprop and dgrad, where the sums of so many walks are added."""
    filters, wide = 4 * points * channels * groups * added, 4 * lanes >= LINE_BYTES
    tiles = _boxes(walks, given, batch, 1, (1, 1, 1))
    most = FILTER_BYTES if tiles >= MANY_TILES else SMALL_FILTER_BYTES
    few_points = points <= MOST_POINTS_INSIDE
    inside = few_points and filters * outputs > most
    block = MOST_OUTPUTS_INSIDE if inside else MOST_OUTPUTS if few_points else FEW_OUTPUTS
    block = min(-(-outputs // strip) * strip, max(strip, block))
    bundle = 0 if inside else _bundle_channels(channels, outputs, lanes, False)  # inside are the filters of one group
    most = MOST_BUNDLE_TILES if bundle and groups > 1 else MOST_TILES
    if inside:
        most = (WIDE_SUMS_INSIDE if wide else MOST_SUMS_INSIDE) // block
    sums_bytes = WIDE_SUMS_BYTES if wide and few_points else SUMS_BYTES
    most = min(most, sums_bytes // (4 * points * block))
    images, *box = _box(walks, given, batch, max(1, most))
    count = images * prod(box)
    if inside:
        held = 4 * points * block * added * WIDE_CHUNK_INSIDE
        chunk = WIDE_CHUNK_INSIDE if wide and held <= WIDE_INSIDE_BYTES else CHUNK_INSIDE
    else:
        chunk = min(MOST_CHUNK, VALUES_BYTES // (4 * points * count) // lanes * lanes)
    chunk = -(-even(channels, max(lanes, chunk)) // lanes) * lanes
    boxes = groups * _boxes(walks, given, batch, images, box)
    while boxes * -(-outputs // block) < WANTED_TASKS and block > strip:
        block = _half(block, strip)
    values = 4 * points * count * chunk * -(-channels // chunk) * added * boxes
    shared = outputs > block and values <= (SHARED_BYTES if outputs > 2 * block else SHARED_BY_TWO_BYTES)
    group = 0 if inside else max(block, FILTER_BYTES // filters // block * block)
    memory = (values if shared else 0) + filters * min(group, -(-outputs // strip) * strip)
    chunks = added * -(-channels // chunk)
    span = 1 if inside else max(1, min(chunks, SPAN_BYTES // (4 * points * count * chunk)))
    blocks, tasks = TileBlocks(1, images, chunk, block, group, shared, 1, span, 1), boxes * -(-outputs // block)
    if bundle:
        blocks, tasks = _bundled(blocks, groups, channels, outputs, tasks, lanes, bundle)
    return blocks, box, memory, tasks


def _accumulation(walks, given, points, taps, groups, channels, outputs, batch, lanes, strip):
    """The same of wgrad."""
    block = min(-(-outputs // strip) * strip, WGRAD_CHANNELS)
    chunk = min(WGRAD_CHANNELS, WGRAD_SUMS_BYTES // (4 * points * block) // lanes * lanes)
    chunk = min(max(lanes, chunk), -(-channels // lanes) * lanes)
    images, *box = _box(walks, given, batch, WGRAD_TILES)
    parts = groups * -(-channels // chunk) * -(-outputs // block)
    boxes = _boxes(walks, given, batch, images, box)
    slices = max(1, min(-(-WANTED_TASKS // parts), boxes // 2))
    tiles = groups * images * prod(box) * boxes
    values = 4 * points * tiles * (-(-channels // chunk) * chunk + -(-outputs // block) * block)
    wanted = MORE_TASKS if slices == 1 and values <= SHARED_BYTES else WANTED_TASKS
    while parts * slices < wanted and block > max(strip, LEAST_OUTPUTS):
        block = _half(block, strip)
        parts = groups * -(-channels // chunk) * -(-outputs // block)
    memory = 4 * taps * parts * slices * chunk * block if slices > 1 else 0
    many = parts >= SHARING_PARTS * groups or (len(walks) > 1 and lanes >= SHARING_LANES)
    shared = many and values <= SHARED_BYTES
    memory += values if shared else 0
    blocks, tasks = TileBlocks(1, images, chunk, block, 0, shared, slices, 1, 1), parts * slices
    bundle = _bundle_channels(channels, outputs, lanes, True)
    if bundle and not shared:
        blocks, tasks = _bundled(blocks, groups, channels, outputs, tasks, lanes, bundle)
    return blocks, box, memory, tasks


def _points_and_outputs(tiling, walks):
    """Those of a tile on the axes of each walk."""
    points = points_of(tiling, walks)
    each = zip(points, walks, strict=True)
    return points, [[n + 1 - axis.taps for n, axis in zip(row, walk, strict=True)] for row, walk in each]


@lru_cache(maxsize=64)
def choose(operation, problem, tiling, tile):
    """The choices for tiles that have, on an axis with t taps, n points for each (t, n) of its ``tiling``.

    They decide the order of sums, and see no layout, no cache and no number of threads.
    """
    parts = tile_walks(operation, problem).parts
    walks = first_walks(parts)
    points, given = _points_and_outputs(tiling, walks)
    channels, outputs = problem.channels(operation == DGRAD)
    lanes = tile.vector_bytes // 4
    strip = min(tile.tile_column_bytes // 4, -(-outputs // lanes) * lanes)
    batch = problem.batch * max(map(len, parts))  # each sibling has images of its own
    most_points, sizes = max(map(prod, points)), (problem.groups, channels, outputs, batch, lanes, strip)
    if operation == WGRAD:
        taps = max(prod(axis.taps for axis in walk) for walk in walks)
        blocks, box, memory, tasks = _accumulation(walks, given, most_points, taps, *sizes)
    else:
        added = max(len(part[0]) for part in parts)
        blocks, box, memory, tasks = _correlation(walks, given, added, most_points, *sizes)
    return TileChoice(blocks, box, blocks.images * prod(box), memory, tasks)


def plan(operation, problem, tiling, machine):
    """The plan that ``choose`` describes, with what else the machine says."""
    chosen, box, *_ = choose(operation, problem, tiling, machine.tile)
    threads = 1 if problem.multiplications < SERIAL_MULTIPLICATIONS else machine.threads
    target = operand_bytes(problem, 4)[0 if operation == DGRAD else 1]
    chosen = chosen._replace(threads=threads, streams=operation != WGRAD and is_streamed(target, machine))
    every, parts, _ = tile_walks(operation, problem)
    rows = [
        [
            [*sum((axis.walk for axis in walk), ()), *n, *m, *box, *(axis.held for axis in walk), len(added), len(part)]
            for added in part
            for walk in added
        ]
        for part, n, m in zip(parts, *_points_and_outputs(tiling, first_walks(parts)), strict=True)
    ]
    if operation == WGRAD:  # one walk has all parts
        rows = [[*chain(*rows)]]
    steps, _ = every.rows(rows)
    count(steps.nbytes)
    return TilePlan(steps, np.array(chosen, np.int64), chosen)
