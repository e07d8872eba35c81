"""What is faster when, in direct's plans.

A function of a ``SumProblem`` alone may decide the order of a sum. One that takes a ``Placement``, or the way in which
the source lies in memory, does not.
"""

from ...problem import WGRAD
from ..machine import LINE_BYTES
from ..machine.caches import is_far
from ..machine.register_tile import tile_cycles
from .padding import without_ends, without_padding


def suits_halves(sums):
    """Whether there are full tiles of half a vector across channels, and a stride."""
    if sums.multiplies_pairs or 2 * sums.outputs != sums.lanes or sums.multiplications < sums.tuning.serial_products:
        return False
    strided = sums.count > 1 or sums.walks[0][2].source_step > 1
    whole = not packs_in_tasks(sums) and len(cut_walks(sums)[0].walks) == len(sums.walks)
    return strided and whole and sums.tile.vector_bytes >= LINE_BYTES


def takes_halves(sums, placement):
    """Whether such tiles are taken, channels last.

    What neighbours see would be copied for each tap, or each phase, to have positions adjacent. Where vectors are not
    split, that still pays for groups: of a convolution with short rows, or from memory, and of the phases of long rows.
    """
    phases, row = sums.count > 1, sums.walks[-1][2].positions
    gains = row > sums.lanes if phases else row <= sums.lanes or is_far(placement.source_bytes, placement.machine)
    return (sums.tile.splits_vectors or (gains and sums.groups > 1)) and suits_halves(sums)


def crosses_positions(sums, positions_adjacent):
    """Whether tiles across positions are faster than tiles across output channels.

    They are where there are few output channels, and where positions are adjacent and one tap can read them in place.
    Of channels last, tiles across channels can read the source of one tap in place, so transposing it has to pay, too.
    Where there are several taps, how the source lies decides nothing.
    """
    row, tile, pointwise, tuning = sums.walks[-1][2].positions, sums.tile, sums.taps == 1, sums.tuning
    in_place = positions_adjacent and sums.dtype.itemsize == sums.itemsize and row % sums.lanes == 0
    in_place = in_place and pointwise
    copies = not positions_adjacent and pointwise  # across positions; across channels, the source serves as it is
    if not copies or sums.multiplications < tuning.serial_products:
        tile = tile.unsplit()
    across_channels = tile_cycles(row, sums.outputs, tile, sums.itemsize)
    if sums.multiplies_pairs:  # a step takes half of the time
        across_channels *= 0.5
    across_positions = tile_cycles(sums.outputs, row, tile, sums.itemsize)
    if copies:
        return across_positions + tuning.transposing_cycles * row < across_channels
    return across_positions < (tuning.across_cycles_in_place if in_place else tuning.across_cycles) * across_channels


def keeps_rows(sums, placement, joins):
    """Whether tiles across positions are faster, however many output channels there are.

    They are where few channels leave little to multiply, and rows of positions could be copied and stored as they lie:
    whole vectors of them, or, where tasks join stride phases, any; unless too much of a tile's vectors is left empty.
    A source of one channel does not tell how the target lies.
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
    """Whether a task can have all stride phases of its positions, which share a window: they make whole rows of x.

    Taps far apart, by dilation, would see little in common; positions that no tap reaches would have to be zeros.
    """
    full = 1 < sums.every.extents[2] == sums.walks[0][2].target_step
    return full and all(axis.taps > 0 and abs(axis.source_tap) == 1 for walk in sums.walks for axis in walk)


def stores_rows(sums, placement):
    """Whether tiles across channels gain from tasks that have all stride phases: they store whole rows.

    Of channels last, small groups make whole lines of the cache, as several are taken together. Their boxes are
    smaller, and each reads the whole filter.
    """
    small = sums.filter_bytes < sums.groups * sums.tuning.large_filter_bytes
    lines = sums.groups > 1 and sums.outputs * sums.dtype.itemsize < LINE_BYTES
    return (placement.positions_adjacent or lines) and sums.count <= sums.tuning.stored_phases and small


def packs_in_tasks(sums):
    """Whether each task of fprop or dgrad packs what it needs of the filter.

    Its window is copied once more for each block of outputs, which pays where a window is small beside the taps that
    see it, because they overlap.
    """
    tuning = sums.tuning
    if sums.taps > tuning.most_packed_taps:  # the more, the more each task copies
        return False
    if sums.positions <= tuning.one_box_positions:
        return True
    if sums.positions > tuning.packed_positions or sums.filter_bytes < sums.groups * tuning.large_filter_bytes:
        return False
    blocks = -(-sums.outputs // sums.strip)
    many = sums.groups * sums.count * blocks >= tuning.few_tasks
    even = many or sums.outputs >= tuning.filled_blocks * blocks * sums.strip
    return even and any(axis.taps > axis.source_step for walk in sums.walks for axis in walk)


def reads_rows(sums, placement):
    """Whether a source of channels last is read in place, where no padding is seen: it is not read often."""
    in_place = not placement.positions_adjacent and sums.dtype.itemsize == sums.itemsize
    return in_place and sums.taps > 1 and sums.outputs < sums.tuning.window_outputs


def packs_phases(sums, placement):
    """Whether the taps of a filter are likely to be adjacent in memory, as the positions of the source are.

    The filters of stride phases are then better packed together, before all tasks (pyx/direct/packing.pxd).
    """
    return sums.count > 1 and placement.positions_adjacent


def cut_walks(sums):
    """The sums with their walks cut, where padding would take much of the time; and for each walk its parts."""
    parts = without_padding(sums.walks, sums.counts, sums.batch, sums.operation == WGRAD, sums.tuning)
    return sums.parted(parts), parts


def cut_ends(sums):
    """The same, with walks cut into the ends of rows, which see padding, and what lies between."""
    parts = without_ends(sums.walks, sums.tuning)
    return sums.parted(parts), parts


def takes_larger_boxes(sums):
    """Whether the boxes of wgrad may be larger, so that its sums are loaded and stored less often.

    Taps that share what they see make up for the room that it takes, and so do vectors of a whole line: a tile's sums
    are then as many lines, but multiplied in half of the time. Where a position has few products, the work for each box
    counts as well. Small groups are taken together in its place.
    """
    shared = sums.taps > 1 and all(axis.source_step == 1 for walk in sums.walks for axis in walk)
    few = sums.channels * sums.taps * sums.outputs <= sums.tuning.few_products
    fits = sums.groups == 1 and sums.itemsize == 4 and sums.tile.vector_bytes >= LINE_BYTES
    return fits and (shared or few)
