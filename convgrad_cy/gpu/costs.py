"""The cost of the tiles of ``tiles.py``, and the choice of the cheapest one for a problem.

The cost follows from the rates of a multiprocessor. The time of a stage of a tile is bound by its matrix products, by
the traffic of shared memory, or by the copies from the L2 cache::

    products = rows * columns * (terms of a stage) * (pairs of planes) multiplications
    traffic  = planes * 64 bytes * (4 (warp rows + warp columns), read, + rows + columns, written)
    copies   = planes * 64 bytes * (rows + columns)

The rates are ``_RATES``, 128 bytes a clock, and ``_COPIED``. With warpgroups a row of a stage has 128 bytes, and every
64 rows read all columns. On sm_90 the three bounds are, in clocks:

- 410, 384 and 683 for 128 x 128;
- 410, 416 and 853 for 256 x 64 and 64 x 256, the tiles of layers with 64 channels;
- 51, 276 and 704 for 256 x 8, where the rows dominate;
- 1229, 864 and 1536 for 128 x 64 in three planes, with six products for twice three loads;
- 1024, 1024 and 1536 for 128 x 256 with warpgroups.

For tiles whose operands TMA copies, the rates were measured on an H200.
"""

from functools import cache
from typing import NamedTuple

from .tiles import residence

#: Pairs of planes whose products are summed.
_PAIRS = {1: 1, 2: 3, 3: 6}


class _Rates(NamedTuple):
    """Rates of a multiprocessor in units per clock, from the data sheets of its architecture."""

    halves: int  # products of 16-bit numbers by mma.sync with float32 sums
    doubles: int  # products of float64 by tensor cores
    memory: float  # bytes of DRAM traffic, for a device that does not tell


#: First architecture with these rates -> rates. sm_86, 89 and 120 have the data sheets of workstation GPUs; GeForce
#: has half of their 16-bit rate. sm_90 has a 16-bit rate of 2048, and mma.sync reaches 63 % of it. sm_100 has twice
#: this rate with instructions that are not used here. No data sheet has its rate for mma.sync, so sm_90's is used.
_RATES = {
    80: _Rates(1024, 64, 10),
    86: _Rates(512, 2, 5),
    89: _Rates(512, 2, 3),
    90: _Rates(1280, 128, 13),
    100: _Rates(1280, 64, 28),
    120: _Rates(512, 2, 4),
}

#: Products of 16-bit numbers by warpgroup instructions, per clock of a multiprocessor.
_GROUPED_HALVES = 2048

#: Bytes that threads copy from the L2 cache, per clock of a multiprocessor. An H200 moved 21 to 26 bytes with products
#: by warps, for all tiles, and 31 to 36 with products by warpgroups. The copy instructions limit this rate.
_COPIED, _COPIED_BY_GROUPS = 24, 32

#: Rates with TMA: bytes copied from the L2 cache (42 to 50 were measured), and products of 16-bit numbers. The latter
#: is the highest rate on an H200, which lowers its clock under this load. The last two are bytes of results stored by
#: a block that is alone on its multiprocessor, and by blocks that share one.
_COPIED_BY_ENGINE, _ENGINE_HALVES, _STORED_ALONE, _STORED_IN_TURNS = 46, 1740, 16, 21

#: Divisor of the clocks of TMA plans, when they are compared with plans whose threads copy. The model undercounts the
#: stores of the latter (H200).
ENGINE_ADVANTAGE = 1.2

#: Time factor of TMA plans if half of each box or more is beyond the last channel.
HALF_EMPTY = 1.5

#: 16-bit results that mma.cu stores one by one, per clock of a multiprocessor: its loop has 38 instructions for 32.
STORED_SINGLY = 3.4

#: Clocks of a block in addition to its stages: the first stages arrive, and the sums are stored.
_BLOCK_CLOCKS = 1500

#: Clocks of a launch.
LAUNCH_CLOCKS = 4000

#: Least number of stages of a split of a correlation. With fewer, most of its time is the wait for the first stages.
_LEAST_STEPS = 8

#: Time factor of a block that is alone on its multiprocessor: it is idle at barriers, by estimate 25 % of the time.
_ALONE = 4 / 3


@cache
def _rates(arch):
    """The rates of this architecture, or of the last known one before it."""
    return _RATES[max(known for known in _RATES if known <= arch)]


def stage_clocks(kind, tile, device):
    """Clocks of a multiprocessor for one stage."""
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
    """Clocks for ``blocks`` blocks of ``steps`` stages each: the time of the multiprocessor with the most blocks."""
    resident = residence(kind, tile, device)[0]
    most = -(-blocks // device.processors)
    if most > 1:  # blocks that share a multiprocessor end together, and the same number follows
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
    """Clocks in which the memory moves ``size`` bytes."""
    return size / ((device.memory_bytes or _rates(device.arch).memory) * device.processors)


def best_tile(kind, device, groups, products, compiled):
    """(tile, number of splits, stages of a split, clocks) for ``products``, each (rows, columns, depth).

    Sums are split (split-K) if there are fewer tiles than multiprocessors, for example in a batch of one. A launch of
    its own reads the partial sums and adds them. A split has at least ``_LEAST_STEPS`` stages.
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
    """(tile, stages of a split, clocks) for a product whose depth is split among blocks.

    ``by_engine`` is the number of columns with TMA, or None if TMA cannot copy the operands.

    Every multiprocessor should have the same number of blocks, and more than one. So numbers of splits are tried that
    give each multiprocessor one to eight blocks. More splits cost more partial sums, which are written and read again.
    More splits are also more exact: tensor cores truncate, so no float is the sum of more than 2**15 products. (With
    planes, ``promote`` limits this number.)
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
