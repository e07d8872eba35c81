"""What a tile of ``tiles.py`` costs, and so which one a problem takes.

It follows from what a multiprocessor does in one clock. A stage of a tile is bound by its matrix products, by the bytes
that pass through shared memory, or by those that come from the L2 cache::

    products = rows * columns * (terms of a stage) * (pairs of planes) multiplications
    traffic  = planes * 64 bytes * (4 (warp rows + warp columns), read, + rows + columns, written)
    copies   = planes * 64 bytes * (rows + columns)

at the rates of ``_RATES``, 128 bytes a clock and ``_COPIED``. Rows of warpgroups have 128 bytes, and every 64 rows of
them read all columns. On sm_90 that is 410, 384 and 683 clocks for 128 x 128; 410, 416 and 853 for 256 x 64 and
64 x 256, the tiles of layers with 64 channels; 51, 276 and 704 for 256 x 8, whose rows cost all. Three planes give
1229, 864 and 1536 for 128 x 64: six products for twice three loads. Warpgroups take 1024, 1024 and 1536 for 128 x 256.

Where the copy engine brings what is multiplied, rates are those that an H200 reached.
"""

from functools import cache
from typing import NamedTuple

from .tiles import residence

#: Pairs of planes whose products are summed.
_PAIRS = {1: 1, 2: 3, 3: 6}


class _Rates(NamedTuple):
    """What a multiprocessor does in a clock, by the data sheets of its architecture."""

    halves: int  # multiplications of 16-bit numbers that mma.sync sums in float32
    doubles: int  # of float64, with instructions of tensor cores
    memory: float  # bytes that its share of the memory moves, for a device that does not say


#: By the first architecture that has them. The data sheets of sm_86, 89 and 120 are those of workstations: GeForce has
#: half their halves. sm_90 has 2048, of which mma.sync reaches 63 %. sm_100 has twice as many for instructions that are
#: not used here; how fast mma.sync is there no data sheet says, and it is taken for as fast as on sm_90.
_RATES = {
    80: _Rates(1024, 64, 10),
    86: _Rates(512, 2, 5),
    89: _Rates(512, 2, 3),
    90: _Rates(1280, 128, 13),
    100: _Rates(1280, 64, 28),
    120: _Rates(512, 2, 4),
}

#: Multiplications of 16-bit numbers that a multiprocessor does in a clock with instructions of a warpgroup.
_GROUPED_HALVES = 2048

#: Bytes that a multiprocessor's copies bring from the L2 cache in a clock. An H200 moved 21 to 26 where warps multiply,
#: whatever the tile, and 31 to 36 where warpgroups do: it is the instructions of copies that take the time.
_COPIED, _COPIED_BY_GROUPS = 24, 32

#: The copy engine brings 42 to 50, and with it warpgroups multiplied so many halves in a clock, as fast as anything on
#: that GPU, which lowers its clock then. At the other rates bytes of results leave a block alone, and blocks in turns.
_COPIED_BY_ENGINE, _ENGINE_HALVES, _STORED_ALONE, _STORED_IN_TURNS = 46, 1740, 16, 21

#: By how much the time is too short that the model finds where threads copy, beside the copy engine: it counts for
#: storing less than an H200 took.
ENGINE_ADVANTAGE = 1.2

#: By how much longer it takes where half of each box, or more, is beyond the last channel.
HALF_EMPTY = 1.5

#: Clocks that a block takes beside its stages: its first stages to arrive, its sums to leave.
_BLOCK_CLOCKS = 1500

#: Clocks of a launch.
LAUNCH_CLOCKS = 4000

#: Stages that a split of a correlation has at least, so that most of its time is not their first arrival.
_LEAST_STEPS = 8

#: A block alone on its multiprocessor leaves it idle at its barriers; taken as a quarter of its time.
_ALONE = 4 / 3


@cache
def _rates(arch):
    """Those of this architecture, or of the last one before it."""
    return _RATES[max(known for known in _RATES if known <= arch)]


def stage_clocks(kind, tile, device):
    """What one stage costs a multiprocessor."""
    rates = _rates(device.arch)
    if tile.warpgroups:
        multiplied, moved = _GROUPED_HALVES, _COPIED_BY_GROUPS
        if tile.engine:
            multiplied, moved = _ENGINE_HALVES, _COPIED_BY_ENGINE
        read = tile.rows // 64 * (64 + tile.columns)
    else:
        multiplied, moved, read = rates.halves if kind.size == 2 else rates.doubles, _COPIED, 4 * sum(tile.warp)
    products = tile.rows * tile.columns * kind.depth(tile) * _PAIRS[kind.planes]
    row_bytes, copied = kind.planes * tile.row_bytes, tile.rows + tile.columns
    return max(products / multiplied, row_bytes * (read + copied) / 128, row_bytes * copied / moved)


def clocks(kind, tile, device, blocks, steps, by_depth=False):
    """The time of so many blocks of so many stages each: that of the multiprocessor with the most of them."""
    resident = residence(kind, tile, device)[0]
    most = -(-blocks // device.processors)
    if most > 1:  # blocks that share a multiprocessor end together, and leave room for as many
        most = -(-blocks // (device.processors * resident)) * resident
    sums = tile.rows * tile.columns
    if tile.engine:
        alone = _ALONE if most == 1 and tile.warpgroups == 1 else 1
        stored = (
            sums * (kind.sum_size if by_depth else kind.size) / (_STORED_IN_TURNS if resident > 1 else _STORED_ALONE)
        )
        return most * (steps * stage_clocks(kind, tile, device) * alone + stored) + _BLOCK_CLOCKS
    stored = sums * kind.sum_size / 64  # written to shared memory and read back
    alone = _ALONE if most == 1 or resident == 1 else 1
    return most * (steps * stage_clocks(kind, tile, device) * alone + _BLOCK_CLOCKS + stored)


def memory_clocks(device, size):
    """The time in which the memory moves so many bytes."""
    return size / ((device.memory_bytes or _rates(device.arch).memory) * device.processors)


def best_tile(kind, device, groups, products, compiled):
    """The tile, the number of splits, the stages of each and the clocks for products, each (rows, columns, depth).

    Sums are split where there are fewer tiles than multiprocessors, as in a batch of one; partial sums are written and
    read again, in a launch of their own. A split has at least ``_LEAST_STEPS`` stages.
    """
    best = None
    sums = groups * sum(rows * columns for rows, columns, _ in products)
    for tile in compiled:
        depths = [-(-depth // kind.depth(tile)) for _, _, depth in products]
        longest = max(depths)
        numbers = [groups * -(-rows // tile.rows) * -(-columns // tile.columns) for rows, columns, _ in products]
        most = min(2 * device.processors // sum(numbers), longest // _LEAST_STEPS, 2**31 // sums)
        for wanted in range(1, max(most, 1) + 1):
            each = max(-(-longest // wanted), 1)
            splits = max(-(-longest // each), 1)
            if splits != wanted:
                continue
            cost = LAUNCH_CLOCKS + memory_clocks(device, 2 * splits * sums * kind.sum_size) if splits > 1 else 0
            for number, depth in zip(numbers, depths, strict=True):
                cost += clocks(kind, tile, device, number * splits, min(depth, each))
            if best is None or cost < best[-1]:
                best = tile, splits, each, cost
    return best


def best_split(kind, device, groups, rows, columns, depth, compiled, by_engine):
    """The tile, the stages of each split and the clocks for a product whose depth is split among blocks.

    ``by_engine`` are the columns as the copy engine brings them, or None where it cannot.

    Every multiprocessor should have the same number of blocks, and not one alone: numbers of splits that fill one to
    eight blocks on each are tried. Against more of them speak the partial sums, written and read again. For them
    speaks accuracy, too: tensor cores truncate, so that no float is the sum of more than 2**15 products (with planes,
    ``promote`` sees to that).
    """
    fewest = -(-depth // 2**15) if kind.size == 2 and kind.planes == 1 else 1
    best = None
    for tile in compiled:
        if tile.engine and by_engine is None:
            continue
        steps = -(-depth // kind.depth(tile))
        blocks = groups * -(-rows // tile.rows) * -(-(by_engine if tile.engine else columns) // tile.columns)
        for filled in range(1, 9):
            splits = min(max(filled * device.processors // blocks, fewest, 1), steps, 65535)
            each = -(-steps // splits)
            splits = -(-steps // each)
            partials = 2 * splits * groups * rows * columns * kind.sum_size
            cost = clocks(kind, tile, device, blocks * splits, each, True) + memory_clocks(device, partials)
            if best is None or cost < best[-1]:
                best = tile, each, cost
    return best
