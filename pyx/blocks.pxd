"""The blocks that ``cpu/direct/plan.py`` cuts the work into, and their memory."""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport malloc

from problem cimport conv_walk
from scalar cimport compute
from ukernel cimport LINE_BYTES, whole_vectors
from window cimport Window, WindowAxis

cdef struct Blocks:  # Blocks of cpu/direct/plan.py, field for field
    int64_t threads
    int64_t lanewise  # whether small groups are computed side by side: a block of outputs is lanes
    int64_t positions_across  # whether the columns of a tile are positions, not output channels
    int64_t images  # images of a box; the box's other extents are in the step's WindowAxis
    int64_t chunk  # channels of a window
    int64_t outputs  # output channels of a block
    int64_t slices  # slices of the positions in wgrad, each a task; their sums are added in order
    int64_t streams  # whether the target is stored past the cache where that is possible
    int64_t fetches  # how far ahead the source of lanes is fetched: 0 not at all, 1 within the row, 2 a row
    int64_t packs  # whether each task packs its own part of the filter, a strip of outputs
    int64_t pairs  # whether the tile multiplies pairs of bfloat16: pairs of channels, in wgrad pairs of positions
    int64_t groups  # groups side by side that a task takes, all their channels in one window
    int64_t phases  # steps that a task computes together: all phases of a strided dgrad, or one
    int64_t far  # whether wgrad reads the target from memory: it is too large for the last cache

cdef enum:
    PACKS = -1  # a step that packs its filter, and no more: parts of its walk are steps of their own

cdef struct Step:  # a row of plan.Plan.steps: one walk
    conv_walk walk
    WindowAxis axis[3]
    int64_t packed  # number of the step whose packed filter it uses, most often itself; or PACKS


cdef inline void *allocate(int64_t one, int64_t two, int64_t three) except NULL:
    """Memory for three parts, whole cache lines each, that lie one after the other from ``first_line`` on.

    One malloc: three calls would take as long as the products of a small convolution.
    """
    cdef void *memory = NULL
    if max(one, two, three) < <int64_t>1 << 60:  # so that their sum fits into an int64
        memory = malloc(<size_t>(one + two + three + 64))
    if memory == NULL:
        raise MemoryError(f"no {one}, {two} and {three} bytes of scratch memory for the convolution")
    return memory


cdef inline char *first_line(void *memory) noexcept nogil:
    """The start of a cache line within the first 64 bytes."""
    return <char *>in_lines(<int64_t>memory)


cdef inline int64_t in_lines(int64_t size) noexcept nogil:
    """size bytes, rounded up to whole cache lines."""
    return (size + 63) // 64 * 64


cdef inline int64_t count_blocks(int64_t length, int64_t block) noexcept nogil:
    return (length + block - 1) // block


cdef inline int64_t padded_row(int64_t columns, compute kind) noexcept nogil:
    """Elements between rows of sums: never a power of two, whose rows would share cache sets."""
    return whole_vectors(columns, kind) + LINE_BYTES // <int64_t>sizeof(compute)


cdef inline void window_of(Window *m, const Blocks *blocks, const Step *step) noexcept nogil:
    cdef int axis
    m.images = blocks.images
    m.channels, m.pairs = blocks.groups * blocks.chunk, False
    for axis in range(3):
        m.axis[axis] = step.axis[axis]


cdef inline void multiples(int32_t *table, int64_t step, int64_t count) noexcept nogil:
    """table[i] = i * step."""
    cdef int64_t i
    for i in range(count):
        table[i] = <int32_t>(i * step)


cdef inline void transposed_multiples(int32_t *table, int64_t step, int64_t rows, int64_t columns) noexcept nogil:
    """table[r * columns + j] = (j * rows + r) * step."""
    cdef int64_t r, j
    for r in range(rows):
        for j in range(columns):
            table[r * columns + j] = <int32_t>((j * rows + r) * step)
