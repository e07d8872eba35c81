"""How an operation is carried out: (operation, problem, dtype, layout, machine) -> Plan.

Pure: nothing is computed and no array is looked at, so the choices can be tested by themselves. The order of sums is
decided first (``order.py``), and by nothing that this second stage knows beside it: layout, caches and threads.
"""

from math import prod

from ...memo.bounded import bounded
from ...problem import DGRAD, WGRAD, even
from ..machine import LINE_BYTES
from ..machine.caches import memory_ways
from ..plan.steps import Blocks, Outline, cut_rows, whole_rows
from ..plan.sum_problem import placement_of, sum_problem_of
from .boxes import boxed, bundled, count_boxes, has_much_rim
from .choices import cut_walks
from .cuts import cut_accumulation, cut_correlation, has_room
from .forms import Given, chosen
from .long_filters import cut_taps
from .order import (
    adjacent_order_of,
    box_order_of,
    box_positions,
    channel_bytes,
    chunk_of,
    order_of,
)
from .reads import accumulation_reads, correlation_reads

#: Not for speed: memory of the plans that are kept, beside those of calls that are remembered.
PLANS_BYTES = 16 << 20


def _many_positions(sums, placement, chunk_bytes, phases, across, windows):
    """Positions of a box where each has few products; ``chunk_bytes``: what a chunk has of a position of the source.

    So it has where its window, of ``windows``, is mostly rim. Across positions, a window is read for few outputs: it
    should stay in the first cache. Of small groups, channels last, a task has several.
    """
    if sums.groups > 1 and not placement.positions_adjacent:
        return 0
    products, tuning = sums.channels * sums.taps * sums.outputs * phases, sums.tuning
    many = tuning.many_positions
    if not any(has_much_rim(window, tuning) for window in windows):
        many = min(many, tuning.box_positions * tuning.few_products // max(products, 1))
    seen = chunk_bytes * prod(axis.source_step for axis in sums.walks[-1])
    return min(many, tuning.many_l1_caches * placement.machine.l1_bytes // seen) if across else many


def _pack_channels(sums, chunk, pairs, packs, threads):
    """Channels of a chunk of the filter that a task packs: few enough that there are tasks for the threads."""
    tuning = sums.tuning
    if packs or pairs or threads <= tuning.tuned_threads:
        return chunk
    taps = max([prod([axis.taps for axis in walk]) for walk in sums.walks])
    tasks = sums.groups * -(-sums.outputs // sums.strip) * -(-sums.channels // chunk)
    size = taps * chunk * min(sums.outputs, sums.strip) * sums.itemsize
    parts = min(-(-threads // tasks), size // tuning.least_packed_bytes)
    return -(-chunk // max(parts, 1))


def correlation(given, nontemporal):
    """The outline of fprop or dgrad, within the order of sums that is given, in the first form without a refusal."""
    walks, placement, (chunk, pairs) = given.sums.walks, given.placement, given.order
    refusals, form = chosen(given)
    sums, parts, block, most, across, packs, phases = sizes = form.sizes(given)
    compact = across and not placement.positions_adjacent  # else long rows are copied faster
    itemsize = channel_bytes(sums, pairs)
    threads = placement.threads(sums)

    def boxes(most):
        return boxed(sums, chunk, chunk, most, itemsize, across, compact=compact, shared=phases > 1)[:2]

    images, windows = boxes(most)
    many = 0 if packs else _many_positions(sums, placement, chunk * itemsize, phases, across, windows)
    if many > sums.tuning.box_positions and most < sums.positions:
        images, windows = boxes(box_positions(sums, block, phases, many))
    block, images, windows = cut_correlation(sums, sizes, pairs, threads, (block, images, windows), boxes)
    groups = 1
    joins = chunk == sums.channels and block == sums.outputs and not (pairs and chunk % 2)  # whole words of a window
    if joins and not packs and (phases == 1 or not across):
        groups = bundled(sums, placement, images, windows, count_boxes(sums, images, windows))
    # Sums that others are added to stay in the cache; those of phases are stored from there, if they make whole lines.
    # A strip of part of a line, as of vectors of 16 bytes, would store each line in parts.
    few = not across and sums.channels * sums.taps < sums.tuning.streamed_terms
    whole = chunk == sums.channels and sums.tile.tile_column_bytes >= LINE_BYTES
    nontemporal = nontemporal and (groups > 1 if phases > 1 else whole and not few)
    cut = len(sums.walks) > len(walks)
    blocks = Blocks(threads, False, across, images, chunk, block, 1, nontemporal, False, packs, pairs, groups, phases)
    blocks = blocks._replace(pack_channels=_pack_channels(sums, chunk, pairs, packs, threads))
    reads = correlation_reads(sums, blocks)
    rows = cut_rows(walks, parts, windows, reads) if cut else whole_rows(parts, windows, reads)
    return Outline(sums.every, rows, blocks, form.name, refusals)


def accumulation(sums, parts, placement, order, target_in_memory):
    """The outline of wgrad, of which ``parts`` are the walks, within the order of its sums."""
    pairs, images, windows, slices, chunk, block, most = order
    gathered = sums.tuning.gathered_bytes
    wider = even(sums.outputs, gathered // sums.itemsize, sums.strip)
    gathers = sums.taps == 1 and placement.positions_adjacent and sums.walks[0][2].source_step > 1
    if gathers and wider > block and most * wider * sums.itemsize <= sums.tuning.larger_sums_bytes:
        # No sum's order depends on these two, so layouts may differ.
        other = min(chunk, chunk_of(sums, gathered, sums.itemsize)), wider
        chunk, block = other if has_room(sums, slices, *other) else (chunk, block)
    threads = placement.threads(sums)
    chunk, block = cut_accumulation(sums, order, threads, chunk, block)
    groups = 1
    if chunk == sums.channels and block == sums.outputs:
        groups = bundled(sums, placement, images, windows, slices)
    blocks = Blocks(threads, False, False, images, chunk, block, slices, False, 0, False, pairs, groups)
    blocks = blocks._replace(target_in_memory=target_in_memory)
    return Outline(sums.every, whole_rows(parts, windows, accumulation_reads(sums)), blocks)


def outline(operation, problem, dtype, positions_adjacent, machine, mirrored=False, order=None):
    """The outline of the plan of ``operation`` (FPROP, DGRAD or WGRAD).

    ``mirrored``: wgrad with y as the source and x as the target, as ``is_better_mirrored`` says.
    ``positions_adjacent``: neighbours in the source's memory are positions. ``order``: of the sums of fprop or dgrad,
    where they are not to have the problem's own.
    """
    backward = operation == DGRAD or mirrored
    sums = sum_problem_of(operation, problem, dtype, machine.tile, backward)
    placement = placement_of(problem, dtype, positions_adjacent, machine, backward)
    nontemporal, _, target_in_memory = memory_ways(problem, dtype, machine, backward)
    if operation != WGRAD:
        order = order or (adjacent_order_of if positions_adjacent else order_of)(sums)
        return correlation(Given(sums, placement, order), nontemporal)
    parts = [[walk] for walk in sums.walks]
    if not mirrored:
        sums, parts = cut_walks(sums)
    whole, (sums, parts) = sums, cut_taps(sums, parts)
    order = box_order_of(sums, len(sums.walks) // len(whole.walks))
    return accumulation(sums, parts, placement, order, target_in_memory)


@bounded(PLANS_BYTES)
def plan(*arguments):
    """The plan of an ``outline``, which takes the same arguments."""
    return outline(*arguments).plan()
