"""What is faster when, in direct's plans.

What takes a ``Case`` alone may decide the order of a sum. What takes a ``Setting`` beside it, or the way in which the
source lies in memory, does not.
"""

from ...problem import WGRAD
from ..cache import is_far
from ..case import LARGE_FILTER_BYTES
from ..machines import LINE_BYTES, SERIAL_MULTIPLICATIONS
from ..tile import tile_cycles
from .padding import without_ends, without_padding

#: Each task packs its own part of the filter where there are at most FEW_POSITIONS positions and that part has at least
#: LARGE_FILTER_BYTES a group, with taps that overlap: packed before, it would fall out of the cache. So it does up to
#: ONE_BOX positions, whatever the filter, which may then even be read in place (pyx/direct/correlate_tasks.pxd).
FEW_POSITIONS, ONE_BOX = 512, 24
#: With more taps, no task packs: each copies all of them.
FEW_TAPS = 64
#: So few tasks have to be about equal: their blocks of outputs filled to this part.
FEW_TASKS, LEAST_FILLED = 4, 0.75
#: Outputs for which a window pays, as it is read again for each strip of them (pyx/direct/walk.pxd).
MANY_OUTPUTS = 128
#: Cycles for each element of a source that is transposed for tiles across positions.
TRANSPOSING = 0.4
#: Channels of a source that make the sums so short that transposing their result would count.
FEW_CHANNELS = 4
#: Products of a sum of a stride phase, up to which transposing the sums of whole rows would count.
MOST_TERMS = 32
#: Products of a position up to which the work for each box counts.
FEW_PRODUCTS = 16384
#: Stride phases of a task, whose sums for a tile's outputs have to stay in the cache.
MOST_PHASES = 8


def suits_halves(case):
    """Whether there are full tiles of half a vector across channels, and a stride."""
    if case.multiplies_pairs or 2 * case.outputs != case.lanes or case.multiplications < SERIAL_MULTIPLICATIONS:
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
    row, tile, pointwise = case.walks[-1][2].positions, case.tile, case.taps == 1
    in_place = positions_adjacent and case.dtype.itemsize == case.itemsize and row % case.lanes == 0
    in_place = in_place and pointwise
    copies = not positions_adjacent and pointwise  # across positions; across channels, the source serves as it is
    if not copies or case.multiplications < SERIAL_MULTIPLICATIONS:
        tile = tile.unsplit()
    across_channels = tile_cycles(row, case.outputs, tile, case.itemsize)
    if case.multiplies_pairs:  # a step takes half of the time
        across_channels *= 0.5
    across_positions = tile_cycles(case.outputs, row, tile, case.itemsize)
    if copies:
        return across_positions + TRANSPOSING * row < across_channels
    return across_positions < (1.1 if in_place else 0.8) * across_channels


def keeps_rows(case, setting, joins):
    """Whether tiles across positions are faster, however many output channels there are.

    They are where few channels leave little to multiply, and rows of positions could be copied and stored as they lie:
    whole vectors of them, or, where tasks join stride phases, any; unless too much of a tile's vectors is left empty.
    A source of one channel does not tell how the target lies.
    """
    rows = [walk[2] for walk in case.walks]
    if not setting.positions_adjacent or case.channels <= 1:
        return False
    whole = all(row.target_step == 1 and row.positions % case.lanes == 0 for row in rows)
    if not joins and not (whole and case.channels <= FEW_CHANNELS):
        return False
    if joins and case.taps * case.channels > MOST_TERMS:
        return False
    row, tile = max(row.positions for row in rows), case.tile.unsplit()
    across_positions = tile_cycles(case.outputs, row, tile, case.itemsize)
    across_channels = tile_cycles(row, case.outputs, tile, case.itemsize)
    return across_positions <= 1.1 * across_channels


def joins_phases(case):
    """Whether a task can have all stride phases of its positions, which share a window: they make whole rows of x.

    Taps far apart, by dilation, would see little in common; positions that no tap reaches would have to be zeros.
    """
    full = case.channels and 1 < case.every.extents[2] == case.walks[0][2].target_step
    return full and all(axis.taps > 0 and abs(axis.source_tap) == 1 for walk in case.walks for axis in walk)


def stores_rows(case, setting):
    """Whether tiles across channels gain from tasks that have all stride phases: they store whole rows.

    Of channels last, small groups make whole lines of the cache, as several are taken together. Their boxes are
    smaller, and each reads the whole filter.
    """
    small = case.filter_bytes < case.groups * LARGE_FILTER_BYTES
    lines = case.groups > 1 and case.outputs * case.dtype.itemsize < LINE_BYTES
    return (setting.positions_adjacent or lines) and case.count <= MOST_PHASES and small


def packs_in_tasks(case):
    """Whether each task of fprop or dgrad packs what it needs of the filter.

    Its window is copied once more for each block of outputs, which pays where a window is small beside the taps that
    see it, because they overlap.
    """
    if case.taps > FEW_TAPS:  # the more, the more each task copies
        return False
    if case.positions <= ONE_BOX:
        return True
    if case.positions > FEW_POSITIONS or case.filter_bytes < case.groups * LARGE_FILTER_BYTES:
        return False
    blocks = -(-case.outputs // case.strip)
    many = case.groups * case.count * blocks >= FEW_TASKS
    even = many or case.outputs >= LEAST_FILLED * blocks * case.strip
    return even and any(axis.taps > axis.source_step for walk in case.walks for axis in walk)


def reads_rows(case, setting):
    """Whether a source of channels last is read in place, where no padding is seen: it is not read often."""
    in_place = not setting.positions_adjacent and case.dtype.itemsize == case.itemsize
    return in_place and case.taps > 1 and case.outputs < MANY_OUTPUTS


def packs_phases(case, setting):
    """Whether the taps of a filter are likely to be adjacent in memory, as the positions of the source are.

    The filters of stride phases are then better packed together, before all tasks (pyx/direct/packing.pxd).
    """
    return case.count > 1 and setting.positions_adjacent


def cut_walks(case):
    """The case with its walks cut, where padding would take much of the time; and for each walk its parts."""
    parts = without_padding(case.walks, case.counts, case.batch, case.operation == WGRAD)
    return case.parted(parts), parts


def cut_ends(case):
    """The same, with walks cut into the ends of rows, which see padding, and what lies between."""
    parts = without_ends(case.walks)
    return case.parted(parts), parts


def takes_larger_boxes(case):
    """Whether the boxes of wgrad may be larger, so that its sums are loaded and stored less often.

    Taps that share what they see make up for the room that it takes, and so do vectors of a whole line: a tile's sums
    are then as many lines, but multiplied in half of the time. Where a position has few products, the work for each box
    counts as well. Small groups are taken together in its place.
    """
    shared = case.taps > 1 and all(axis.source_step == 1 for walk in case.walks for axis in walk)
    few = case.channels * case.taps * case.outputs <= FEW_PRODUCTS
    fits = case.groups == 1 and case.itemsize == 4 and case.tile.vector_bytes >= LINE_BYTES
    return fits and (shared or few)
