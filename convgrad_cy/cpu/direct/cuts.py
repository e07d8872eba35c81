"""Cuts of direct's plans for many threads (``plan/cuts.py``): smaller boxes and blocks.

The cuts keep the order of sums: the chunks of fprop and dgrad, the boxes and slices of wgrad.
"""

from itertools import product
from math import prod

from ...problem import balanced_size
from ..machine import PAIRED_TIME
from ..machine.register_tile import tile_cycles
from ..plan.cuts import Tasks, best_cut, halves, shrinking
from .boxes import count_boxes
from .order import sums_bytes_of_slice


def _boxes(sums, images, window, walk):
    return -(-sums.batch // images) * prod(
        -(-axis.positions // part.positions) for axis, part in zip(walk, window, strict=True)
    )


def _cycles(sums, sizes, block, images, window, walk, pairs):
    """Modelled cycles of a task: one box of one walk and one block of outputs."""
    tuning = sums.tuning
    positions, terms = (
        images * prod(part.positions for part in window),
        sums.channels * prod(axis.taps for axis in walk),
    )
    rows, columns = (block, positions) if sizes.across else (positions, block)
    products = terms * tile_cycles(rows, columns, sums.tile, sums.itemsize) * PAIRED_TIME[pairs]
    copied = images * prod(part.extent for part in window) * sums.channels
    filters = (tuning.packed_cycles if sizes.packs else tuning.read_cycles) * terms * block
    return products + tuning.copied_cycles * copied + filters + tuning.box_cycles


def correlation_loop(sums, sizes, pairs, block, images, windows):
    """The ``Tasks`` of fprop or dgrad with these blocks, images and windows."""
    each = zip(sums.walks, windows, sums.counts, strict=True)
    blocks = sums.groups * -(-sums.outputs // block)
    kinds = [
        Tasks(
            blocks * count * _boxes(sums, images, window, walk),
            _cycles(sums, sizes, block, images, window, walk, pairs),
        )
        for walk, window, count in each
    ]
    if sizes.phases == 1:
        return kinds
    return [Tasks(max(kind.count for kind in kinds), sum(kind.cycles for kind in kinds))]


def cut_correlation(sums, sizes, pairs, threads, cut, boxed):
    """(block, images, windows) of fprop or dgrad for ``threads`` threads.

    ``cut``: the current block, images and windows. ``boxed(size)``: images and windows of boxes of at most ``size``
    positions.
    """
    if threads <= sums.tuning.tuned_threads:
        return cut
    whole = cut[1] * max(prod(part.positions for part in window) for window in cut[2])
    box_sizes = shrinking(whole, sums.tuning, sums.tuning.least_cut_positions)
    blocks = halves(cut[0], sums.tile.tile_rows if sizes.across else sums.strip)
    others = ((block, *boxed(size)) for block, size in product(blocks, box_sizes))
    return best_cut(cut, others, lambda one: [correlation_loop(sums, sizes, pairs, *one)], threads, sums.tuning)


def accumulation_loop(sums, order, chunk, block):
    """The ``Tasks`` of wgrad, for the walk with the most taps. A block has ``chunk`` channels and ``block`` outputs."""
    tasks = order.slices * sums.groups * -(-sums.channels // chunk) * -(-sums.outputs // block)
    boxes = count_boxes(sums, order.images, order.windows) / order.slices
    window = max(order.windows, key=lambda window: prod(part.positions for part in window))
    positions, seen = (order.images * prod(getattr(part, name) for part in window) for name in ("positions", "extent"))
    products = positions * tile_cycles(sums.taps * chunk, block, sums.tile, sums.itemsize) * PAIRED_TIME[order.pairs]
    copied = sums.tuning.copied_cycles * (seen * chunk + positions * block)
    return [Tasks(tasks, boxes * (products + copied + sums.tuning.box_cycles))]


def has_room(sums, slices, chunk, block):
    """Whether the sums of all slices, in such blocks of the filter, fit in the scratch limit."""
    return slices == 1 or slices * sums_bytes_of_slice(sums, chunk, block) <= sums.most_scratch


def cut_accumulation(sums, order, threads, chunk, block):
    """(chunk, block) of wgrad for ``threads`` threads, such that its sums fit in the scratch limit."""
    if threads <= sums.tuning.tuned_threads:
        return chunk, block
    chunks = [chunk]
    while chunks[-1] > 1 and sums.taps * chunks[-1] > sums.tile.tile_rows:
        chunks.append(balanced_size(sums.channels, max(1, chunks[-1] // 2)))
    every = product(chunks, halves(block, sums.lanes))
    others = (one for one in every if has_room(sums, order.slices, *one))
    return best_cut((chunk, block), others, lambda one: [accumulation_loop(sums, order, *one)], threads, sums.tuning)
