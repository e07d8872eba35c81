"""How Winograd's algorithm is carried out: tiles, boxes of tiles and blocks of channels, as integers for the kernels.

Pure, like ``direct/plan.py``, and as there all that reaches a bit is decided by what sees neither threads nor caches.
"""

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from ...bounded import count
from ...problem import DGRAD, WGRAD, even
from ..cache import is_streamed, operand_bytes
from ..steps import TileBlocks
from .cuts import Cutting, cut_accumulation, cut_correlation
from .memory import shared_bytes
from .walks import points_and_outputs, tile_rows, tile_walks


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
        Bytes beside the arrays, but for what each thread has, before blocks are cut for many threads.
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


def _box(walks, outputs, batch, most, most_row):
    """Extents of a box of at most ``most`` tiles on the axes batch, depth, height, width: rows first."""
    extents = [max(-(-walk[i].positions // m[i]) for walk, m in zip(walks, outputs, strict=True)) for i in range(3)]
    box = [even(extents[2], min(most, most_row))]
    for extent in (extents[1], extents[0], batch):
        most = max(1, most // box[-1])
        box.append(even(extent, most))
    return box[::-1]


def _boxes(walks, given, batch, images, box):
    """Boxes of so many images and tiles, of the walk that has most."""
    return -(-batch // images) * max(
        prod(-(-axis.positions // (m * n)) for axis, m, n in zip(walk, row, box, strict=True))
        for walk, row in zip(walks, given, strict=True)
    )


def _bundle_channels(channels, outputs, lanes, sums_positions, tuning):
    """Channels of the groups that a task takes together, or 0 if it takes one."""
    few, most = tuning.bundled_outputs, tuning.bundled_channels
    whole = outputs == few or (outputs == lanes > few and not sums_positions)
    if channels == 1 or not whole:
        return 0
    return most if sums_positions else max(most, 2 * lanes)


def _bundled(blocks, groups, channels, outputs, tasks, lanes, most, wanted):
    """The blocks of tasks that take groups of ``most`` channels together, at least ``wanted``, and their number.

    Few channels of channels last are a part of a cache line, or of a vector.
    """
    if channels > blocks.chunk:
        return blocks, tasks
    count = max(1, min(most // max(channels, outputs), tasks // wanted, groups))
    chunk, block = (-(-count * each // lanes) * lanes for each in (channels, outputs))
    group = max(block, blocks.group // block * block) if blocks.group else 0
    return blocks._replace(chunk=chunk, outputs=block, group=group, groups=count), -(-groups // count) * tasks // groups


def _correlation(walks, given, added, points, groups, channels, outputs, batch, lanes, strip, tuning):
    """(blocks, tiles of a box, tasks) of fprop and dgrad, where the sums of so many walks are added."""
    filters = 4 * points * channels * groups * added
    tiles = _boxes(walks, given, batch, 1, (1, 1, 1))
    most = tuning.kept_bytes if tiles >= tuning.many_tiles else tuning.small_filter_bytes
    few_points = points <= tuning.few_points
    inside = few_points and filters * outputs > most
    if inside:
        block = tuning.own_filter_outputs
    else:
        block = tuning.tile_outputs if few_points else tuning.tile_outputs_of_many_points
    block = min(-(-outputs // strip) * strip, max(strip, block // strip * strip))
    bundle = 0 if inside else _bundle_channels(channels, outputs, lanes, False, tuning)  # inside are those of one group
    most = tuning.full_box_tiles if bundle and groups > 1 else tuning.box_tiles
    if inside:
        most = tuning.own_filter_sums // block
    sums_bytes = tuning.tile_sums_bytes if few_points else tuning.tile_sums_bytes_of_many_points
    most = min(most, sums_bytes // (4 * points * block))
    images, *box = _box(walks, given, batch, max(1, most), tuning.row_tiles)
    count = images * prod(box)
    if inside:
        chunk = tuning.own_filter_more_channels
        if 4 * points * block * added * chunk > tuning.own_filter_bytes:
            chunk = tuning.own_filter_channels
    else:
        chunk = min(tuning.tile_channels, tuning.tile_values_bytes // (4 * points * count) // lanes * lanes)
    chunk = -(-even(channels, max(lanes, chunk)) // lanes) * lanes
    boxes = groups * _boxes(walks, given, batch, images, box)
    while boxes * -(-outputs // block) < tuning.wanted_tile_tasks and block > strip:
        block = _half(block, strip)
    values = 4 * points * count * chunk * -(-channels // chunk) * added * boxes
    most = tuning.kept_bytes if outputs > 2 * block else tuning.kept_tiles_bytes_of_two
    shared = outputs > block and values <= most
    group = 0 if inside else max(block, tuning.kept_bytes // filters // block * block)
    chunks = added * -(-channels // chunk)
    span = 1 if inside else max(1, min(chunks, tuning.span_bytes // (4 * points * count * chunk)))
    blocks, tasks = TileBlocks(1, images, chunk, block, group, shared, 1, span, 1), boxes * -(-outputs // block)
    if bundle:
        blocks, tasks = _bundled(blocks, groups, channels, outputs, tasks, lanes, bundle, tuning.wanted_tile_tasks)
    return blocks, box, tasks


def _accumulation(walks, given, count, points, groups, channels, outputs, batch, lanes, strip, tuning):
    """The same of wgrad, whose filter has so many parts."""
    wanted, most = tuning.wanted_tile_tasks, max(lanes, tuning.tile_channels // lanes * lanes)
    block = min(-(-outputs // strip) * strip, most)
    chunk = min(most, tuning.wgrad_tile_sums_bytes // (4 * points * block) // lanes * lanes)
    chunk = min(max(lanes, chunk), -(-channels // lanes) * lanes)
    images, *box = _box(walks, given, batch, tuning.full_box_tiles, tuning.row_tiles)
    parts = groups * -(-channels // chunk) * -(-outputs // block)
    boxes = _boxes(walks, given, batch, images, box)
    slices = max(1, min(-(-wanted // parts), boxes // 2))
    tiles = groups * images * prod(box) * boxes
    values = 4 * points * tiles * (-(-channels // chunk) * chunk + -(-outputs // block) * block)
    if slices == 1 and values <= tuning.kept_bytes:
        wanted = tuning.wanted_tile_tasks_unsliced
    while parts * slices < wanted and block > max(strip, tuning.wgrad_least_tile_outputs):
        block = _half(block, strip)
        parts = groups * -(-channels // chunk) * -(-outputs // block)
    many = tuning.sharing_blocks_of_walks if count > 1 else tuning.sharing_blocks
    shared = parts >= many * groups and values <= tuning.kept_bytes
    blocks, tasks = TileBlocks(1, images, chunk, block, 0, shared, slices, 1, 1), parts * slices
    bundle = _bundle_channels(channels, outputs, lanes, True, tuning)
    if bundle and not shared:
        blocks, tasks = _bundled(blocks, groups, channels, outputs, tasks, lanes, bundle, tuning.wanted_tile_tasks)
    return blocks, box, tasks


@lru_cache(maxsize=64)
def choose(operation, problem, tiling, tile):
    """The choices for tiles that have, on an axis with t taps, so many points as stand at t in its ``tiling``.

    They decide the order of sums, and see no layout, no cache and no number of threads.
    """
    parts = tile_walks(operation, problem).parts
    walks = [part.walk for part in parts]
    points, given = points_and_outputs(tiling, walks)
    channels, outputs = problem.channels(operation == DGRAD)
    lanes = tile.vector_bytes // 4
    strip = min(tile.tile_column_bytes // 4, -(-outputs // lanes) * lanes)
    batch = problem.batch * max([part.siblings for part in parts])  # each sibling has images of its own
    most_points, sizes = max(map(prod, points)), (problem.groups, channels, outputs, batch, lanes, strip, tile.tuning)
    if operation == WGRAD:
        blocks, box, tasks = _accumulation(walks, given, sum([part.alike for part in parts]), most_points, *sizes)
    else:
        added = max([part.added for part in parts])
        blocks, box, tasks = _correlation(walks, given, added, most_points, *sizes)
    memory = shared_bytes(operation, problem, tiling, tile, blocks, box)
    return TileChoice(blocks, box, blocks.images * prod(box), memory, tasks)


def _cut(operation, problem, tiling, tile, threads, chosen, box, most_bytes):
    """The blocks and the box that ``choose`` gives, cut for ``threads`` threads; they take at most ``most_bytes``."""
    cutting, tuning = Cutting(operation, problem, tiling, tile), tile.tuning

    def has_room(blocks, extents):
        return most_bytes is None or shared_bytes(operation, problem, tiling, tile, blocks, extents) <= most_bytes

    if operation == WGRAD:
        lanes = tile.vector_bytes // 4
        return cut_accumulation(cutting, chosen, box, threads, lanes, tuning.kept_bytes, has_room), box

    def box_of(most):
        images, *own = _box(cutting.walks, cutting.given, cutting.batch, most, tuning.row_tiles)
        return images, own

    together = cutting.parts_together(chosen, box)
    while together > 1 and not has_room(chosen._replace(together=together), box):
        together -= 1
    return cut_correlation(
        cutting, chosen._replace(together=together), box, threads, box_of, tuning.kept_bytes, has_room
    )


def _filter_part(chosen, groups, channels, outputs, tile, threads):
    """(strips, channels) whose filters a task transforms: few enough that there are tasks."""
    lanes, tuning = tile.vector_bytes // 4, tile.tuning
    if not chosen.group:
        return 1, tuning.filter_channels
    strip = min(tile.tile_column_bytes // 4, -(-outputs // lanes) * lanes)
    strips, wanted = groups * -(-min(chosen.group, outputs) // strip), max(tuning.wanted_tile_tasks, threads)
    most = channels * strips // wanted  # of each strip, for as many tasks
    return (
        max(1, min(tuning.filter_strips, strips // wanted)),
        max(tuning.least_filter_channels, min(tuning.filter_channels, most)),
    )


def plan(operation, problem, tiling, machine, most_bytes=None):
    """The plan that ``choose`` describes, with what else the machine says.

    ``most_bytes``: how many it may take when it is cut for many threads. None: there is no limit.
    """
    chosen, box, _, _, tasks = choose(operation, problem, tiling, machine.tile)
    threads = 1 if problem.multiplications < machine.tuning.serial_products else machine.threads
    if threads > min(machine.tuning.tuned_threads, tasks):
        chosen, box = _cut(operation, problem, tiling, machine.tile, threads, chosen, box, most_bytes)
    target = operand_bytes(problem, 4)[0 if operation == DGRAD else 1]
    strips, channels = _filter_part(
        chosen, problem.groups, *problem.channels(operation == DGRAD), machine.tile, threads
    )
    chosen = chosen._replace(
        threads=threads,
        streams=operation != WGRAD and is_streamed(target, machine),
        filter_strips=strips,
        filter_channels=channels,
    )
    every, kinds, _ = tile_walks(operation, problem)
    each = zip(kinds, *points_and_outputs(tiling, kinds), strict=True)
    steps, _ = every.rows([tile_rows(operation, kind, (*n, *m, *box)) for kind, n, m in each])
    count(steps.nbytes)
    return TilePlan(steps, np.array(chosen, np.int64), chosen)
