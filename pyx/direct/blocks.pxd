"""The blocks that ``cpu/direct/plan.py`` cuts the work into."""

from libc.stdint cimport int64_t

from base.problem cimport conv_walk
from base.scalar cimport compute
from copy.window cimport Window, WindowAxis
from tile.ukernel cimport LINE_BYTES, whole_vectors

cdef struct Blocks:  # Blocks of cpu/plan/steps.py, field for field
    int64_t threads
    int64_t lanewise  # whether small groups are computed side by side: a block of outputs is lanes
    int64_t positions_across  # whether the columns of a tile are positions, not output channels
    int64_t images  # images of a box; the box's other extents are in the step's WindowAxis
    int64_t chunk  # channels of a window
    int64_t outputs  # output channels of a block
    int64_t slices  # slices of the positions in wgrad, each a task; their sums are added in order
    int64_t nontemporal  # whether the target is stored past the cache, by non-temporal stores, where that is possible
    int64_t prefetch  # how far ahead the source of lanes is prefetched: 0 not at all, 1 within the row, 2 a row
    int64_t packs  # whether each task packs its own part of the filter, a strip of outputs
    int64_t pairs  # whether the tile multiplies pairs of bfloat16: pairs of channels, in wgrad pairs of positions
    int64_t groups  # groups side by side that a task takes, all their channels in one window
    int64_t phases  # steps that a task computes together: all phases of a strided dgrad, or one
    int64_t target_in_memory  # whether wgrad reads the target from memory: it is too large for the last cache
    int64_t pack_channels  # channels of a chunk of the filter that a task packs before the others; all of pairs
    int64_t spreads  # how small groups of several channels take the spreading tile: 0 not at all, 1 COPIES, 2 in place
    int64_t heights  # rows of positions that wgrad of small groups sums for a vector of lanes before the next
    int64_t bands  # boxes, one below the other, which none of its slices ends between

cdef enum:
    COPIES = 1  # of what tasks see and make, though lanes may be adjacent
    PACKS = -1  # a step that packs its filter, and no more: parts of its walk are steps of their own

cdef struct Reads:  # Reads of cpu/plan/steps.py, field for field
    int64_t copies  # whether a window is faster than the source itself
    int64_t channels_inside  # whether, in wgrad, neighbours in the window of a source of channels last are channels
    int64_t strips  # whether tiles read whole vectors of the filter itself, where tasks pack and tiles can

cdef struct Step:  # a row of steps.Plan.steps: one walk
    conv_walk walk
    WindowAxis axis[3]
    Reads reads
    int64_t packed  # number of the step whose packed filter it uses, most often itself; or PACKS


cdef inline int64_t padded_row(int64_t columns, compute kind) noexcept nogil:
    """Elements between rows of sums: never a power of two, whose rows would share cache sets."""
    return whole_vectors(columns, kind) + LINE_BYTES // <int64_t>sizeof(compute)


cdef inline void window_of(Window *m, const Blocks *blocks, const Step *step) noexcept nogil:
    cdef int axis
    m.images = blocks.images
    m.channels, m.pairs = blocks.groups * blocks.chunk, False
    for axis in range(3):
        m.axis[axis] = step.axis[axis]
