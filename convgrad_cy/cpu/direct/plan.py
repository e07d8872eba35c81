"""Stage 2 of direct's plans: (operation, problem, dtype, layout, machine) -> Plan.

This is a pure function: it reads no array and computes no result, so plans can be tested without kernels. Stage 1
(``order.py``) decides the order of sums, without the layout, the caches and the threads. This stage uses them.
"""

from math import prod

from ...memo.bounded import bounded
from ...problem import DGRAD, WGRAD, balanced_size
from ..machine import LINE_BYTES
from ..machine.caches import memory_ways
from ..plan.steps import Blocks, Outline, split_rows, whole_rows
from ..plan.sum_problem import placement_of, sum_problem_of
from .boxes import boxed, bundled, count_boxes, has_much_halo
from .choices import split_walks
from .cuts import cut_accumulation, cut_correlation, has_room
from .forms import FormInput, chosen
from .long_filters import split_taps
from .order import (
    adjacent_order_of,
    box_order_of,
    box_positions,
    chunk_of,
    order_of,
    window_itemsize,
)
from .reads import accumulation_reads, correlation_reads

#: Bytes of the plans that are kept, in addition to the plans of remembered calls.
PLANS_BYTES = 16 << 20


def _many_positions(sums, placement, chunk_bytes, phases, across, windows):
    """Maximum positions of a larger box, for problems with few products for each position or with much halo.

    ``chunk_bytes``: bytes of a chunk at one position of the source. Tiles across positions are for few outputs, and
    each window is then read only a few times. So it should stay in L1. The result is 0 for channels-last groups, which
    are bundled instead.
    """
    if sums.groups > 1 and not placement.positions_adjacent:
        return 0
    products, tuning = sums.channels * sums.taps * sums.outputs * phases, sums.tuning
    many = tuning.many_positions
    if not any(has_much_halo(window, tuning) for window in windows):
        many = min(many, tuning.box_positions * tuning.few_products // max(products, 1))
    seen = chunk_bytes * prod(axis.source_step for axis in sums.typical_walk)
    return min(many, tuning.many_l1_caches * placement.machine.l1_bytes // seen) if across else many


def _pack_channels(sums, chunk, pairs, packs, threads):
    """Channels of the filter that one packing task packs, at most a chunk; few enough to give each thread a task."""
    tuning = sums.tuning
    if packs or pairs or threads <= tuning.tuned_threads:
        return chunk
    taps = max([prod([axis.taps for axis in walk]) for walk in sums.walks])
    tasks = sums.groups * -(-sums.outputs // sums.strip) * -(-sums.channels // chunk)
    size = taps * chunk * min(sums.outputs, sums.strip) * sums.itemsize
    parts = min(-(-threads // tasks), size // tuning.least_packed_bytes)
    return -(-chunk // max(parts, 1))


def correlation(given, nontemporal):
    """The outline of fprop or dgrad within the given order of sums, in the first form without a refusal."""
    walks, placement, (chunk, pairs) = given.sums.walks, given.placement, given.order
    refusals, form = chosen(given)
    sums, parts, block, max_positions, across, packs, phases = sizes = form.sizes(given)
    compact = across and not placement.positions_adjacent  # with adjacent positions, long rows are copied faster
    itemsize = window_itemsize(sums, pairs)
    threads = placement.threads

    def boxes(size):
        return boxed(sums, chunk, chunk, size, itemsize, across, compact=compact, shared=phases > 1)[:2]

    images, windows = boxes(max_positions)
    many = 0 if packs else _many_positions(sums, placement, chunk * itemsize, phases, across, windows)
    if many > sums.tuning.box_positions and max_positions < sums.positions:
        images, windows = boxes(box_positions(sums, block, phases, many))
    block, images, windows = cut_correlation(sums, sizes, pairs, threads, (block, images, windows), boxes)
    groups = 1
    # With pairs, bundled groups need an even number of channels, so that no pair has channels of two groups.
    joins = chunk == sums.channels and block == sums.outputs and not (pairs and chunk % 2)
    if joins and not packs and (phases == 1 or not across):
        groups = bundled(sums, placement, images, windows, count_boxes(sums, images, windows))
    # Non-temporal stores need final sums. With several chunks, sums stay in the cache until the last chunk is added.
    # Tasks that join stride phases use these stores only if several groups fill whole lines (pyx/direct/phases.pxd). A
    # strip shorter than a line, as with vectors of 16 bytes, would store each line in parts.
    few = not across and sums.channels * sums.taps < sums.tuning.streamed_terms
    whole = chunk == sums.channels and sums.tile.tile_column_bytes >= LINE_BYTES
    nontemporal = nontemporal and (groups > 1 if phases > 1 else whole and not few)
    is_split = len(sums.walks) > len(walks)
    blocks = Blocks(
        threads, lanewise=False, positions_across=across, images=images, chunk=chunk, outputs=block, slices=1,
        nontemporal=nontemporal, prefetch=0, packs=packs, pairs=pairs, groups=groups, phases=phases,
        pack_channels=_pack_channels(sums, chunk, pairs, packs, threads),
    )  # fmt: skip
    reads = correlation_reads(sums, blocks)
    rows = split_rows(walks, parts, windows, reads) if is_split else whole_rows(parts, windows, reads)
    return Outline(sums.all_walks, rows, blocks, form.name, refusals)


def accumulation(sums, parts, placement, order, target_in_memory):
    """The outline of wgrad within the given order of its sums; ``parts``: the parts of its walks."""
    pairs, images, windows, slices, chunk, block, max_positions = order
    gathered = sums.tuning.gathered_bytes
    wider = balanced_size(sums.outputs, gathered // sums.itemsize, sums.strip)
    gathers = sums.taps == 1 and placement.positions_adjacent and sums.walks[0][2].source_step > 1
    if gathers and wider > block and max_positions * wider * sums.itemsize <= sums.tuning.larger_sums_bytes:
        # The slices are fixed, so chunk and block no longer affect the order of sums. They may depend on the layout.
        other = min(chunk, chunk_of(sums, gathered, sums.itemsize)), wider
        chunk, block = other if has_room(sums, slices, *other) else (chunk, block)
    threads = placement.threads
    chunk, block = cut_accumulation(sums, order, threads, chunk, block)
    groups = 1
    if chunk == sums.channels and block == sums.outputs:
        groups = bundled(sums, placement, images, windows, slices)
    blocks = Blocks(
        threads, lanewise=False, positions_across=False, images=images, chunk=chunk, outputs=block, slices=slices,
        nontemporal=False, prefetch=0, packs=False, pairs=pairs, groups=groups, target_in_memory=target_in_memory,
    )  # fmt: skip
    return Outline(sums.all_walks, whole_rows(parts, windows, accumulation_reads(sums)), blocks)


def outline(operation, problem, dtype, positions_adjacent, machine, mirrored=False, order=None):
    """The outline of the plan of ``operation`` (FPROP, DGRAD or WGRAD).

    ``positions_adjacent``: as in ``Placement``. ``mirrored``: wgrad with y as the source and x as the target.
    ``order``: the ``Order`` of fprop or dgrad, if it is not the problem's own.
    """
    backward = operation == DGRAD or mirrored
    sums = sum_problem_of(operation, problem, dtype, machine.tile, backward)
    placement = placement_of(problem, dtype, positions_adjacent, machine, backward)
    nontemporal, _, target_in_memory = memory_ways(problem, dtype, machine, backward)
    if operation != WGRAD:
        order = order or (adjacent_order_of if positions_adjacent else order_of)(sums)
        return correlation(FormInput(sums, placement, order), nontemporal)
    parts = [[walk] for walk in sums.walks]
    if not mirrored:
        sums, parts = split_walks(sums)
    whole, (sums, parts) = sums, split_taps(sums, parts)
    order = box_order_of(sums, len(sums.walks) // len(whole.walks))
    return accumulation(sums, parts, placement, order, target_in_memory)


@bounded(PLANS_BYTES)
def plan(*arguments):
    """The plan of the ``outline`` with the same arguments."""
    return outline(*arguments).plan()
