"""The first stage of direct's plans: in which order the terms of each sum are added.

It sees a ``SumProblem``, in which there is no layout, no cache and no number of threads: so a result has the same bits
whatever these are. All that it decides is an ``Order``; the second stage (``plan.py``) cuts blocks within it.
"""

from typing import NamedTuple

from ...problem import even
from ..plan.shared import slice_bytes
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

    def is_plain(self, sums):
        """Whether all channels are one chunk, and products are added one by one: as small groups do."""
        return self.chunk >= sums.channels and not self.pairs


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


def chunk_of(sums, depth_bytes, channel_bytes):
    """Channels of a window, of which a tile takes so many bytes under all taps."""
    return even(sums.channels, depth_bytes // channel_bytes // max(sums.taps, 1), 4)


def _most_positions(sums, block, most, sums_bytes):
    """Positions of a box, whose sums of a block of outputs are to stay in the cache."""
    return min(most, max(sums.tile.tile_rows, sums_bytes // (block * sums.itemsize)))


def box_positions(sums, block, phases, most=None):
    """Positions of a box of fprop or dgrad, of which a task has so many walks: few enough for there to be tasks."""
    tuning = sums.tuning
    tasks = max(1, min(tuning.wanted_tasks, sums.multiplications // tuning.task_products))
    blocks = sums.groups * -(-sums.outputs // block) * sums.count // phases
    most = _most_positions(sums, block * phases, most or tuning.box_positions, tuning.sums_bytes)
    return min(most, max(tuning.least_positions, sums.positions * blocks // tasks))


def channel_bytes(sums, pairs):
    """Of a channel of a window."""
    return sums.itemsize // 2 if pairs else sums.itemsize


def _order(sums, crosses):
    """The ``Order`` of one image; ``crosses``: tiles across positions are faster."""
    across = crosses and not suits_halves(sums)
    phases = sums.count if across and joins_phases(sums) else 1
    pairs, packs, whole = sums.multiplies_pairs and not across, packs_in_tasks(sums), sums
    if not across:
        sums, _ = cut_walks(sums)
    # A strip that a task packs stays in the first cache. Layouts differ in who packs, but have the same chunks.
    itemsize, tuning = channel_bytes(sums, pairs), sums.tuning
    chunk = chunk_of(sums, tuning.packed_depth_bytes if packs else tuning.depth_bytes, itemsize)
    if not across and len(sums.walks) == len(whole.walks) and (packs if sums is whole else packs_in_tasks(sums)):
        most = tuning.packed_positions
    else:
        block = even(sums.outputs, tuning.most_outputs, sums.tile.tile_rows if across else sums.strip)
        most = box_positions(sums, block, phases)
    # A window has at most an element for each position and tap: a few of them always fit.
    few = phases == 1 and sums.positions <= most
    if not few or sums.positions * sums.taps * chunk * itemsize > tuning.window_bytes:
        *_, chunk = boxed(sums, chunk, 1, most, itemsize, across, shared=phases > 1)
    return Order(max(1, min(chunk, sums.channels)), pairs)


def order_of(sums):
    """The ``Order`` of fprop or dgrad: that of one image, since it is not to depend on what else is in the batch.

    Of one tap, all layouts have the order of channels last.
    """
    alone = sums.alone()
    return _order(alone, crosses_positions(alone, False))


def adjacent_order_of(sums):
    """Another order of the same bits where positions are adjacent in the source's memory.

    One tap has its channels one after the other, however they are cut; but not in pairs.
    """
    if sums.taps > 1 or sums.multiplies_pairs:
        return order_of(sums)
    alone = sums.alone()
    return _order(alone, crosses_positions(alone, True))


def filter_blocks(sums, chunk, block):
    """Blocks of the filter, of so many channels and outputs."""
    return sums.groups * -(-sums.channels // chunk) * -(-sums.outputs // block)


def sums_bytes_of_slice(sums, chunk, block):
    """Bytes of one slice's sums of wgrad in such blocks of the filter."""
    sizes = sums.groups, sums.channels, sums.outputs, sums.taps
    return slice_bytes(*sizes, chunk, block, sums.lanes, sums.itemsize)


def box_order_of(sums, pieces=1):
    """The ``BoxOrder`` of wgrad, its walks cut: its boxes in slices where there are few blocks of the filter.

    ``pieces``: blocks into which the taps of each walk were cut.
    """
    tuning, pairs = sums.tuning, sums.multiplies_pairs
    block = even(sums.outputs, tuning.wgrad_outputs, sums.strip)
    # The cache itself does not decide: boxes are where slices of a sum begin, and so reach the bits.
    if sums.taps == 1:
        depth_bytes, most = tuning.wgrad_pointwise_depth_bytes, tuning.wgrad_pointwise_positions
    else:
        depth_bytes, most = tuning.wgrad_depth_bytes, tuning.box_positions
    chunk, sums_bytes = chunk_of(sums, depth_bytes, sums.itemsize), tuning.sums_bytes
    blocks = filter_blocks(sums, chunk, block)
    if takes_larger_boxes(sums) and sums.positions * blocks >= 2 * tuning.wanted_tasks * tuning.larger_positions:
        most, sums_bytes = tuning.larger_positions, tuning.larger_sums_bytes
    most = _most_positions(sums, block, most, sums_bytes)
    images, windows, chunk = boxed(sums, chunk, 1, most, sums.itemsize, paired=pairs)
    chunk = max(1, min(chunk, sums.channels))
    blocks = filter_blocks(sums, chunk, block)
    room = sums.most_scratch // sums_bytes_of_slice(sums, chunk, block)
    slices = min(-(-tuning.wanted_tasks // (blocks * pieces)), count_boxes(sums, images, windows) // 2, room)
    slices = max(1, slices)
    return BoxOrder(pairs, images, windows, slices, chunk, block, most)
