"""How an operation is carried out: (operation, problem, dtype, machine) -> Plan.

Pure: nothing is computed and no array is looked at, so the choices can be tested by themselves. They influence the
speed. Some reach the last bits of a result, for they decide the order of a sum; none of them depends on the threads.
"""

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

FPROP, DGRAD, WGRAD = "fprop", "dgrad", "wgrad"

#: What one task holds is meant to stay in the L2 cache: its sums and its window, beside a strip of the other operand.
SUMS_BYTES = 192 * 1024
WINDOW_BYTES = 256 * 1024
#: Positions of a box: enough to make little of the window's rim, and of loading and storing a tile's sums in wgrad.
MOST_POSITIONS = 256
#: taps x channels of a window's chunk in fprop and dgrad, and the rows of a block of the filter in wgrad, in bytes.
DEPTH_BYTES = 2304
#: Where source and target are more than this part of the last cache, storing the one would push out the other; that
#: matters from this size of the source on.
STREAM_PART, STREAM_SOURCE_PART = 0.75, 0.125
#: A filter of so many bytes for so few positions is packed where it is used: it would fall out of the cache before.
LARGE_FILTER_BYTES, FEW_POSITIONS, FEW_TAPS = 1 << 20, 512, 64
MOST_OUTPUTS = {FPROP: 512, DGRAD: 512, WGRAD: 128}

#: The copies of a task of small groups side by side: what is wanted, and beyond which the general way is taken.
LANE_BYTES, MOST_LANE_BYTES = 512 * 1024, 4 * 1024 * 1024
#: Entries of a table of taps (pyx/runs.pxd), of all runs together.
MOST_TABLE = 65536

#: Below this many products, starting a second thread costs more than it saves; where each element that is read or
#: written takes part in few of them, as in a depthwise problem, an eighth of that.
SERIAL_MULTIPLICATIONS = 4_000_000

#: wgrad has as many tasks as blocks of the filter; where those are fewer, the positions are cut into slices.
WANTED_TASKS = 16


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


class WindowAxis(NamedTuple):
    """One axis of a window (pyx/window.pxd): position p and tap t are at ``p * step + t * tap + begin``."""

    positions: int
    extent: int
    apart: bool
    step: int
    tap: int
    begin: int


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


def window_axis(axis, positions, contiguous=False):
    """A window's axis for boxes of ``positions``: taps share elements, unless that would be larger than apart.

    ``contiguous``: neighbouring positions must be neighbours in the window.
    """
    taps = max(axis.taps, 1)
    shared = (positions - 1) * axis.source_step + (taps - 1) * abs(axis.source_tap) + 1
    if taps * positions < shared or (contiguous and axis.source_step > 1):
        return WindowAxis(positions, taps * positions, True, 1, positions, 0)
    begin = max(0, -(taps - 1) * axis.source_tap)
    return WindowAxis(positions, shared, False, axis.source_step, axis.source_tap, begin)


def _even(extent, most, multiple=1):
    """The size of blocks of at most ``most`` (but at least one multiple), all nearly alike."""
    count = -(-extent // max(most, multiple, 1))
    size = -(-extent // max(count, 1))
    return max(1, min(extent, -(-size // multiple) * multiple))


def box_of(walk, batch, most, multiple=1):
    """Extents of a box of about ``most`` positions on the axes batch, depth, height, width: whole rows first.

    A row that is cut is cut at a ``multiple``.
    """
    box = [_even(walk[2].positions, most, multiple)]
    for extent in (walk[1].positions, walk[0].positions, batch):
        most = max(1, most // box[-1])
        box.append(_even(extent, most))
    return box[::-1]


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


def _lane_extents(walks, channels, lanes, itemsize):
    """Extents of boxes (depth, height, width) for which a task's copies have LANE_BYTES; None if they are too large."""
    walks = [walk for walk in walks if walk[2].taps] or walks
    largest = max(walks, key=lambda walk: prod(axis.positions for axis in walk))
    most = prod(axis.positions for axis in largest)
    while True:
        _, *extents = box_of(largest, 1, most)
        seen = made = 1
        for i, extent in enumerate(extents):
            axes = [walk[i] for walk in walks]
            ends = [axis.source_begin + t * axis.source_tap for axis in axes for t in (0, max(axis.taps, 1) - 1)]
            span = (extent - 1) * axes[0].source_step + max(ends) - min(ends) + 1
            seen *= min(axes[0].source_size, span)
            made *= (extent + 1) * axes[0].target_step
        size = (seen * channels + made) * lanes * itemsize
        if size <= LANE_BYTES:
            return extents
        if most == 1:
            return extents if size <= MOST_LANE_BYTES else None
        most = max(1, most // 2)


def _lanewise(operation, problem, walks, channels, outputs, in_place, machine, itemsize):
    """(extents of boxes, lanes of a task, slices) for many small groups side by side, or None for the general way."""
    lanes = machine.vector_bytes // itemsize
    tables = max((2 * walk[2].taps + 1) * walk[2].taps * walk[1].taps for walk in walks) * channels
    if problem.groups == 1 or not 1 <= channels <= max(1, lanes // 2) or not 1 <= outputs <= max(1, lanes // 2):
        return None
    strip = machine.tile_column_bytes // itemsize
    if tables > MOST_TABLE:
        return None
    total = problem.groups * outputs
    for width in (strip, strip // 2, lanes):
        block = min(width // outputs * outputs, total)
        extents = _lane_extents(walks, channels, -(-block // lanes) * lanes, itemsize)
        if extents == [axis.positions for axis in walks[-1]]:
            break
    if extents is None:
        return None
    slices = 1
    if operation == WGRAD:
        boxes = problem.batch
        for axis, extent in zip(walks[0], extents, strict=True):
            boxes *= -(-axis.positions // extent)
        slices = max(1, min(-(-WANTED_TASKS // -(-total // block)), boxes))
    if in_place:
        # More lanes are longer pieces of memory, and smaller boxes leave what lies between them in the cache.
        block = min(strip, total)
        if operation != WGRAD:
            extents = box_of(walks[-1], 1, MOST_POSITIONS)[1:]
    return extents, block, slices


def _width_axis(axis, positions, across, paired):
    """The window's axis of the width; where positions are paired, it has room for a whole number of pairs."""
    room = positions + positions % 2 if paired else positions
    return window_axis(axis, room, contiguous=across)._replace(positions=positions)


def _boxed(walks, batch, channels, chunk, most, machine, itemsize, across, paired):
    """(images, a window for each walk, chunk): boxes and chunks of channels whose window fits into its share."""
    largest = max(walks, key=lambda walk: (walk[0].taps > 0, prod(axis.positions for axis in walk)))
    while True:
        images, *extents = box_of(largest, batch, most, machine.vector_bytes // itemsize if across else 1)
        windows = [
            [*map(window_axis, walk[:2], extents[:2]), _width_axis(walk[2], extents[2], across, paired)]
            for walk in walks
        ]
        elements = images * max(prod(axis.extent for axis in window) for window in windows)
        if elements * chunk * itemsize <= WINDOW_BYTES or (chunk <= 1 and most == 1):
            return images, windows, chunk
        # A few channels of many positions, since the rim grows as boxes shrink; but then of fewer positions.
        if chunk > 4 or (chunk > 1 and most <= 24):
            chunk = _even(channels, chunk // 2, 4 if chunk > 4 else 1)
        else:
            most = max(1, most // 2)


def _plan(walks, windows, blocks):
    rows = [[*sum(walk, ()), *sum(window, ())] for walk, window in zip(walks, windows, strict=True)]
    return Plan(steps=np.array(rows, np.int64), blocks=np.array(blocks, np.int64))


@lru_cache(maxsize=4096)
def plan(operation, problem, dtype, positions_adjacent, machine):
    """The plan of ``operation`` (FPROP, DGRAD or WGRAD).

    ``positions_adjacent``: neighbours in the source's memory are positions. This decides nothing about a sum's order.
    """
    walks = problem.backward_walks() if operation == DGRAD else [problem.forward_walk()]
    groups, channels, outputs = problem.groups, problem.x_channels, problem.y_channels
    if operation == DGRAD:
        channels, outputs = outputs, channels
    itemsize = dtype.compute_itemsize
    strip = machine.tile_column_bytes // itemsize
    taps = max(prod(axis.taps for axis in walk) for walk in walks)
    threads = 1 if problem.multiplications < SERIAL_MULTIPLICATIONS else machine.threads
    sizes = [
        problem.batch * groups * dtype.itemsize * n
        for n in (problem.x_channels * prod(problem.x), problem.y_channels * prod(problem.y))
    ]
    source = sizes[1 if operation == DGRAD else 0]
    streams = sum(sizes) > STREAM_PART * machine.cache_bytes and source > STREAM_SOURCE_PART * machine.cache_bytes
    in_place = channels == outputs == 1 and not positions_adjacent and dtype.itemsize == itemsize
    found = _lanewise(operation, problem, walks, channels, outputs, in_place, machine, itemsize)
    if found is not None:
        extents, block, slices = found
        if 8 * problem.multiplications >= SERIAL_MULTIPLICATIONS:
            threads = machine.threads
        windows = [[WindowAxis(extent, 0, False, 0, 0, 0) for extent in extents]] * len(walks)
        return _plan(walks, windows, Blocks(threads, True, False, 1, channels, block, slices, streams, False, False))
    pairs = dtype.name == "bfloat16" and machine.multiplies_pairs
    worth = 0.5 if pairs else 1.0  # of a step across channels
    across = operation != WGRAD and _crosses_positions(
        walks[-1], outputs, positions_adjacent, machine, dtype.itemsize, itemsize, worth
    )
    block = _even(outputs, MOST_OUTPUTS[operation], machine.tile_rows if across else strip)
    pairs = pairs and not across
    paired = pairs and operation == WGRAD
    # A window of pairs of channels has half as much for each.
    channel_bytes = itemsize // 2 if pairs and not paired else itemsize
    chunk = _even(channels, DEPTH_BYTES // channel_bytes // max(taps, 1), 4)
    most = min(MOST_POSITIONS, max(machine.tile_rows, SUMS_BYTES // (block * itemsize)))
    positions = problem.batch * max(prod(axis.positions for axis in walk) for walk in walks)
    packs = (
        operation != WGRAD
        and not across
        and positions <= FEW_POSITIONS
        and taps <= FEW_TAPS  # the more, the more each task copies
        and channels * outputs * prod(problem.kernel) * itemsize >= LARGE_FILTER_BYTES
    )
    if packs:
        block, most = min(outputs, strip), FEW_POSITIONS
    images, windows, chunk = _boxed(walks, problem.batch, channels, chunk, most, machine, channel_bytes, across, paired)
    chunk = max(1, min(chunk, channels))
    slices = 1
    if operation == WGRAD:
        blocks = groups * -(-channels // chunk) * -(-outputs // block)
        boxes = -(-problem.batch // images)
        for axis, window in zip(walks[0], windows[0], strict=True):
            boxes *= -(-axis.positions // window.positions)
        slices = max(1, min(-(-WANTED_TASKS // blocks), boxes // 2))
    return _plan(walks, windows, Blocks(threads, False, across, images, chunk, block, slices, streams, packs, pairs))
