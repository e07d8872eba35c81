"""Plans of Winograd's algorithm: tiles, boxes of tiles and blocks of channels, as integers for the kernels.

``tilings.py`` decides the tiling. ``choose`` makes all further decisions that affect the result's bits; it receives
neither threads nor caches nor the layout. ``plan`` adds the decisions that depend on these. Both are pure functions.

In these files, *outputs* are output channels. A tile of F(m, r) computes m positions of the target: m is its *size*.
It has m + r - 1 *points*, and r taps.
"""

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...memo.bounded import count
from ...problem import DGRAD, WGRAD, balanced_size
from ..machine.caches import is_streamed, operand_bytes
from ..plan.steps import TileBlocks
from ..plan.threads import threads_of
from .cuts import Cutting, cut_accumulation, cut_correlation
from .memory import shared_bytes
from .walks import points_and_outputs, tile_rows, tile_walks

#: Bytes of a transformed value and of a sum.
FLOAT_BYTES = 4


class Sizes(NamedTuple):
    """The sizes of a problem and of the register tile. They decide the sizes of blocks."""

    groups: int
    channels: int  # of the source, in a group
    outputs: int  # channels of the target, in a group
    batch: int  # each sibling counts as images of its own
    lanes: int  # of a vector
    strip: int  # output channels of a register tile
    tuning: Any


class TileChoice(NamedTuple):
    """The choices for one operation on one problem.

    Attributes
    ----------
    chosen : TileBlocks
    box : list
        Tiles of a box on the axes depth, height, width.
    tiles : int
        Tiles of a box, in all its images.
    memory : int
        Bytes that all tasks share, before blocks are cut for many threads.
    tasks : int
        Tasks that multiply, for the walk with the most tasks.
    """

    chosen: TileBlocks
    box: list
    tiles: int
    memory: int
    tasks: int


class TilePlan(NamedTuple):
    """A plan, ready for the kernels.

    Attributes
    ----------
    steps : numpy.ndarray
        One int64 row for each walk of each part of the result, siblings included, in the order of ``tile_rows``. After
        the fields of the walk: points of a tile, its positions of the target, tiles of a box, and taps of the filter,
        each on three axes. Then the number of consecutive walks whose sums are added, and the number of siblings.
    blocks : numpy.ndarray
        A ``TileBlocks``, as int64.
    chosen : TileBlocks
        These integers by name.
    """

    steps: np.ndarray
    blocks: np.ndarray
    chosen: TileBlocks


def _half(block, strip):
    """Half of a block, rounded up to whole strips."""
    return -(-(block // strip) // 2) * strip


def _box(walks, tile_sizes, batch, size, max_row):
    """Extents of a box of at most ``size`` tiles on the axes batch, depth, height, width. Rows are filled first.

    ``tile_sizes``: for each walk, the positions of a tile on three axes.
    """
    extents = [max(-(-walk[i].positions // m[i]) for walk, m in zip(walks, tile_sizes, strict=True)) for i in range(3)]
    box = [balanced_size(extents[2], min(size, max_row))]
    for extent in (extents[1], extents[0], batch):
        size = max(1, size // box[-1])
        box.append(balanced_size(extent, size))
    return box[::-1]


def _boxes(walks, tile_sizes, batch, images, box):
    """Number of boxes of ``images`` images and ``box`` tiles, for the walk with the most boxes."""
    return -(-batch // images) * max(
        prod(-(-axis.positions // (m * n)) for axis, m, n in zip(walk, row, box, strict=True))
        for walk, row in zip(walks, tile_sizes, strict=True)
    )


def _bundle_channels(channels, outputs, lanes, sums_positions, tuning):
    """Maximum channels of all groups that a task takes together; 0 if it takes one group."""
    few, most = tuning.bundled_outputs, tuning.bundled_channels
    whole = outputs == few or (outputs == lanes > few and not sums_positions)
    if channels == 1 or not whole:
        return 0
    return most if sums_positions else max(most, 2 * lanes)


def _bundled(blocks, groups, channels, outputs, tasks, lanes, most, wanted):
    """(blocks, tasks) if a task takes several groups, up to ``most`` channels, and at least ``wanted`` tasks remain.

    With channels last, the few channels of one group fill only a part of a cache line or vector.
    """
    if channels > blocks.chunk:
        return blocks, tasks
    count = max(1, min(most // max(channels, outputs), tasks // wanted, groups))
    chunk, block = (-(-count * each // lanes) * lanes for each in (channels, outputs))
    kept = max(block, blocks.filters_kept // block * block) if blocks.filters_kept else 0
    blocks = blocks._replace(chunk=chunk, outputs=block, filters_kept=kept, groups=count)
    return blocks, -(-groups // count) * tasks // groups


def _correlation(walks, tile_sizes, added, points, sizes):
    """(blocks, tiles of a box, tasks) of fprop and dgrad.

    ``added``: number of walks whose sums are added. ``points``: maximum points of a tile. ``sizes``: the ``Sizes``.
    """
    groups, channels, outputs, batch, lanes, strip, tuning = sizes
    filters = FLOAT_BYTES * points * channels * groups * added  # bytes of the transformed filters of one output
    tiles = _boxes(walks, tile_sizes, batch, 1, (1, 1, 1))
    most = tuning.kept_bytes if tiles >= tuning.many_tiles else tuning.small_filter_bytes
    few_points = points <= tuning.few_points
    own_filter = few_points and filters * outputs > most  # each task transforms its own filters, of one group
    if own_filter:
        block = tuning.own_filter_outputs
    else:
        block = tuning.tile_outputs if few_points else tuning.tile_outputs_of_many_points
    block = min(-(-outputs // strip) * strip, max(strip, block // strip * strip))
    bundle = 0 if own_filter else _bundle_channels(channels, outputs, lanes, False, tuning)
    most = tuning.full_box_tiles if bundle and groups > 1 else tuning.box_tiles
    if own_filter:
        most = tuning.own_filter_sums // block
    sums_bytes = tuning.tile_sums_bytes if few_points else tuning.tile_sums_bytes_of_many_points
    most = min(most, sums_bytes // (FLOAT_BYTES * points * block))
    images, *box = _box(walks, tile_sizes, batch, max(1, most), tuning.row_tiles)
    count = images * prod(box)
    if own_filter:
        chunk = tuning.own_filter_more_channels
        if FLOAT_BYTES * points * block * added * chunk > tuning.own_filter_bytes:
            chunk = tuning.own_filter_channels
    else:
        chunk = min(tuning.tile_channels, tuning.tile_values_bytes // (FLOAT_BYTES * points * count) // lanes * lanes)
    chunk = -(-balanced_size(channels, max(lanes, chunk)) // lanes) * lanes
    boxes = groups * _boxes(walks, tile_sizes, batch, images, box)
    while boxes * -(-outputs // block) < tuning.wanted_tile_tasks and block > strip:
        block = _half(block, strip)
    values = FLOAT_BYTES * points * count * chunk * -(-channels // chunk) * added * boxes
    most = tuning.kept_bytes if outputs > 2 * block else tuning.kept_tiles_bytes_of_two
    tiles_kept = outputs > block and values <= most
    kept = 0 if own_filter else max(block, tuning.kept_bytes // filters // block * block)
    chunks = added * -(-channels // chunk)
    values_bytes = FLOAT_BYTES * points * count * chunk
    chunks_at_once = 1 if own_filter else max(1, min(chunks, tuning.span_bytes // values_bytes))
    blocks = TileBlocks(1, images, chunk, block, kept, tiles_kept, 1, chunks_at_once, 1)
    tasks = boxes * -(-outputs // block)
    if bundle:
        blocks, tasks = _bundled(blocks, groups, channels, outputs, tasks, lanes, bundle, tuning.wanted_tile_tasks)
    return blocks, box, tasks


def _accumulation(walks, tile_sizes, count, points, sizes):
    """(blocks, tiles of a box, tasks) of wgrad; ``count``: number of parts of its result."""
    groups, channels, outputs, batch, lanes, strip, tuning = sizes
    wanted, most = tuning.wanted_tile_tasks, max(lanes, tuning.tile_channels // lanes * lanes)
    block = min(-(-outputs // strip) * strip, most)
    chunk = min(most, tuning.wgrad_tile_sums_bytes // (FLOAT_BYTES * points * block) // lanes * lanes)
    chunk = min(max(lanes, chunk), -(-channels // lanes) * lanes)
    images, *box = _box(walks, tile_sizes, batch, tuning.full_box_tiles, tuning.row_tiles)
    parts = groups * -(-channels // chunk) * -(-outputs // block)
    boxes = _boxes(walks, tile_sizes, batch, images, box)
    slices = max(1, min(-(-wanted // parts), boxes // 2))
    tiles = groups * images * prod(box) * boxes
    values = FLOAT_BYTES * points * tiles * (-(-channels // chunk) * chunk + -(-outputs // block) * block)
    if slices == 1 and values <= tuning.kept_bytes:
        wanted = tuning.wanted_tile_tasks_unsliced
    while parts * slices < wanted and block > max(strip, tuning.wgrad_least_tile_outputs):
        block = _half(block, strip)
        parts = groups * -(-channels // chunk) * -(-outputs // block)
    many = tuning.sharing_blocks_of_walks if count > 1 else tuning.sharing_blocks
    tiles_kept = parts >= many * groups and values <= tuning.kept_bytes
    blocks, tasks = TileBlocks(1, images, chunk, block, 0, tiles_kept, slices, 1, 1), parts * slices
    bundle = _bundle_channels(channels, outputs, lanes, True, tuning)
    if bundle and not tiles_kept:
        blocks, tasks = _bundled(blocks, groups, channels, outputs, tasks, lanes, bundle, tuning.wanted_tile_tasks)
    return blocks, box, tasks


@lru_cache(maxsize=64)
def choose(operation, problem, tiling, tile):
    """The ``TileChoice`` for a tiling; ``tiling[axis][t]``: points of a tile on an axis with t taps.

    It decides the order of sums, so it does not depend on layout, caches or threads.
    """
    parts = tile_walks(operation, problem).parts
    walks = [part.walk for part in parts]
    points, tile_sizes = points_and_outputs(tiling, walks)
    channels, outputs = problem.channels(operation == DGRAD)
    lanes = tile.vector_bytes // 4
    strip = min(tile.tile_column_bytes // 4, -(-outputs // lanes) * lanes)
    batch = problem.batch * max([part.siblings for part in parts])
    sizes = Sizes(problem.groups, channels, outputs, batch, lanes, strip, tile.tuning)
    most_points = max(map(prod, points))
    if operation == WGRAD:
        blocks, box, tasks = _accumulation(walks, tile_sizes, sum([part.alike for part in parts]), most_points, sizes)
    else:
        added = max([part.added for part in parts])
        blocks, box, tasks = _correlation(walks, tile_sizes, added, most_points, sizes)
    memory = shared_bytes(operation, problem, tiling, tile, blocks, box)
    return TileChoice(blocks, box, blocks.images * prod(box), memory, tasks)


def _cut(operation, problem, tiling, tile, threads, chosen, box, most_bytes):
    """The blocks and the box of ``choose``, cut for ``threads`` threads; they need at most ``most_bytes``."""
    cutting, tuning = Cutting(operation, problem, tiling, tile), tile.tuning

    def has_room(blocks, extents):
        return most_bytes is None or shared_bytes(operation, problem, tiling, tile, blocks, extents) <= most_bytes

    if operation == WGRAD:
        lanes = tile.vector_bytes // 4
        return cut_accumulation(cutting, chosen, box, threads, lanes, tuning.kept_bytes, has_room), box

    def box_of(size):
        images, *own = _box(cutting.walks, cutting.tile_sizes, cutting.batch, size, tuning.row_tiles)
        return images, own

    together = cutting.parts_together(chosen, box)
    while together > 1 and not has_room(chosen._replace(together=together), box):
        together -= 1
    return cut_correlation(
        cutting, chosen._replace(together=together), box, threads, box_of, tuning.kept_bytes, has_room
    )


def _filter_part(chosen, groups, channels, outputs, tile, threads):
    """(strips, channels) of the filter that one transforming task transforms; few enough to leave enough tasks."""
    lanes, tuning = tile.vector_bytes // 4, tile.tuning
    if not chosen.filters_kept:
        return 1, tuning.filter_channels
    strip = min(tile.tile_column_bytes // 4, -(-outputs // lanes) * lanes)
    strips, wanted = groups * -(-min(chosen.filters_kept, outputs) // strip), max(tuning.wanted_tile_tasks, threads)
    most = channels * strips // wanted  # channels of a strip that leave ``wanted`` tasks
    return (
        max(1, min(tuning.filter_strips, strips // wanted)),
        max(tuning.least_filter_channels, min(tuning.filter_channels, most)),
    )


def plan(operation, problem, tiling, machine, most_bytes=None):
    """The plan with this tiling and the blocks of ``choose``, cut for many threads if the machine has them.

    ``most_bytes``: maximum bytes that tasks may share after the cut; None: no limit.
    """
    chosen, box, _, _, tasks = choose(operation, problem, tiling, machine.tile)
    threads = threads_of(problem, FLOAT_BYTES, machine)
    if threads > min(machine.tuning.tuned_threads, tasks):
        chosen, box = _cut(operation, problem, tiling, machine.tile, threads, chosen, box, most_bytes)
    target = operand_bytes(problem, FLOAT_BYTES)[0 if operation == DGRAD else 1]
    strips, channels = _filter_part(
        chosen, problem.groups, *problem.channels(operation == DGRAD), machine.tile, threads
    )
    chosen = chosen._replace(
        threads=threads,
        nontemporal=operation != WGRAD and is_streamed(target, machine),
        filter_strips=strips,
        filter_channels=channels,
    )
    all_walks, shapes, _ = tile_walks(operation, problem)
    each = zip(shapes, *points_and_outputs(tiling, shapes), strict=True)
    steps, _ = all_walks.rows([tile_rows(operation, shape, (*n, *m, *box)) for shape, n, m in each])
    count(steps.nbytes)
    return TilePlan(steps, np.array(chosen, np.int64), chosen)
