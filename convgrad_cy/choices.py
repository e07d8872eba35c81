"""The choices of a plan: what they depend on, and what is faster when. None of them depends on the threads."""

from itertools import chain, repeat
from math import prod
from typing import NamedTuple

from .memory import is_far, operand_bytes
from .segments import without_ends, without_padding
from .walks import Walks, walks_of

FPROP, DGRAD, WGRAD = "fprop", "dgrad", "wgrad"
LINE_BYTES = 64  # of the cache

#: A filter of so many bytes for so few positions is packed where it is used: it would fall out of the cache before.
#: Any filter is where the positions are one box; for so few, it may even be read in place (pyx/correlation.pxd).
LARGE_FILTER_BYTES, FEW_POSITIONS, FEW_TAPS, ONE_BOX = 1 << 20, 512, 64, 24
#: So few tasks have to be about equal: their blocks of outputs filled to this part.
FEW_TASKS, LEAST_FILLED = 4, 0.75
#: Outputs for which a window pays, as it is read again for each strip of them (pyx/convolution.pxd).
MANY_OUTPUTS = 128
#: Cycles for each element of a source that is transposed for tiles across positions.
TRANSPOSING = 0.4
#: Rows of a tile of half a vector, and cycles for its step of depth: it waits for loads, or with few rows for its sums.
HALF_ROWS, HALF_TILE, LEAST_HALF_TILE = 8, 2.25, 2
#: Channels of a source that make the sums so short that transposing their result would count.
FEW_CHANNELS = 4
#: Products of a sum of a stride phase, up to which transposing the sums of whole rows would count.
MOST_TERMS = 32
#: Products of a position up to which the work for each box counts.
FEW_PRODUCTS = 16384
#: Stride phases of a task, whose sums for a tile's outputs have to stay in the cache.
MOST_PHASES = 8
#: Below this many products, starting a second thread costs more than it saves, unless a large filter has to be read;
#: where each element that is read or written takes part in few of them, as in a depthwise problem, an eighth of that.
SERIAL_MULTIPLICATIONS = 4_000_000


class Machine(NamedTuple):
    """What a plan needs to know of the machine: the register tile, the last cache, the number of threads."""

    tile_rows: int
    tile_column_bytes: int
    vector_bytes: int
    multiplies_pairs: bool  # of bfloat16
    cache_bytes: int  # of the last cache
    threads: int
    splits_vectors: bool = False  # vectors of 64 bytes, into halves, of which it multiplies twice as many

    @property
    def halves(self):
        """Whether it gains from tiles of half a vector, which there are of 64 bytes alone."""
        return self.splits_vectors and self.vector_bytes >= LINE_BYTES

    def unsplit(self):
        """As if it did not, for models that were fitted so."""
        return self._replace(splits_vectors=False)


class Case(NamedTuple):
    """What a plan depends on. In dgrad, and where mirrored, y is the source and x the target."""

    operation: str
    batch: int
    groups: int
    channels: int  # of the source, in a group
    outputs: int  # of the target
    every: Walks
    walks: list  # one of each kind, or its parts; the last walk's come last
    counts: list  # how many there are of each
    multiplications: int
    source_bytes: int
    filter_bytes: int
    positions_adjacent: bool  # in the source's memory
    dtype: object
    machine: Machine

    @property
    def itemsize(self):
        return self.dtype.compute_itemsize

    @property
    def lanes(self):
        return self.machine.vector_bytes // self.itemsize

    @property
    def strip(self):
        return self.machine.tile_column_bytes // self.itemsize

    @property
    def count(self):
        """Of all walks."""
        return sum(self.counts)

    @property
    def taps(self):
        return max(prod(axis.taps for axis in walk) for walk in self.walks)

    @property
    def positions(self):
        return self.batch * max(prod(axis.positions for axis in walk) for walk in self.walks)

    @property
    def threads(self):
        serial = self.multiplications < SERIAL_MULTIPLICATIONS and self.filter_bytes < LARGE_FILTER_BYTES
        return 1 if serial else self.machine.threads

    def alone(self):
        """The same of one image."""
        each = self._replace(batch=1, multiplications=self.multiplications // self.batch)
        return each._replace(source_bytes=self.source_bytes // self.batch)

    @property
    def multiplies_pairs(self):
        return self.dtype.name == "bfloat16" and self.machine.multiplies_pairs


def case_of(operation, problem, dtype, positions_adjacent, machine, backward):
    channels, outputs = problem.x_channels, problem.y_channels
    filter_bytes = problem.groups * channels * outputs * prod(problem.kernel) * dtype.compute_itemsize
    if backward:
        channels, outputs = outputs, channels
    every = walks_of(problem, backward)
    counts = (problem.batch, problem.groups, channels, outputs)
    sizes = (problem.multiplications, operand_bytes(problem, dtype)[1 if backward else 0], filter_bytes)
    return Case(operation, *counts, every, every.kinds, every.counts, *sizes, positions_adjacent, dtype, machine)


def fits_half(columns, machine, itemsize):
    """Whether tiles of half a vector hold so many columns, and the machine gains from them."""
    return machine.halves and 2 * columns * itemsize <= machine.vector_bytes


def tile_cycles(rows, columns, machine, itemsize):
    """A model of the cycles for one step of depth of a block: two multiplications or two loads of a vector each."""
    lanes, strip = machine.vector_bytes // itemsize, machine.tile_column_bytes // itemsize
    if columns and fits_half(columns, machine, itemsize):
        return HALF_TILE * (rows // HALF_ROWS) + (LEAST_HALF_TILE if rows % HALF_ROWS else 0)
    split = 2 if machine.halves else 1  # two cycles are one of the model
    cycles = 0
    for width, strips in ((strip, columns // strip), (columns % strip, 1)):
        vectors = -(-width // lanes)
        for height, tiles in ((machine.tile_rows, rows // machine.tile_rows), (rows % machine.tile_rows, 1)):
            if vectors and height:
                cycles += strips * tiles * max(vectors * height, vectors + (height + 2) / split, 8 / split) / 2
    return cycles


def suits_halves(case):
    """Whether there are full tiles of half a vector across channels, and a stride."""
    if case.multiplies_pairs or 2 * case.outputs != case.lanes or case.multiplications < SERIAL_MULTIPLICATIONS:
        return False
    strided = case.count > 1 or case.walks[0][2].source_step > 1
    whole = not packs_in_tasks(case) and len(cut_walks(case)[0].walks) == len(case.walks)
    return strided and whole and case.machine.vector_bytes >= LINE_BYTES


def takes_halves(case):
    """Whether such tiles are taken, channels last.

    What neighbours see would be copied for each tap, or each phase, to have positions adjacent. Where vectors are not
    split, that still pays for groups: of a convolution with short rows, or from memory, and of the phases of long rows.
    """
    phases, row = case.count > 1, case.walks[-1][2].positions
    gains = row > case.lanes if phases else row <= case.lanes or is_far(case.source_bytes, case.machine)
    return (case.machine.splits_vectors or (gains and case.groups > 1)) and suits_halves(case)


def crosses_positions(case):
    """Whether tiles across positions are faster than tiles across output channels.

    They are where there are few output channels, and where positions are adjacent and one tap can read them in place.
    Of channels last, tiles across channels can read the source of one tap in place, so transposing it has to pay, too.
    """
    if not case.positions_adjacent and takes_halves(case):
        return False
    row, machine, pointwise = case.walks[-1][2].positions, case.machine, case.taps == 1
    in_place = case.positions_adjacent and case.dtype.itemsize == case.itemsize and row % case.lanes == 0
    in_place = in_place and pointwise
    copies = not case.positions_adjacent and pointwise  # across positions; across channels, the source serves as it is
    if not copies or case.multiplications < SERIAL_MULTIPLICATIONS:
        machine = machine.unsplit()
    across_channels = tile_cycles(row, case.outputs, machine, case.itemsize)
    if case.multiplies_pairs:  # a step takes half of the time
        across_channels *= 0.5
    across_positions = tile_cycles(case.outputs, row, machine, case.itemsize)
    if copies:
        return across_positions + TRANSPOSING * row < across_channels
    return across_positions < (1.1 if in_place else 0.8) * across_channels


def keeps_rows(case, joins):
    """Whether tiles across positions are faster, however many output channels there are.

    They are where few channels leave little to multiply, and rows of positions could be copied and stored as they lie:
    whole vectors of them, or, where tasks join stride phases, any; unless too much of a tile's vectors is left empty.
    A source of one channel does not tell how the target lies.
    """
    rows = [walk[2] for walk in case.walks]
    if not case.positions_adjacent or case.channels <= 1:
        return False
    whole = all(row.target_step == 1 and row.positions % case.lanes == 0 for row in rows)
    if not joins and not (whole and case.channels <= FEW_CHANNELS):
        return False
    if joins and case.taps * case.channels > MOST_TERMS:
        return False
    row, machine = max(row.positions for row in rows), case.machine.unsplit()
    across_positions = tile_cycles(case.outputs, row, machine, case.itemsize)
    across_channels = tile_cycles(row, case.outputs, machine, case.itemsize)
    return across_positions <= 1.1 * across_channels


def joins_phases(case):
    """Whether a task can have all stride phases of its positions, which share a window: they make whole rows of x.

    Taps far apart, by dilation, would see little in common; positions that no tap reaches would have to be zeros.
    """
    full = case.channels and 1 < case.every.extents[2] == case.walks[0][2].target_step
    return full and all(axis.taps > 0 and abs(axis.source_tap) == 1 for walk in case.walks for axis in walk)


def stores_rows(case):
    """Whether tiles across channels gain from tasks that have all stride phases: they store whole rows.

    Of channels last, small groups make whole lines of the cache, as several are taken together. Their boxes are
    smaller, and each reads the whole filter.
    """
    small = case.filter_bytes < case.groups * LARGE_FILTER_BYTES
    lines = case.groups > 1 and case.outputs * case.dtype.itemsize < LINE_BYTES
    return (case.positions_adjacent or lines) and case.count <= MOST_PHASES and small


def packs_in_tasks(case):
    """Whether each task of fprop or dgrad packs what it needs of the filter.

    Its window is copied once more for each block of outputs, which pays where a window is small beside the taps that
    see it, because they overlap.
    """
    large = case.filter_bytes >= case.groups * LARGE_FILTER_BYTES
    overlap = any(axis.taps > axis.source_step for walk in case.walks for axis in walk)
    blocks = -(-case.outputs // case.strip)
    many = case.groups * case.count * blocks >= FEW_TASKS
    even = many or case.outputs >= LEAST_FILLED * blocks * case.strip
    few = case.positions <= ONE_BOX or (case.positions <= FEW_POSITIONS and large and overlap and even)
    return few and case.taps <= FEW_TAPS  # the more, the more each task copies


def reads_rows(case):
    """Whether a source of channels last is read in place, where no padding is seen: it is not read often."""
    in_place = not case.positions_adjacent and case.dtype.itemsize == case.itemsize
    return in_place and case.taps > 1 and case.outputs < MANY_OUTPUTS


def packs_phases(case):
    """Whether the taps of a filter are likely to be adjacent in memory, as the positions of the source are.

    The filters of stride phases are then better packed together, before all tasks (pyx/packing.pxd).
    """
    return case.count > 1 and case.positions_adjacent


def cut_walks(case):
    """The case with its walks cut, where padding would take much of the time; and for each walk its parts."""
    return _parted(case, without_padding(case.walks, case.counts, case.batch, case.operation == WGRAD))


def cut_ends(case):
    """The same, with walks cut into the ends of rows, which see padding, and what lies between."""
    return _parted(case, without_ends(case.walks))


def _parted(case, parts):
    counts = chain(*map(repeat, case.counts, map(len, parts)))
    return case._replace(walks=[*chain(*parts)], counts=[*counts]), parts


def takes_larger_boxes(case):
    """Whether the boxes of wgrad may be larger, so that its sums are loaded and stored less often.

    Taps that share what they see make up for the room that it takes, and so do vectors of a whole line: a tile's sums
    are then as many lines, but multiplied in half of the time. Where a position has few products, the work for each box
    counts as well. Small groups are taken together in its place.
    """
    shared = case.taps > 1 and all(axis.source_step == 1 for walk in case.walks for axis in walk)
    few = case.channels * case.taps * case.outputs <= FEW_PRODUCTS
    fits = case.groups == 1 and case.itemsize == 4 and case.machine.vector_bytes >= LINE_BYTES
    return fits and (shared or few)
