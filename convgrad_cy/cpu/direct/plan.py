"""How an operation is carried out: (operation, problem, dtype, machine) -> Plan.

Pure: nothing is computed and no array is looked at, so the choices can be tested by themselves. They influence the
speed. Some reach the last bits of a result, for they decide the order of a sum; none of them depends on the threads.
"""

from math import prod
from typing import NamedTuple

from ...bounded import bounded
from ...problem import DGRAD, FPROP, WGRAD
from ..cache import memory_ways
from ..case import case_of
from ..machines import LINE_BYTES, SERIAL_MULTIPLICATIONS
from ..small_groups import lanewise
from ..steps import Outline, cut_rows, whole_rows
from .boxes import MOST_POSITIONS, WANTED_TASKS, WindowAxis, boxed, bundled, count_boxes, even
from .choices import (
    FEW_POSITIONS,
    FEW_PRODUCTS,
    crosses_positions,
    cut_ends,
    cut_walks,
    joins_phases,
    keeps_rows,
    packs_in_tasks,
    packs_phases,
    reads_rows,
    stores_rows,
    suits_halves,
    takes_halves,
    takes_larger_boxes,
)

#: The sums of a task, which are meant to stay in the L2 cache beside what boxes.py plans.
SUMS_BYTES = 192 * 1024
#: taps x channels of a window's chunk in fprop and dgrad where a task packs its part of the filter, and the rows of a
#: block of the filter in wgrad, in bytes.
DEPTH_BYTES = 2304
#: The same in fprop and dgrad elsewhere: sums come and go as often as a chunk begins.
LONG_DEPTH_BYTES = 4608
#: In wgrad of one tap by vectors narrower than a line, and positions of a box: tiles of channels last read a little of
#: each position. The cache itself does not decide: boxes are where slices of a sum begin, and so reach the bits.
NARROW_DEPTH_BYTES, NARROW_POSITIONS = 1536, 128
#: Of wgrad whose boxes may be larger, where they are many enough.
LARGER_POSITIONS, LARGER_SUMS_BYTES = 512, 256 * 1024
#: Channels of a chunk and outputs of a block of wgrad whose window is gathered from more lines than it has, in bytes:
#: fewer blocks of outputs gather it.
GATHERED_BYTES = 1024
#: Terms of a sum across channels below which a target of adjacent lines is not stored past the cache: it takes longer
#: than the products.
FEW_TERMS = 8
#: Positions of a box of fprop or dgrad where each has few products; and bytes of its window across positions.
MANY_POSITIONS, MANY_BYTES = 1024, 64 * 1024
#: The sums of a task that packs its part of the filter: its window is copied for all of its outputs, many then.
PACKED_SUMS_BYTES = 256 * 1024
MOST_OUTPUTS = {FPROP: 512, DGRAD: 512, WGRAD: 128}

#: A problem is cut into WANTED_TASKS, if these have so many products, and boxes so many positions.
TASK_MULTIPLICATIONS, LEAST_POSITIONS = 2_000_000, 32

#: Of the plans that are kept, beside those of calls that are remembered.
PLANS_BYTES = 16 << 20


class Blocks(NamedTuple):
    """The integers that steer the loops of ``pyx/``; the fields and their order are those of ``Blocks`` there.

    ``lanewise``: small groups side by side, a block of outputs being lanes. ``positions_across``: the
    columns of a tile are positions of a row, not output channels. ``images``: batch extent of a box of positions.
    ``chunk``: channels of a window. ``outputs``: output channels of a block. ``slices``: tasks that share the boxes of
    one block of the filter. ``streams``: the target is stored past the cache, where it is whole lines.
    ``fetches``: the source of lanes is fetched before it is read: 1, what later positions of a row see; 2, what the
    next row sees. ``packs``: each task packs its part of the filter. ``pairs``: the tile takes pairs of bfloat16.
    ``groups``: neighbours that a task takes, with all their channels in one window. ``phases``: walks that a task
    computes together. ``far``: the target, which wgrad reads, comes from memory.
    """

    threads: int
    lanewise: bool
    positions_across: bool
    images: int
    chunk: int
    outputs: int
    slices: int
    streams: bool
    fetches: int
    packs: bool
    pairs: bool
    groups: int = 1
    phases: int = 1
    far: bool = False


def _chunk(case, depth_bytes, channel_bytes):
    """Channels of a window, of which a tile takes so many bytes under all taps."""
    return even(case.channels, depth_bytes // channel_bytes // max(case.taps, 1), 4)


def _most_positions(case, block, most, sums_bytes=SUMS_BYTES):
    """Positions of a box, whose sums of a block of outputs are to stay in the cache."""
    return min(most, max(case.machine.tile_rows, sums_bytes // (block * case.itemsize)))


def _box_positions(case, block, phases, most=MOST_POSITIONS):
    """Positions of a box of fprop or dgrad, of which a task has so many walks: few enough for there to be tasks."""
    tasks = max(1, min(WANTED_TASKS, case.multiplications // TASK_MULTIPLICATIONS))
    blocks = case.groups * -(-case.outputs // block) * case.count // phases
    most = _most_positions(case, block * phases, most)
    return min(most, max(LEAST_POSITIONS, case.positions * blocks // tasks))


def _many_positions(case, chunk_bytes, phases, across):
    """Positions of a box where each has few products; ``chunk_bytes``: what a chunk has of a position of the source.

    Across positions, a window is read for few outputs: it should stay in the first cache. Of small groups, channels
    last, a task has several.
    """
    if case.groups > 1 and not case.positions_adjacent:
        return 0
    products = case.channels * case.taps * case.outputs * phases
    many = min(MANY_POSITIONS, MOST_POSITIONS * FEW_PRODUCTS // max(products, 1))
    seen = chunk_bytes * prod(axis.source_step for axis in case.walks[-1])
    return min(many, MANY_BYTES // seen) if across else many


def _lanes(case, streams, fetches):
    """Many small groups side by side, or None where that is not faster."""
    if case.operation != WGRAD and not case.positions_adjacent and takes_halves(case):
        return None
    single = case.channels == case.outputs == 1
    in_place = single and not case.positions_adjacent and case.dtype.itemsize == case.itemsize
    found = lanewise(case, case.operation == WGRAD, in_place)
    if found is None:
        return None
    extents, block, slices = found
    threads = case.machine.threads if 8 * case.multiplications >= SERIAL_MULTIPLICATIONS else case.threads
    windows = [[WindowAxis(extent, 0, False, 0, 0, 0) for extent in extents]] * len(case.walks)
    blocks = Blocks(threads, True, False, 1, case.channels, block, slices, streams, fetches, False, False)
    return Outline(case.every, whole_rows([[walk] for walk in case.walks], windows), blocks)


def _correlation(case, chunk, streams):
    """fprop or dgrad; the channels of a window are ``chunk`` where that is given, else those for one image alone.

    They decide the order of a sum, which is not to depend on what else is in the batch.
    """
    if chunk is None and case.batch > 1:
        chunk = _correlation(case.alone(), None, streams).blocks.chunk
    across = crosses_positions(case)
    walks, parts, cut = case.walks, [[walk] for walk in case.walks], False
    # A strip that a task packs stays in the first cache. Layouts differ in who packs, but have the same chunks.
    depth_bytes = DEPTH_BYTES if packs_in_tasks(case) else LONG_DEPTH_BYTES
    if not across:
        case, parts = cut_walks(case)
        cut = len(case.walks) > len(walks)
    joins = not cut and joins_phases(case)
    block = even(case.outputs, MOST_OUTPUTS[case.operation], case.machine.tile_rows if across else case.strip)
    pairs = case.multiplies_pairs and not across
    channel_bytes = case.itemsize // 2 if pairs else case.itemsize
    least = chunk or 1
    chunk = chunk or _chunk(case, depth_bytes, channel_bytes)
    packs = not across and not cut and packs_in_tasks(case)
    keeps = not across and not packs and not pairs and keeps_rows(case, joins)
    if packs and packs_phases(case):
        packs = False
        *_, chunk = boxed(case, chunk, least, FEW_POSITIONS, channel_bytes)  # that of other layouts
        least = chunk
    if packs:
        most = FEW_POSITIONS
        block = even(case.outputs, PACKED_SUMS_BYTES // (most * case.itemsize), case.strip)
        while block > case.strip and 2 * case.groups * case.count * -(-case.outputs // block) < WANTED_TASKS:
            block = even(case.outputs, block // 2, case.strip)
    else:
        most = _box_positions(case, block, 1)
    compact = across and not case.positions_adjacent  # else long rows are copied faster
    phases = case.count if joins and (across or keeps or (not (packs or pairs) and stores_rows(case))) else 1
    reads = not (across or keeps or packs or cut or phases > 1) and reads_rows(case)
    if keeps or reads or suits_halves(case) or (phases > 1 and not across):
        *_, chunk = boxed(case, chunk, least, most, channel_bytes)  # that of other layouts
        least = chunk
    across = across or keeps
    if phases > 1:
        if not across:
            block = even(case.outputs, MOST_OUTPUTS[case.operation] // phases, case.strip)
        most = _box_positions(case, block, phases)
    if reads:
        case, parts = cut_ends(case)
        cut = len(case.walks) > len(walks)
    found = boxed(case, chunk, least, most, channel_bytes, across, compact=compact, shared=phases > 1)
    many = 0 if packs else _many_positions(case, found[2] * channel_bytes, phases, across)
    if many > MOST_POSITIONS:
        most = _box_positions(case, block, phases, many)
        found = boxed(case, found[2], found[2], most, channel_bytes, across, compact=compact, shared=phases > 1)
    images, windows, chunk = found
    chunk = max(1, min(chunk, case.channels))
    groups = 1
    if (phases == 1 or not across) and not packs and not pairs and chunk == case.channels and block == case.outputs:
        groups = bundled(case, images, windows, count_boxes(case, images, windows))
    # Sums that others are added to stay in the cache; those of phases are stored from there, if they make whole lines.
    # A strip of part of a line, as of vectors of 16 bytes, would store each line in parts.
    few = not across and case.channels * case.taps < FEW_TERMS
    whole = chunk == case.channels and case.machine.tile_column_bytes >= LINE_BYTES
    streams = streams and (groups > 1 if phases > 1 else whole and not few)
    blocks = Blocks(case.threads, False, across, images, chunk, block, 1, streams, False, packs, pairs, groups, phases)
    return Outline(case.every, cut_rows(walks, parts, windows) if cut else whole_rows(parts, windows), blocks)


def _filter_blocks(case, chunk, block):
    """Blocks of the filter, of so many channels and outputs."""
    return case.groups * -(-case.channels // chunk) * -(-case.outputs // block)


def _wgrad(case, mirrored, far):
    """wgrad, its boxes in slices where there are few blocks of the filter."""
    parts = [[walk] for walk in case.walks]
    if not mirrored:
        case, parts = cut_walks(case)
    block = even(case.outputs, MOST_OUTPUTS[WGRAD], case.strip)
    narrow = case.taps == 1 and case.machine.vector_bytes < LINE_BYTES
    depth_bytes, most = (NARROW_DEPTH_BYTES, NARROW_POSITIONS) if narrow else (DEPTH_BYTES, MOST_POSITIONS)
    chunk, sums_bytes, pairs = _chunk(case, depth_bytes, case.itemsize), SUMS_BYTES, case.multiplies_pairs
    blocks = _filter_blocks(case, chunk, block)
    if takes_larger_boxes(case) and case.positions * blocks >= 2 * WANTED_TASKS * LARGER_POSITIONS:
        most, sums_bytes = LARGER_POSITIONS, LARGER_SUMS_BYTES
    most = _most_positions(case, block, most, sums_bytes)
    images, windows, chunk = boxed(case, chunk, 1, most, case.itemsize, paired=pairs)
    chunk = max(1, min(chunk, case.channels))
    blocks = _filter_blocks(case, chunk, block)
    slices = max(1, min(-(-WANTED_TASKS // blocks), count_boxes(case, images, windows) // 2))
    wider = even(case.outputs, GATHERED_BYTES // case.itemsize, case.strip)
    gathers = case.taps == 1 and case.positions_adjacent and case.walks[0][2].source_step > 1
    if gathers and wider > block and most * wider * case.itemsize <= LARGER_SUMS_BYTES:
        # No sum's order depends on these two, so layouts may differ.
        chunk, block = min(chunk, _chunk(case, GATHERED_BYTES, case.itemsize)), wider
    groups = 1
    if not pairs and chunk == case.channels and block == case.outputs:
        groups = bundled(case, images, windows, slices)
    blocks = Blocks(case.threads, False, False, images, chunk, block, slices, False, 0, False, pairs, groups, far=far)
    return Outline(case.every, whole_rows(parts, windows), blocks)


def outline(operation, problem, dtype, positions_adjacent, machine, mirrored=False, chunk=None):
    """The outline of the plan of ``operation`` (FPROP, DGRAD or WGRAD).

    ``mirrored``: wgrad with y as the source and x as the target, as ``is_better_mirrored`` says.
    ``positions_adjacent``: neighbours in the source's memory are positions. This decides nothing about a sum's order;
    ``chunk``, the channels of a window of fprop or dgrad, does where it is given.
    """
    backward = operation == DGRAD or mirrored
    case = case_of(operation, problem, dtype, positions_adjacent, machine, backward)
    streams, fetches, far = memory_ways(problem, dtype, machine, backward)
    found = _lanes(case, streams, fetches)
    if found is not None:
        return found
    return _wgrad(case, mirrored, far) if operation == WGRAD else _correlation(case, chunk, streams)


@bounded(PLANS_BYTES)
def plan(*arguments):
    """The plan of an ``outline``, which takes the same arguments."""
    return outline(*arguments).plan()
