"""Stage 1 of direct's plans: the order in which the terms of each sum are added.

It receives a ``SumProblem``, which contains neither layout, caches nor threads. So the bits of a result cannot depend
on these. Its result is an ``Order`` or a ``BoxOrder``. Stage 2 (``plan.py``) cuts blocks within this order.

There is one exception: for one tap, ``plan.py`` chooses between two orders by the layout. ``adjacent_order_of`` says
why both give the same bits.
"""

from typing import NamedTuple

from ...problem import even
from ..plan.shared import slice_bytes
from .boxes import boxed, count_boxes
from .choices import (
    crosses_positions,
    joins_phases,
    packs_in_tasks,
    split_walks,
    suits_halves,
    takes_larger_boxes,
)


class Order(NamedTuple):
    """The order of the sums of fprop and dgrad: all taps of a chunk of channels, then all taps of the next chunk.

    ``pairs``: the tile multiplies pairs of bfloat16 (VECTORS or MATRICES of cpu/machine) and adds their products at a
    time.
    """

    chunk: int
    pairs: int

    def is_plain(self, sums):
        """Whether the order equals the order of small groups: one chunk, with products added one by one."""
        return self.chunk >= sums.channels and not self.pairs


class BoxOrder(NamedTuple):
    """The order of the sums of wgrad: box by box, in slices that are added in order.

    ``images``: images of a box. ``windows``: the window of a box, for each walk. ``chunk``: channels of a
    window. ``block``: outputs of a task. ``chunk`` and ``block`` have decided ``slices``; beyond that they affect no
    bit, so stage 2 may change them. ``most``: most positions of a box.
    """

    pairs: int
    images: int
    windows: list
    slices: int
    chunk: int
    block: int
    most: int


def chunk_of(sums, depth_bytes, channel_bytes):
    """Channels of a window, such that their taps take about ``depth_bytes`` for a position."""
    return even(sums.channels, depth_bytes // channel_bytes // max(sums.taps, 1), 4)


def _most_positions(sums, block, most, sums_bytes):
    """Most positions of a box whose sums, for a block of outputs, stay in the cache."""
    return min(most, max(sums.tile.tile_rows, sums_bytes // (block * sums.itemsize)))


def box_positions(sums, block, phases, most=None):
    """Most positions of a box of fprop or dgrad that leave ``wanted_tasks`` tasks; ``phases``: walks of a task."""
    tuning = sums.tuning
    tasks = max(1, min(tuning.wanted_tasks, sums.multiplications // tuning.task_products))
    blocks = sums.groups * -(-sums.outputs // block) * sums.count // phases
    most = _most_positions(sums, block * phases, most or tuning.box_positions, tuning.sums_bytes)
    return min(most, max(tuning.least_positions, sums.positions * blocks // tasks))


def channel_bytes(sums, pairs):
    """Bytes of a channel of a window, for one position."""
    return sums.itemsize // 2 if pairs else sums.itemsize


def _order(sums, crosses):
    """The ``Order`` of one image; ``crosses``: tiles across positions are faster."""
    across = crosses and not suits_halves(sums)
    phases = sums.count if across and joins_phases(sums) else 1
    pairs, packs, whole = 0 if across else sums.multiplies_pairs, packs_in_tasks(sums), sums
    if not across:
        sums, _ = split_walks(sums)
    # A strip that a task packs stays in L1. Layouts differ in who packs the filter, but they have the same chunks.
    itemsize, tuning = channel_bytes(sums, pairs), sums.tuning
    chunk = chunk_of(sums, tuning.shared_depth_bytes if packs else tuning.depth_bytes, itemsize)
    # A split may also leave each walk in one part, which has fewer taps or positions. Then ``packs`` is asked again.
    if not across and len(sums.walks) == len(whole.walks) and (packs if sums is whole else packs_in_tasks(sums)):
        most = tuning.larger_positions
    else:
        block = even(sums.outputs, tuning.most_outputs, sums.tile.tile_rows if across else sums.strip)
        most = box_positions(sums, block, phases)
    # Windows of few positions usually fit: they have at most one element for each position and tap. This bound is
    # tested first, because ``boxed`` takes longer.
    few = phases == 1 and sums.positions <= most
    if not few or sums.positions * sums.taps * chunk * itemsize > tuning.window_bytes:
        *_, chunk = boxed(sums, chunk, 1, most, itemsize, across, shared=phases > 1)
    return Order(max(1, min(chunk, sums.channels)), pairs)


def order_of(sums):
    """The ``Order`` of fprop or dgrad. It is planned for one image, so it cannot depend on the size of the batch.

    A filter of one tap may favour tiles across positions in one layout only. The decision for channels last is taken.
    """
    alone = sums.alone()
    return _order(alone, crosses_positions(alone, False))


def adjacent_order_of(sums):
    """The ``Order`` for a source whose positions are adjacent; it gives the same bits as ``order_of``.

    With one tap, the channels are added one after the other, and chunks do not change this. Pairs of bfloat16 do, so
    they keep the order of ``order_of``.
    """
    if sums.taps > 1 or sums.multiplies_pairs:
        return order_of(sums)
    alone = sums.alone()
    return _order(alone, crosses_positions(alone, True))


def filter_blocks(sums, chunk, block):
    """Number of blocks of the filter, with ``chunk`` channels and ``block`` outputs each."""
    return sums.groups * -(-sums.channels // chunk) * -(-sums.outputs // block)


def sums_bytes_of_slice(sums, chunk, block):
    """Bytes of the sums of one slice of wgrad, in blocks of ``chunk`` channels and ``block`` outputs."""
    sizes = sums.groups, sums.channels, sums.outputs, sums.taps
    return slice_bytes(*sizes, chunk, block, sums.lanes, sums.itemsize)


def box_order_of(sums, pieces=1):
    """The ``BoxOrder`` of wgrad, whose walks are already split. Few blocks of the filter give several slices.

    ``pieces``: number of blocks into which the taps of each walk were split.
    """
    tuning, pairs = sums.tuning, sums.multiplies_pairs
    block = even(sums.outputs, tuning.wgrad_outputs, sums.strip)
    # Slices of a sum begin at boxes, so boxes affect bits. Therefore their size must not depend on the machine's cache.
    if sums.taps == 1:
        depth_bytes, most = tuning.wgrad_pointwise_depth_bytes, tuning.wgrad_pointwise_positions
    else:
        depth_bytes, most = tuning.shared_depth_bytes, tuning.box_positions
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
