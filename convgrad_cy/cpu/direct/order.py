"""The first stage of direct's plans: in which order the terms of each sum are added.

It sees a ``Case``, in which there is no layout, no cache and no number of threads: so a result has the same bits
whatever these are. All that it decides is an ``Order``; the second stage (``plan.py``) cuts blocks within it.
"""

from typing import NamedTuple

from ...problem import DGRAD, FPROP, WGRAD
from ..machines import LINE_BYTES
from .boxes import MOST_POSITIONS, WANTED_TASKS, boxed, count_boxes, even
from .choices import (
    FEW_POSITIONS,
    crosses_positions,
    cut_walks,
    joins_phases,
    packs_in_tasks,
    suits_halves,
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
MOST_OUTPUTS = {FPROP: 512, DGRAD: 512, WGRAD: 128}
#: A problem is cut into WANTED_TASKS, if these have so many products, and boxes so many positions.
TASK_MULTIPLICATIONS, LEAST_POSITIONS = 2_000_000, 32


class Order(NamedTuple):
    """The order of the sums of fprop and dgrad: all taps of a chunk of channels, then those of the next chunk.

    ``pairs``: the tile takes pairs of bfloat16, and adds two products at a time.
    """

    chunk: int
    pairs: bool

    def is_plain(self, case):
        """Whether all channels are one chunk, and products are added one by one: as small groups do."""
        return self.chunk >= case.channels and not self.pairs


class BoxOrder(NamedTuple):
    """The order of the sums of wgrad: box by box, in slices that are added in order.

    ``images``, ``windows``: of a box, for each walk. ``chunk``: the channels that this leaves room for; like
    ``block``, the outputs of a task, it only counts the blocks of the filter. ``most``: positions of a box.
    """

    pairs: bool
    images: int
    windows: list
    slices: int
    chunk: int
    block: int
    most: int


def chunk_of(case, depth_bytes, channel_bytes):
    """Channels of a window, of which a tile takes so many bytes under all taps."""
    return even(case.channels, depth_bytes // channel_bytes // max(case.taps, 1), 4)


def _most_positions(case, block, most, sums_bytes=SUMS_BYTES):
    """Positions of a box, whose sums of a block of outputs are to stay in the cache."""
    return min(most, max(case.tile.tile_rows, sums_bytes // (block * case.itemsize)))


def box_positions(case, block, phases, most=MOST_POSITIONS):
    """Positions of a box of fprop or dgrad, of which a task has so many walks: few enough for there to be tasks."""
    tasks = max(1, min(WANTED_TASKS, case.multiplications // TASK_MULTIPLICATIONS))
    blocks = case.groups * -(-case.outputs // block) * case.count // phases
    most = _most_positions(case, block * phases, most)
    return min(most, max(LEAST_POSITIONS, case.positions * blocks // tasks))


def channel_bytes(case, pairs):
    """Of a channel of a window."""
    return case.itemsize // 2 if pairs else case.itemsize


def _order(case, crosses):
    """The ``Order`` of one image; ``crosses``: tiles across positions are faster."""
    across = crosses and not suits_halves(case)
    phases = case.count if across and joins_phases(case) else 1
    pairs, packs, whole = case.multiplies_pairs and not across, packs_in_tasks(case), case
    if not across:
        case, _ = cut_walks(case)
    # A strip that a task packs stays in the first cache. Layouts differ in who packs, but have the same chunks.
    itemsize = channel_bytes(case, pairs)
    chunk = chunk_of(case, DEPTH_BYTES if packs else LONG_DEPTH_BYTES, itemsize)
    if not across and len(case.walks) == len(whole.walks) and (packs if case is whole else packs_in_tasks(case)):
        most = FEW_POSITIONS
    else:
        block = even(case.outputs, MOST_OUTPUTS[case.operation], case.tile.tile_rows if across else case.strip)
        most = box_positions(case, block, phases)
    *_, chunk = boxed(case, chunk, 1, most, itemsize, across, shared=phases > 1)
    return Order(max(1, min(chunk, case.channels)), pairs)


def order_of(case):
    """The ``Order`` of fprop or dgrad: that of one image, since it is not to depend on what else is in the batch.

    Of one tap, all layouts have the order of channels last.
    """
    alone = case.alone()
    return _order(alone, crosses_positions(alone, False))


def adjacent_order_of(case):
    """Another order of the same bits where positions are adjacent in the source's memory.

    One tap has its channels one after the other, however they are cut; but not in pairs.
    """
    if case.taps > 1 or case.multiplies_pairs:
        return order_of(case)
    alone = case.alone()
    return _order(alone, crosses_positions(alone, True))


def filter_blocks(case, chunk, block):
    """Blocks of the filter, of so many channels and outputs."""
    return case.groups * -(-case.channels // chunk) * -(-case.outputs // block)


def box_order_of(case):
    """The ``BoxOrder`` of wgrad, its walks cut: its boxes in slices where there are few blocks of the filter."""
    block = even(case.outputs, MOST_OUTPUTS[WGRAD], case.strip)
    narrow = case.taps == 1 and case.tile.vector_bytes < LINE_BYTES
    depth_bytes, most = (NARROW_DEPTH_BYTES, NARROW_POSITIONS) if narrow else (DEPTH_BYTES, MOST_POSITIONS)
    chunk, sums_bytes, pairs = chunk_of(case, depth_bytes, case.itemsize), SUMS_BYTES, case.multiplies_pairs
    blocks = filter_blocks(case, chunk, block)
    if takes_larger_boxes(case) and case.positions * blocks >= 2 * WANTED_TASKS * LARGER_POSITIONS:
        most, sums_bytes = LARGER_POSITIONS, LARGER_SUMS_BYTES
    most = _most_positions(case, block, most, sums_bytes)
    images, windows, chunk = boxed(case, chunk, 1, most, case.itemsize, paired=pairs)
    chunk = max(1, min(chunk, case.channels))
    blocks = filter_blocks(case, chunk, block)
    slices = max(1, min(-(-WANTED_TASKS // blocks), count_boxes(case, images, windows) // 2))
    return BoxOrder(pairs, images, windows, slices, chunk, block, most)
