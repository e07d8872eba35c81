"""The first stage of direct's plans: in which order the terms of each sum are added.

It sees a ``Case``, in which there is no layout, no cache and no number of threads: so a result has the same bits
whatever these are. All that it decides is an ``Order``; the second stage (``plan.py``) cuts blocks within it.
"""

from typing import NamedTuple

from ...problem import even
from ..shared import slice_bytes
from .boxes import boxed, count_boxes
from .choices import (
    crosses_positions,
    cut_walks,
    joins_phases,
    packs_in_tasks,
    suits_halves,
    takes_larger_boxes,
)


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


def _most_positions(case, block, most, sums_bytes):
    """Positions of a box, whose sums of a block of outputs are to stay in the cache."""
    return min(most, max(case.tile.tile_rows, sums_bytes // (block * case.itemsize)))


def box_positions(case, block, phases, most=None):
    """Positions of a box of fprop or dgrad, of which a task has so many walks: few enough for there to be tasks."""
    tuning = case.tuning
    tasks = max(1, min(tuning.wanted_tasks, case.multiplications // tuning.task_products))
    blocks = case.groups * -(-case.outputs // block) * case.count // phases
    most = _most_positions(case, block * phases, most or tuning.box_positions, tuning.sums_bytes)
    return min(most, max(tuning.least_positions, case.positions * blocks // tasks))


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
    itemsize, tuning = channel_bytes(case, pairs), case.tuning
    chunk = chunk_of(case, tuning.shared_depth_bytes if packs else tuning.depth_bytes, itemsize)
    if not across and len(case.walks) == len(whole.walks) and (packs if case is whole else packs_in_tasks(case)):
        most = tuning.larger_positions
    else:
        block = even(case.outputs, tuning.most_outputs, case.tile.tile_rows if across else case.strip)
        most = box_positions(case, block, phases)
    # A window has at most an element for each position and tap: a few of them always fit.
    few = phases == 1 and case.positions <= most
    if not few or case.positions * case.taps * chunk * itemsize > tuning.window_bytes:
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


def sums_bytes_of_slice(case, chunk, block):
    """Bytes of one slice's sums of wgrad in such blocks of the filter."""
    sizes = case.groups, case.channels, case.outputs, case.taps
    return slice_bytes(*sizes, chunk, block, case.lanes, case.itemsize)


def box_order_of(case, pieces=1):
    """The ``BoxOrder`` of wgrad, its walks cut: its boxes in slices where there are few blocks of the filter.

    ``pieces``: blocks into which the taps of each walk were cut.
    """
    tuning, pairs = case.tuning, case.multiplies_pairs
    block = even(case.outputs, tuning.wgrad_outputs, case.strip)
    # The cache itself does not decide: boxes are where slices of a sum begin, and so reach the bits.
    if case.taps == 1:
        depth_bytes, most = tuning.wgrad_pointwise_depth_bytes, tuning.wgrad_pointwise_positions
    else:
        depth_bytes, most = tuning.shared_depth_bytes, tuning.box_positions
    chunk, sums_bytes = chunk_of(case, depth_bytes, case.itemsize), tuning.sums_bytes
    blocks = filter_blocks(case, chunk, block)
    if takes_larger_boxes(case) and case.positions * blocks >= 2 * tuning.wanted_tasks * tuning.larger_positions:
        most, sums_bytes = tuning.larger_positions, tuning.larger_sums_bytes
    most = _most_positions(case, block, most, sums_bytes)
    images, windows, chunk = boxed(case, chunk, 1, most, case.itemsize, paired=pairs)
    chunk = max(1, min(chunk, case.channels))
    blocks = filter_blocks(case, chunk, block)
    room = case.most_scratch // sums_bytes_of_slice(case, chunk, block)
    slices = min(-(-tuning.wanted_tasks // (blocks * pieces)), count_boxes(case, images, windows) // 2, room)
    slices = max(1, slices)
    return BoxOrder(pairs, images, windows, slices, chunk, block, most)
