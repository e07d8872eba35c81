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
MOST_OUTPUTS = {FPROP: 512, DGRAD: 512, WGRAD: 128}

#: Below this many products, starting a second thread costs more than it saves; where each element that is read or
#: written takes part in few of them, as in a depthwise problem, an eighth of that.
SERIAL_MULTIPLICATIONS = 4_000_000

#: wgrad has as many tasks as blocks of the filter; where those are fewer, the positions are cut into slices.
WANTED_TASKS = 16


class Machine(NamedTuple):
    """What a plan needs to know of the machine: the register tile and the number of threads."""

    tile_rows: int
    tile_column_bytes: int
    vector_bytes: int
    threads: int


class Blocks(NamedTuple):
    """The integers that steer the loops of ``pyx/``; the fields and their order are those of ``Blocks`` there.

    ``channelwise``: each output channel takes one input channel; the groups of a depthwise problem are its channels.
    ``positions_across``: the columns of a tile are positions of a row, not output channels. ``images``: batch extent of
    a box of positions. ``chunk``: channels of a window. ``outputs``: output channels of a block. ``slices``: tasks that
    share the boxes of one block of the filter.
    """

    threads: int
    channelwise: bool
    positions_across: bool
    images: int
    chunk: int
    outputs: int
    slices: int


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


def _crosses_positions(walk, outputs, positions_adjacent, machine, itemsize):
    """Whether tiles across positions are faster than tiles across output channels.

    They are where there are few output channels, and where positions are adjacent and one tap can read them in place.
    """
    row = walk[2].positions
    lanes = machine.vector_bytes // itemsize
    in_place = positions_adjacent and row % lanes == 0 and all(axis.taps == 1 for axis in walk)
    across_channels = tile_cycles(row, outputs, machine, itemsize)
    return tile_cycles(outputs, row, machine, itemsize) < (1.1 if in_place else 0.8) * across_channels


def is_channelwise(problem):
    """Whether the groups are computed side by side, as channels: where each has one channel."""
    return problem.groups > 1 and problem.x_channels == problem.y_channels == 1


def _boxed(walks, batch, channels, chunk, least, most, machine, itemsize, across):
    """(images, a window for each walk, chunk): boxes and chunks of channels whose window fits into its share."""
    largest = max(walks, key=lambda walk: (walk[0].taps > 0, prod(axis.positions for axis in walk)))
    while True:
        images, *extents = box_of(largest, batch, most, machine.vector_bytes // itemsize if across else 1)
        windows = [
            [window_axis(*pair, contiguous=across and i == 2) for i, pair in enumerate(zip(walk, extents, strict=True))]
            for walk in walks
        ]
        elements = images * max(prod(axis.extent for axis in window) for window in windows)
        if elements * chunk * itemsize <= WINDOW_BYTES or (chunk <= least and most == 1):
            return images, windows, chunk
        # A few channels of many positions, since the rim grows as boxes shrink; but then of fewer positions.
        if chunk > max(4, least) or (chunk > least and most <= 24):
            chunk = _even(channels, max(least, chunk // 2), 4 if chunk > 4 else 1)
        else:
            most = max(1, most // 2)


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
    channelwise = is_channelwise(problem)
    if channelwise:
        groups, outputs = 1, groups
    across = (
        operation != WGRAD
        and not channelwise
        and _crosses_positions(walks[-1], outputs, positions_adjacent, machine, itemsize)
    )
    most_outputs = strip if channelwise else MOST_OUTPUTS[operation]
    block = _even(outputs, most_outputs, machine.tile_rows if across else strip)
    chunk = block if channelwise else _even(channels, DEPTH_BYTES // itemsize // max(taps, 1), 4)
    most = min(MOST_POSITIONS, max(machine.tile_rows, SUMS_BYTES // (block * itemsize)))
    # A window has the channels of a chunk, or those of a block of outputs where each of these takes one of them.
    least = block if channelwise else 1
    images, windows, chunk = _boxed(walks, problem.batch, channels, chunk, least, most, machine, itemsize, across)
    chunk = max(1, min(chunk, channels))
    slices = 1
    if operation == WGRAD:
        blocks = groups * -(-channels // chunk) * -(-outputs // block)
        boxes = -(-problem.batch // images)
        for axis, window in zip(walks[0], windows[0], strict=True):
            boxes *= -(-axis.positions // window.positions)
        slices = max(1, min(-(-WANTED_TASKS // blocks), boxes // 2))
    work = problem.multiplications * (8 if channelwise else 1)
    threads = 1 if work < SERIAL_MULTIPLICATIONS else machine.threads
    rows = [[*sum(walk, ()), *sum(window, ())] for walk, window in zip(walks, windows, strict=True)]
    return Plan(
        steps=np.array(rows, np.int64),
        blocks=np.array(Blocks(threads, channelwise, across, images, chunk, block, slices), np.int64),
    )
