"""How an operation is carried out: (operation, problem, dtype, machine) -> Plan.

Pure: nothing is computed and no array is looked at, so the choices can be tested by themselves. They influence the
speed. Some reach the last bits of a result, for they decide the order of a sum; none of them depends on the threads.
"""

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from .boxes import MOST_POSITIONS, WANTED_TASKS, WindowAxis, boxed, even
from .lanes import lanewise
from .segments import without_padding

FPROP, DGRAD, WGRAD = "fprop", "dgrad", "wgrad"

#: The sums of a task, which are meant to stay in the L2 cache beside what boxes.py plans.
SUMS_BYTES = 192 * 1024
#: taps x channels of a window's chunk in fprop and dgrad, and the rows of a block of the filter in wgrad, in bytes.
DEPTH_BYTES = 2304
#: In wgrad of vectors narrower than a line, whose machines have small L2 caches as a rule, and positions of a box. The
#: cache itself does not decide: boxes are where slices of a sum begin, and so reach the bits.
NARROW_DEPTH_BYTES, NARROW_POSITIONS = 1536, 128
#: Where source and target are more than this part of the last cache, storing the one would push out the other; that
#: matters from this size of the source on.
STREAM_PART, STREAM_SOURCE_PART = 0.75, 0.125
#: Blocks of dense sums are streamed a whole line at a time, or not at all: halves of lines have been slower.
LINE_BYTES = 64
#: A filter of so many bytes for so few positions is packed where it is used: it would fall out of the cache before.
#: Any filter is where the positions are one box; for so few, it may even be read in place (pyx/correlation.pxd).
LARGE_FILTER_BYTES, FEW_POSITIONS, FEW_TAPS, ONE_BOX = 1 << 20, 512, 64, 24
#: The sums of such a task: its window is copied for all of its outputs, which then must be many.
PACKED_SUMS_BYTES = 256 * 1024
MOST_OUTPUTS = {FPROP: 512, DGRAD: 512, WGRAD: 128}

#: A problem is cut into WANTED_TASKS, if these have so many products, and boxes so many positions.
TASK_MULTIPLICATIONS, LEAST_POSITIONS = 2_000_000, 32
#: Channels of y that leave most of a vector empty.
FEW_COLUMNS = 4
#: Channels of a source that make the sums so short that transposing their result would count.
FEW_CHANNELS = 4

#: Below this many products, starting a second thread costs more than it saves, unless a large filter has to be read;
#: where each element that is read or written takes part in few of them, as in a depthwise problem, an eighth of that.
SERIAL_MULTIPLICATIONS = 4_000_000


class Machine(NamedTuple):
    """What a plan needs to know of the machine: the register tile, the last cache, the number of threads."""

    tile_rows: int
    tile_column_bytes: int
    vector_bytes: int
    multiplies_pairs: bool  # of bfloat16
    cache_bytes: int  # of the last cache
    threads: int


class Blocks(NamedTuple):
    """The integers that steer the loops of ``pyx/``; the fields and their order are those of ``Blocks`` there.

    ``lanewise``: small groups side by side (pyx/lanes.pxd), a block of outputs being lanes. ``positions_across``: the
    columns of a tile are positions of a row, not output channels. ``images``: batch extent of a box of positions.
    ``chunk``: channels of a window. ``outputs``: output channels of a block. ``slices``: tasks that share the boxes of
    one block of the filter. ``streams``: the target is stored past the cache. ``packs``: each task packs its part of
    the filter. ``pairs``: the tile takes pairs of bfloat16.
    """

    threads: int
    lanewise: bool
    positions_across: bool
    images: int
    chunk: int
    outputs: int
    slices: int
    streams: bool
    packs: bool
    pairs: bool


class Plan(NamedTuple):
    """One operation on one problem, ready for the kernels.

    Attributes
    ----------
    steps : numpy.ndarray
        The walks to carry out one after the other, each with its window: int64, one row for each, the fields of three
        ``problem.AxisWalk`` and of three ``WindowAxis``.
    blocks : numpy.ndarray
        A ``Blocks``, as int64.
    """

    steps: np.ndarray
    blocks: np.ndarray


def tile_cycles(rows, columns, machine, itemsize):
    """A model of the cycles for one step of depth of a block: two multiplications or two loads of a vector each."""
    lanes, strip = machine.vector_bytes // itemsize, machine.tile_column_bytes // itemsize
    cycles = 0
    for width, strips in ((strip, columns // strip), (columns % strip, 1)):
        vectors = -(-width // lanes)
        for height, tiles in ((machine.tile_rows, rows // machine.tile_rows), (rows % machine.tile_rows, 1)):
            if vectors and height:
                cycles += strips * tiles * max(vectors * height, vectors + height + 2, 8) / 2
    return cycles


def _crosses_positions(walk, outputs, positions_adjacent, machine, stored, itemsize, worth):
    """Whether tiles across positions are faster than tiles across output channels, of which a step takes ``worth``.

    They are where there are few output channels, and where positions are adjacent and one tap can read them in place.
    """
    row = walk[2].positions
    lanes = machine.vector_bytes // itemsize
    in_place = positions_adjacent and stored == itemsize and row % lanes == 0 and all(axis.taps == 1 for axis in walk)
    across_channels = worth * tile_cycles(row, outputs, machine, itemsize)
    return tile_cycles(outputs, row, machine, itemsize) < (1.1 if in_place else 0.8) * across_channels


def _packs_in_tasks(walks, positions, large):
    """Whether each task of fprop or dgrad packs what it needs of the filter.

    Its window is copied once more for each block of outputs, which pays where a window is small beside the taps that
    see it, because they overlap.
    """
    taps = max(prod(axis.taps for axis in walk) for walk in walks)
    overlap = any(axis.taps > axis.source_step for walk in walks for axis in walk)
    few = positions <= ONE_BOX or (positions <= FEW_POSITIONS and large and overlap)
    return few and taps <= FEW_TAPS  # the more, the more each task copies


def _keeps_rows(walks, channels, positions_adjacent, machine, itemsize):
    """Whether tiles across positions are faster, however many output channels there are.

    They are where few channels leave little to multiply, and rows of positions could be copied and stored as they lie.
    A source of one channel does not tell how the target lies.
    """
    lanes = machine.vector_bytes // itemsize
    rows = [walk[2] for walk in walks]
    return (
        positions_adjacent
        and 1 < channels <= FEW_CHANNELS
        and all(row.source_step == row.target_step == 1 and row.positions % lanes == 0 for row in rows)
    )


def _plan(walks, windows, blocks):
    rows = [[*sum(walk, ()), *sum(window, ())] for walk, window in zip(walks, windows, strict=True)]
    return Plan(steps=np.array(rows, np.int64), blocks=np.array(blocks, np.int64))


def _without_padding(walks, batch, by_taps, filter_bytes):
    """The walks, cut where padding would take much of the time.

    Each walk of fprop and dgrad packs its taps of the filter, so a large one only if a task can pack what it needs.
    """
    cut = without_padding(walks, batch, by_taps)
    few = batch * max(prod(axis.positions for axis in walk) for walk in cut) <= FEW_POSITIONS
    return cut if by_taps or few or filter_bytes < LARGE_FILTER_BYTES else walks


def is_better_mirrored(problem):
    """Whether wgrad is faster with x and y in each other's place: columns of a tile are channels of y, here too few."""
    return (
        problem.groups == 1
        and problem.stride == (1, 1, 1)
        and FEW_COLUMNS * problem.y_channels <= problem.x_channels
        and problem.y_channels <= FEW_COLUMNS
        and 2 * prod(problem.x) <= 3 * prod(problem.y)
    )


@lru_cache(maxsize=4096)
def plan(operation, problem, dtype, positions_adjacent, machine, mirrored=False, chunk=None):
    """The plan of ``operation`` (FPROP, DGRAD or WGRAD).

    ``mirrored``: wgrad with y as the source and x as the target, as ``is_better_mirrored`` says.
    ``positions_adjacent``: neighbours in the source's memory are positions. This decides nothing about a sum's order;
    ``chunk``, the channels of a window, does where it is given.
    """
    backward = operation == DGRAD or mirrored
    walks = problem.backward_walks() if backward else [problem.forward_walk()]
    groups, channels, outputs = problem.groups, problem.x_channels, problem.y_channels
    if backward:
        channels, outputs = outputs, channels
    itemsize = dtype.compute_itemsize
    strip = machine.tile_column_bytes // itemsize
    taps = max(prod(axis.taps for axis in walk) for walk in walks)
    filter_bytes = groups * channels * outputs * prod(problem.kernel) * itemsize
    serial = problem.multiplications < SERIAL_MULTIPLICATIONS and filter_bytes < LARGE_FILTER_BYTES
    threads = 1 if serial else machine.threads
    sizes = [
        problem.batch * groups * dtype.itemsize * n
        for n in (problem.x_channels * prod(problem.x), problem.y_channels * prod(problem.y))
    ]
    source = sizes[1 if backward else 0]
    streams = sum(sizes) > STREAM_PART * machine.cache_bytes and source > STREAM_SOURCE_PART * machine.cache_bytes
    in_place = channels == outputs == 1 and not positions_adjacent and dtype.itemsize == itemsize
    found = lanewise(
        operation == WGRAD, problem, walks, channels, outputs, positions_adjacent, in_place, machine, itemsize
    )
    if found is not None:
        extents, block, slices = found
        if 8 * problem.multiplications >= SERIAL_MULTIPLICATIONS:
            threads = machine.threads
        windows = [[WindowAxis(extent, 0, False, 0, 0, 0) for extent in extents]] * len(walks)
        return _plan(walks, windows, Blocks(threads, True, False, 1, channels, block, slices, streams, False, False))
    streams = streams and machine.vector_bytes == LINE_BYTES
    pairs = dtype.name == "bfloat16" and machine.multiplies_pairs
    worth = 0.5 if pairs else 1.0  # of a step across channels
    across = operation != WGRAD and _crosses_positions(
        walks[-1], outputs, positions_adjacent, machine, dtype.itemsize, itemsize, worth
    )
    if not across and not mirrored:
        walks = _without_padding(walks, problem.batch, operation == WGRAD, filter_bytes)
        taps = max(prod(axis.taps for axis in walk) for walk in walks)
    block = even(outputs, MOST_OUTPUTS[operation], machine.tile_rows if across else strip)
    pairs = pairs and not across
    paired = pairs and operation == WGRAD
    # A window of pairs of channels has half as much for each.
    channel_bytes = itemsize // 2 if pairs and not paired else itemsize
    least = chunk or 1
    narrow = operation == WGRAD and machine.vector_bytes < LINE_BYTES
    depth_bytes, most = (NARROW_DEPTH_BYTES, NARROW_POSITIONS) if narrow else (DEPTH_BYTES, MOST_POSITIONS)
    chunk = chunk or even(channels, depth_bytes // channel_bytes // max(taps, 1), 4)
    most = min(most, max(machine.tile_rows, SUMS_BYTES // (block * itemsize)))
    positions = problem.batch * max(prod(axis.positions for axis in walk) for walk in walks)
    if operation != WGRAD:
        tasks = min(WANTED_TASKS, problem.multiplications // TASK_MULTIPLICATIONS)
        most = min(most, max(LEAST_POSITIONS, positions * groups * -(-outputs // block) * len(walks) // max(tasks, 1)))
    large = filter_bytes >= groups * LARGE_FILTER_BYTES
    packs = operation != WGRAD and not across and _packs_in_tasks(walks, positions, large)
    if packs:
        most = FEW_POSITIONS
        block = even(outputs, PACKED_SUMS_BYTES // (most * itemsize), strip)
        while block > strip and 2 * groups * len(walks) * -(-outputs // block) < WANTED_TASKS:
            block = even(outputs, block // 2, strip)
    compact = across and not positions_adjacent  # else long rows are copied faster
    size, held = (walks, problem.batch, channels), (machine, channel_bytes)
    uncrossed = not across and not packs and not pairs and operation != WGRAD
    if uncrossed and _keeps_rows(walks, channels, positions_adjacent, machine, itemsize):
        across = True
        *_, chunk = boxed(*size, chunk, least, most, *held, False, False, False)  # that of other layouts
        least = chunk
    images, windows, chunk = boxed(*size, chunk, least, most, *held, across, paired, compact)
    chunk = max(1, min(chunk, channels))
    slices = 1
    if operation == WGRAD:
        blocks = groups * -(-channels // chunk) * -(-outputs // block)
        boxes = min(
            -(-problem.batch // images)
            * prod(-(-axis.positions // window.positions) for axis, window in zip(walk, windows[0], strict=True))
            for walk in walks
        )
        slices = max(1, min(-(-WANTED_TASKS // blocks), boxes // 2))
    return _plan(walks, windows, Blocks(threads, False, across, images, chunk, block, slices, streams, packs, pairs))
