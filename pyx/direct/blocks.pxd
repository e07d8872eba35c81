"""Block sizes and steps of a direct plan, as ``cpu/direct/plan.py`` chooses them."""

from libc.stdint cimport int64_t

from base.problem cimport conv_walk
from base.scalar cimport compute
from copy.window cimport Window, WindowAxis
from tile.ukernel cimport LINE_BYTES, whole_vectors

cdef struct Blocks:  # Blocks of cpu/plan/steps.py, field for field
    int64_t threads
    int64_t lanewise  # whether SIMD lanes are outputs of neighbouring small groups: a block of outputs is lanes
    int64_t positions_across  # whether the columns of a tile are positions, not output channels
    int64_t images  # images of a box; the box's other extents are in the step's WindowAxis
    int64_t chunk  # channels of a window
    int64_t outputs  # output channels of a block
    int64_t slices  # slices of the positions in wgrad, each a task; their sums are added in order
    int64_t nontemporal  # whether non-temporal stores write the target where that is possible
    int64_t prefetch  # distance of prefetches of the lanes' source: 0 none, 1 within the row, 2 a row
    int64_t packs  # whether each task packs its own part of the filter, one strip of outputs at a time
    int64_t pairs  # how the tile multiplies pairs of bfloat16, which are channels, in wgrad positions: see ``way_of``
    int64_t groups  # neighbouring groups of a task (a bundle), with all their channels in one window
    int64_t phases  # steps that a task computes together: all phases of a strided dgrad, or one
    int64_t target_in_memory  # whether wgrad reads the target from memory: it is too large for the last cache
    int64_t pack_channels  # channels of a chunk that one packing task packs; with pairs, the whole chunk
    int64_t spreads  # use of the spreading tile by small groups of several channels: 0 no, 1 COPIES, 2 in place
    int64_t heights  # rows of positions that wgrad of small groups sums for one vector of lanes before the next
    int64_t bands  # boxes, one below the other, that always belong to the same slice in wgrad of small groups

cdef enum:
    COPIES = 1  # tasks copy their source and target although lanes may be adjacent
    PACKS = -1  # a step that only packs its filter; parts of its walk are other steps, which use it

cdef struct Reads:  # Reads of cpu/plan/steps.py, field for field
    int64_t copies  # whether a window is faster than the source itself
    int64_t channels_inside  # whether neighbours in wgrad's window are channels, for a source with channels last
    int64_t strips  # whether tiles read strips of the filter in place if they can, where tasks pack for themselves

cdef struct Step:  # a row of steps.Plan.steps: one walk
    conv_walk walk
    WindowAxis axis[3]
    Reads reads
    int64_t packed  # number of the step whose packed filter it uses (usually itself), or PACKS


cdef inline int64_t padded_row(int64_t columns, compute kind) noexcept nogil:
    """Elements between rows of sums. One extra cache line keeps rows from falling into the same cache sets."""
    return whole_vectors(columns, kind) + LINE_BYTES // <int64_t>sizeof(compute)


cdef inline void window_of(Window *m, const Blocks *blocks, const Step *step) noexcept nogil:
    cdef int axis
    m.images = blocks.images
    m.channels, m.pairs = blocks.groups * blocks.chunk, False
    for axis in range(3):
        m.axis[axis] = step.axis[axis]
