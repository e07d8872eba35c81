"""Rules of direct's plans: which variant is faster for which problem.

A function that takes only a ``SumProblem`` may affect the order of a sum. A function that also takes a ``Placement``
must not. ``crosses_positions`` takes the layout as a parameter; ``order.py`` passes a constant instead.

A tile *across positions* has neighbouring positions of a row as its columns (the lanes of its vectors), and output
channels as its rows. A tile *across channels* has output channels as its columns, and positions as its rows.
"""

from ...problem import WGRAD
from ..machine import LINE_BYTES, PAIRED_TIME
from ..machine.caches import is_far
from ..machine.register_tile import tile_cycles
from .padding import without_padding


def suits_halves(sums):
    """Whether output channels fill exactly half a vector, in a strided problem that can use tiles of half a vector.

    Such tiles need vectors of 64 bytes, a filter that is packed for all tasks, and walks that are not split at padding.
    """
    if sums.multiplies_pairs or 2 * sums.outputs != sums.lanes or sums.multiplications < sums.tuning.serial_products:
        return False
    strided = sums.count > 1 or sums.walks[0][2].source_step > 1
    whole = not packs_in_tasks(sums) and len(split_walks(sums)[0].walks) == len(sums.walks)
    return strided and whole and sums.tile.vector_bytes >= LINE_BYTES


def takes_halves(sums, placement):
    """Whether tiles of half a vector across channels are faster for a channels-last source.

    Tiles across positions would need a copy for each tap or phase, with positions adjacent. On machines that do not
    split vectors, tiles of half a vector still pay for groups, in two cases: a convolution with short rows or with a
    source from memory, and stride phases with long rows.
    """
    phases, row = sums.count > 1, sums.typical_walk[2].positions
    gains = row > sums.lanes if phases else row <= sums.lanes or is_far(placement.source_bytes, placement.machine)
    return (sums.tile.splits_vectors or (gains and sums.groups > 1)) and suits_halves(sums)


def crosses_positions(sums, positions_adjacent):
    """Whether tiles across positions are faster than tiles across output channels.

    They are faster with few output channels. With one tap and adjacent positions, they read the source in place, which
    favours them. With one tap and channels last, tiles across channels read the source in place, so tiles across
    positions must also make up for transposing it. With several taps, the layout of the source decides nothing. But the
    positions of a strided row are not adjacent, and each tap gathers them again.
    """
    axis, tile, pointwise, tuning = sums.typical_walk[2], sums.tile, sums.taps == 1, sums.tuning
    row, gathers = axis.positions, axis.taps > 1 and axis.source_step > 1
    in_place = positions_adjacent and sums.dtype.itemsize == sums.itemsize and row % sums.lanes == 0
    in_place = in_place and pointwise
    copies = not positions_adjacent and pointwise  # tiles across positions copy, tiles across channels do not
    if not copies or sums.multiplications < tuning.serial_products:  # fitted without split vectors
        tile = tile.unsplit()
    across_channels = tile_cycles(row, sums.outputs, tile, sums.itemsize)
    across_channels *= PAIRED_TIME[sums.multiplies_pairs]
    across_positions = tile_cycles(sums.outputs, row, tile, sums.itemsize)
    if gathers:
        return across_positions + tuning.gathering_cycles * axis.source_step * row < across_channels
    if copies:
        return across_positions + tuning.transposing_cycles * row < across_channels
    return across_positions < (tuning.across_cycles_in_place if in_place else tuning.across_cycles) * across_channels


def keeps_rows(sums, placement, joins):
    """Whether tiles across positions are faster because rows are copied and stored without a transposition.

    This holds for any number of output channels, if few source channels leave little to multiply. Rows must be whole
    vectors, or tasks must join stride phases; and tiles must not leave too many lanes empty. Not for a source
    with one channel: with filters of 256 to 1024 taps, these tiles took 1.5 to 3.5 times as long.
    """
    rows, tuning = [walk[2] for walk in sums.walks], sums.tuning
    if not placement.positions_adjacent or sums.channels <= 1:
        return False
    whole = all(row.target_step == 1 and row.positions % sums.lanes == 0 for row in rows)
    if not joins and not (whole and sums.channels <= tuning.kept_rows_channels):
        return False
    if joins and sums.taps * sums.channels > tuning.joined_terms:
        return False
    row, tile = max(row.positions for row in rows), sums.tile.unsplit()
    across_positions = tile_cycles(sums.outputs, row, tile, sums.itemsize)
    across_channels = tile_cycles(row, sums.outputs, tile, sums.itemsize)
    return across_positions <= tuning.kept_rows_cycles * across_channels


def joins_phases(sums):
    """Whether a task can compute all stride phases of its positions from one window, so that it makes whole rows of x.

    With dilation, the phases would read little in common. Positions that no tap reaches would need zeros. Both are
    excluded.
    """
    # Along a row there are as many walks as the stride, so each phase has taps.
    full = 1 < sums.all_walks.extents[2] == sums.walks[0][2].target_step
    return full and all(axis.taps > 0 and abs(axis.source_tap) == 1 for walk in sums.walks for axis in walk)


def stores_rows(sums, placement):
    """Whether tiles across channels gain from tasks that compute all stride phases and store whole rows.

    With channels last, several small groups together store whole cache lines. The boxes of such tasks are smaller, and
    each box reads the whole filter, so the filter must be small.
    """
    small = sums.filter_bytes < sums.groups * sums.tuning.large_filter_bytes
    lines = sums.groups > 1 and sums.outputs * sums.dtype.itemsize < LINE_BYTES
    return (placement.positions_adjacent or lines) and sums.count <= sums.tuning.stored_phases and small


def packs_in_tasks(sums):
    """Whether each task of fprop or dgrad packs its own part of the filter.

    Each block of outputs then copies the window again. This pays if taps share elements: the window is then much
    smaller than the im2col matrix of its box. With one tap, it pays if there are few positions and many outputs, with
    long sums: each part of the filter is then packed by one task, and read from its cache.
    """
    tuning = sums.tuning
    if sums.taps > tuning.most_packed_taps:  # each task copies more with more taps
        return False
    if sums.positions <= tuning.few_positions:
        return True
    if sums.positions > tuning.larger_positions or sums.filter_bytes < sums.groups * tuning.large_filter_bytes:
        return False
    blocks = -(-sums.outputs // sums.strip)
    many = sums.groups * sums.count * blocks >= tuning.few_tasks
    is_balanced = many or sums.outputs >= tuning.filled_blocks * blocks * sums.strip
    if sums.taps == 1:
        return many and 2 * sums.positions <= tuning.box_positions and sums.channels >= tuning.packed_terms
    return is_balanced and any(axis.taps > axis.source_step for walk in sums.walks for axis in walk)


def packs_phases(sums, placement):
    """Whether packing the filters of all stride phases together, before all tasks, is faster (pyx/direct/packing.pxd).

    It is faster if taps are adjacent in memory. They are assumed to be if the positions of the source are.
    """
    return sums.count > 1 and placement.positions_adjacent


def split_walks(sums):
    """(sums, parts of each walk): walks are split at the edges of padding if its products would take much time."""
    parts = without_padding(sums.walks, sums.counts, sums.batch, sums.operation == WGRAD, sums.tuning)
    return sums.parted(parts), parts


def takes_larger_boxes(sums):
    """Whether the boxes of wgrad may be larger, so that its sums are loaded and stored less often.

    Larger boxes need larger windows. They pay if taps share the elements of a window, or if a position has so few
    products that the work per box matters. They pay only with vectors of a whole cache line: these halve the time of
    the products, but not the time to load and store sums, which moves the same cache lines. Groups gain from bundles
    instead.
    """
    shared = sums.taps > 1 and all(axis.source_step == 1 for walk in sums.walks for axis in walk)
    few = sums.channels * sums.taps * sums.outputs <= sums.tuning.few_products
    fits = sums.groups == 1 and sums.itemsize == 4 and sums.tile.vector_bytes >= LINE_BYTES
    return fits and (shared or few)
