"""Stage 1 of direct's plans: the order in which the terms of each sum are added.

It receives a ``SumProblem``, which contains neither the layout, the caches nor the threads. So the bits of a result
cannot depend on these. In all of ``direct/``, the variable ``sums`` is the ``SumProblem``. The result of this stage is
an ``Order`` or a ``BoxOrder``. Stage 2 (``plan.py``) chooses the blocks of the loops, but keeps this order.

There is one exception: for filters of one tap, ``plan.py`` chooses between two orders by the layout.
``adjacent_order_of`` explains why both give bitwise identical results.
"""

from typing import NamedTuple

from ...problem import balanced_size
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

    ``chunk``: channels of a chunk. ``pairs``: how the tile multiplies pairs of bfloat16 (VECTORS or MATRICES of
    cpu/machine), and 0 if it does not. A tile of pairs adds the products of several terms at a time.
    """

    chunk: int
    pairs: int

    def is_plain(self, sums):
        """Whether this is also the order of ``small_groups``: one chunk, with products added one by one."""
        return self.chunk >= sums.channels and not self.pairs


class BoxOrder(NamedTuple):
    """The order of the sums of wgrad. A slice sums over some of the boxes, box by box; the slices are added in order.

    ``images``: images of a box. ``windows``: the window of a box, for each walk. ``slices``: their number. ``chunk``:
    channels of a window. ``block``: outputs of a task. ``max_positions``: maximum positions of a box.

    The number of slices was computed from ``chunk`` and ``block``. Apart from that, these two do not affect the
    result's bits, so stage 2 may change them.
    """

    pairs: int
    images: int
    windows: list
    slices: int
    chunk: int
    block: int
    max_positions: int


def chunk_of(sums, depth_bytes, itemsize):
    """Channels of a chunk: its elements at all taps of one position take about ``depth_bytes``.

    ``itemsize``: bytes of an element.
    """
    return balanced_size(sums.channels, depth_bytes // itemsize // max(sums.taps, 1), 4)


def _positions_in_cache(sums, block, limit, sums_bytes):
    """Maximum positions of a box: at most ``limit``, and the sums of ``block`` outputs take about ``sums_bytes``."""
    return min(limit, max(sums.tile.tile_rows, sums_bytes // (block * sums.itemsize)))


def box_positions(sums, block, phases, limit=None):
    """Maximum positions of a box of fprop or dgrad, for tasks with ``block`` outputs and ``phases`` walks.

    The size gives the wanted number of tasks. It is at least ``least_positions`` and at most ``limit`` (by default,
    ``tuning.box_positions``), and the sums of a box stay in the cache.
    """
    tuning = sums.tuning
    tasks = max(1, min(tuning.wanted_tasks, sums.multiplications // tuning.task_products))
    blocks = sums.groups * -(-sums.outputs // block) * sums.count // phases
    limit = _positions_in_cache(sums, block * phases, limit or tuning.box_positions, tuning.sums_bytes)
    return min(limit, max(tuning.least_positions, sums.positions * blocks // tasks))


def window_itemsize(sums, pairs):
    """Bytes of an element of a window. With pairs, bfloat16 is not widened to float."""
    return sums.itemsize // 2 if pairs else sums.itemsize


def _order(sums, across_is_faster):
    """The ``Order`` of one image. ``across_is_faster``: the answer of ``crosses_positions``."""
    across = across_is_faster and not suits_halves(sums)
    phases = sums.count if across and joins_phases(sums) else 1
    pairs, whole = 0 if across else sums.multiplies_pairs, sums
    packs = sums.taps > 1 and packs_in_tasks(sums)  # with one tap, longer chunks are faster, and give the same bits
    if not across:
        sums, _ = split_walks(sums)
    # A strip of the filter that a task packs for itself should stay in L1. In some layouts, the filter is packed once
    # for all tasks instead (``packs_phases``). All layouts must have the same chunks, so the chunk ignores this.
    itemsize, tuning = window_itemsize(sums, pairs), sums.tuning
    chunk = chunk_of(sums, tuning.shared_depth_bytes if packs else tuning.depth_bytes, itemsize)
    # The split may shorten walks without dividing them. Then ``packs`` is computed again for these.
    if not across and len(sums.walks) == len(whole.walks) and (packs if sums is whole else packs_in_tasks(sums)):
        max_positions = tuning.larger_positions
    else:
        block = balanced_size(sums.outputs, tuning.most_outputs, sums.tile.tile_rows if across else sums.strip)
        max_positions = box_positions(sums, block, phases)
    # ``boxed`` takes fewer channels if their window is too large. It is slow, so a bound is tested first: if all
    # positions fit in one box, its window has at most one element for each channel, position and tap.
    is_one_box = phases == 1 and sums.positions <= max_positions
    if not is_one_box or sums.positions * sums.taps * chunk * itemsize > tuning.window_bytes:
        *_, chunk = boxed(sums, chunk, 1, max_positions, itemsize, across, shared=phases > 1)
    return Order(max(1, min(chunk, sums.channels)), pairs)


def order_of(sums):
    """The ``Order`` of fprop or dgrad. It is planned for one image, so it cannot depend on the size of the batch.

    For a filter of one tap, tiles across positions may be faster in one layout only. This function always takes the
    answer for channels last.
    """
    alone = sums.alone()
    return _order(alone, crosses_positions(alone, positions_adjacent=False))


def adjacent_order_of(sums):
    """The ``Order`` for a source with adjacent positions. Its results are bitwise identical to those with ``order_of``.

    With several taps, or with pairs of bfloat16, it is the same order. Otherwise the terms of a sum are its channels.
    Both orders add them one after the other, and the size of the chunks does not affect this.
    """
    if sums.taps > 1 or sums.multiplies_pairs:
        return order_of(sums)
    alone = sums.alone()
    return _order(alone, crosses_positions(alone, positions_adjacent=True))


def filter_blocks(sums, chunk, block):
    """Number of blocks of the filter, with ``chunk`` channels and ``block`` outputs each."""
    return sums.groups * -(-sums.channels // chunk) * -(-sums.outputs // block)


def sums_bytes_of_slice(sums, chunk, block):
    """Bytes of the sums of one slice of wgrad, in blocks of ``chunk`` channels and ``block`` outputs."""
    sizes = sums.groups, sums.channels, sums.outputs, sums.taps
    return slice_bytes(*sizes, chunk, block, sums.lanes, sums.itemsize)


def box_order_of(sums, pieces=1):
    """The ``BoxOrder`` of wgrad, whose walks are already split. If the filter has few blocks, there are several slices.

    ``pieces``: number of blocks into which the taps of each walk were split.
    """
    tuning, pairs = sums.tuning, sums.multiplies_pairs
    block = balanced_size(sums.outputs, tuning.wgrad_outputs, sums.strip)
    # A slice begins and ends between boxes, so the size of boxes affects the result's bits. It must not depend on the
    # machine's caches.
    if sums.taps == 1:
        depth_bytes, limit = tuning.wgrad_pointwise_depth_bytes, tuning.wgrad_pointwise_positions
    else:
        depth_bytes, limit = tuning.shared_depth_bytes, tuning.box_positions
    chunk, sums_bytes = chunk_of(sums, depth_bytes, sums.itemsize), tuning.sums_bytes
    blocks = filter_blocks(sums, chunk, block)
    if takes_larger_boxes(sums) and sums.positions * blocks >= 2 * tuning.wanted_tasks * tuning.larger_positions:
        limit, sums_bytes = tuning.larger_positions, tuning.larger_sums_bytes
    max_positions = _positions_in_cache(sums, block, limit, sums_bytes)
    images, windows, chunk = boxed(sums, chunk, 1, max_positions, sums.itemsize, paired=pairs)
    chunk = max(1, min(chunk, sums.channels))
    blocks = filter_blocks(sums, chunk, block)
    max_slices = sums.most_scratch // sums_bytes_of_slice(sums, chunk, block)
    slices = min(-(-tuning.wanted_tasks // (blocks * pieces)), count_boxes(sums, images, windows) // 2, max_slices)
    return BoxOrder(pairs, images, windows, max(1, slices), chunk, block, max_positions)
