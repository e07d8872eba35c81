"""What is faster when, in direct's plans.

What takes a ``Case`` alone may decide the order of a sum. What takes a ``Setting`` beside it, or the way in which the
source lies in memory, does not.
"""

from ...problem import WGRAD
from ..cache import is_far
from ..machines import LINE_BYTES
from ..tile import tile_cycles
from .padding import without_ends, without_padding


def suits_halves(case):
    """Whether there are full tiles of half a vector across channels, and a stride."""
    if case.multiplies_pairs or 2 * case.outputs != case.lanes or case.multiplications < case.tuning.serial_products:
        return False
    strided = case.count > 1 or case.walks[0][2].source_step > 1
    whole = not packs_in_tasks(case) and len(cut_walks(case)[0].walks) == len(case.walks)
    return strided and whole and case.tile.vector_bytes >= LINE_BYTES


def takes_halves(case, setting):
    """Whether such tiles are taken, channels last.

    What neighbours see would be copied for each tap, or each phase, to have positions adjacent. Where vectors are not
    split, that still pays for groups: of a convolution with short rows, or from memory, and of the phases of long rows.
    """
    phases, row = case.count > 1, case.walks[-1][2].positions
    gains = row > case.lanes if phases else row <= case.lanes or is_far(setting.source_bytes, setting.machine)
    return (case.tile.splits_vectors or (gains and case.groups > 1)) and suits_halves(case)


def crosses_positions(case, positions_adjacent):
    """Whether tiles across positions are faster than tiles across output channels.

    They are where there are few output channels, and where positions are adjacent and one tap can read them in place.
    Of channels last, tiles across channels can read the source of one tap in place, so transposing it has to pay, too.
    Where there are several taps, how the source lies decides nothing.
    """
    row, tile, pointwise, tuning = case.walks[-1][2].positions, case.tile, case.taps == 1, case.tuning
    in_place = positions_adjacent and case.dtype.itemsize == case.itemsize and row % case.lanes == 0
    in_place = in_place and pointwise
    copies = not positions_adjacent and pointwise  # across positions; across channels, the source serves as it is
    if not copies or case.multiplications < tuning.serial_products:
        tile = tile.unsplit()
    across_channels = tile_cycles(row, case.outputs, tile, case.itemsize)
    if case.multiplies_pairs:  # a step takes half of the time
        across_channels *= 0.5
    across_positions = tile_cycles(case.outputs, row, tile, case.itemsize)
    if copies:
        return across_positions + tuning.transposing_cycles * row < across_channels
    return across_positions < (tuning.across_cycles_in_place if in_place else tuning.across_cycles) * across_channels


def keeps_rows(case, setting, joins):
    """Whether tiles across positions are faster, however many output channels there are.

    They are where few channels leave little to multiply, and rows of positions could be copied and stored as they lie:
    whole vectors of them, or, where tasks join stride phases, any; unless too much of a tile's vectors is left empty.
    A source of one channel does not tell how the target lies.
    """
    rows, tuning = [walk[2] for walk in case.walks], case.tuning
    if not setting.positions_adjacent or case.channels <= 1:
        return False
    whole = all(row.target_step == 1 and row.positions % case.lanes == 0 for row in rows)
    if not joins and not (whole and case.channels <= tuning.kept_rows_channels):
        return False
    if joins and case.taps * case.channels > tuning.joined_terms:
        return False
    row, tile = max(row.positions for row in rows), case.tile.unsplit()
    across_positions = tile_cycles(case.outputs, row, tile, case.itemsize)
    across_channels = tile_cycles(row, case.outputs, tile, case.itemsize)
    return across_positions <= tuning.kept_rows_cycles * across_channels


def joins_phases(case):
    """Whether a task can have all stride phases of its positions, which share a window: they make whole rows of x.

    Taps far apart, by dilation, would see little in common; positions that no tap reaches would have to be zeros.
    """
    full = 1 < case.every.extents[2] == case.walks[0][2].target_step
    return full and all(axis.taps > 0 and abs(axis.source_tap) == 1 for walk in case.walks for axis in walk)


def stores_rows(case, setting):
    """Whether tiles across channels gain from tasks that have all stride phases: they store whole rows.

    Of channels last, small groups make whole lines of the cache, as several are taken together. Their boxes are
    smaller, and each reads the whole filter.
    """
    small = case.filter_bytes < case.groups * case.tuning.large_filter_bytes
    lines = case.groups > 1 and case.outputs * case.dtype.itemsize < LINE_BYTES
    return (setting.positions_adjacent or lines) and case.count <= case.tuning.stored_phases and small


def packs_in_tasks(case):
    """Whether each task of fprop or dgrad packs what it needs of the filter.

    Its window is copied once more for each block of outputs, which pays where a window is small beside the taps that
    see it, because they overlap.
    """
    tuning = case.tuning
    if case.taps > tuning.most_packed_taps:  # the more, the more each task copies
        return False
    if case.positions <= tuning.few_positions:
        return True
    if case.positions > tuning.larger_positions or case.filter_bytes < case.groups * tuning.large_filter_bytes:
        return False
    blocks = -(-case.outputs // case.strip)
    many = case.groups * case.count * blocks >= tuning.few_tasks
    even = many or case.outputs >= tuning.filled_blocks * blocks * case.strip
    return even and any(axis.taps > axis.source_step for walk in case.walks for axis in walk)


def reads_rows(case, setting):
    """Whether a source of channels last is read in place, where no padding is seen: it is not read often."""
    in_place = not setting.positions_adjacent and case.dtype.itemsize == case.itemsize
    return in_place and case.taps > 1 and case.outputs < case.tuning.window_outputs


def packs_phases(case, setting):
    """Whether the taps of a filter are likely to be adjacent in memory, as the positions of the source are.

    The filters of stride phases are then better packed together, before all tasks (pyx/direct/packing.pxd).
    """
    return case.count > 1 and setting.positions_adjacent


def cut_walks(case):
    """The case with its walks cut, where padding would take much of the time; and for each walk its parts."""
    parts = without_padding(case.walks, case.counts, case.batch, case.operation == WGRAD, case.tuning)
    return case.parted(parts), parts


def cut_ends(case):
    """The same, with walks cut into the ends of rows, which see padding, and what lies between."""
    parts = without_ends(case.walks, case.tuning)
    return case.parted(parts), parts


def takes_larger_boxes(case):
    """Whether the boxes of wgrad may be larger, so that its sums are loaded and stored less often.

    Taps that share what they see make up for the room that it takes, and so do vectors of a whole line: a tile's sums
    are then as many lines, but multiplied in half of the time. Where a position has few products, the work for each box
    counts as well. Small groups are taken together in its place.
    """
    shared = case.taps > 1 and all(axis.source_step == 1 for walk in case.walks for axis in walk)
    few = case.channels * case.taps * case.outputs <= case.tuning.few_products
    fits = case.groups == 1 and case.itemsize == 4 and case.tile.vector_bytes >= LINE_BYTES
    return fits and (shared or few)
