"""fprop, dgrad and wgrad as products of gathered matrices: pack, tile, store, block by block.

Compiled once for each instruction set. matrix.pxd defines the matrices; a block of the result belongs to one thread from
its first product to its store, so the bits do not depend on how many threads there are.

                          rows of a           columns of b        depth
    correlate, NXC        positions           output channels     taps x channels     ``columns_are_channels``
    correlate, NCX        output channels     positions           taps x channels
    wgrad, NXC            output channels     taps x channels     positions           ``columns_are_taps``
    wgrad, NCX            taps x channels     output channels     positions

The side whose memory is contiguous is the one that is copied in vectors; which one it is, the plan decides.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from exact cimport any_nan, repair_filter, repair_positions
from matrix cimport (
    Matrix, Run, Tap, columns_of, count_taps, describe_filter, describe_source, describe_target, find_runs,
    positions_of,
)
from pack cimport gather
from problem cimport conv_walk
from scalar cimport BF16, F16, F32, F64, I32, bf16, compute, f16, scalar
from store cimport scatter
from ukernel cimport TILE_ROWS, TILE_VECTORS, VECTOR_BYTES, multiply, strip_width, whole_vectors

cdef extern from "<stdlib.h>" nogil:
    void *aligned_alloc(size_t alignment, size_t size)

cdef extern from "threads.h" nogil:
    int threads_available()
    const char *threads_runtime()

cdef enum:
    FILTER_CHANNELS = 16

cdef struct Blocks:  # plan.Plan, field for field
    int64_t threads
    int64_t columns_follow_memory  # columns_are_channels or columns_are_taps of the table above
    int64_t depth  # of a panel
    int64_t rows, columns  # of a block of sums
    int64_t slices  # of the depth of wgrad, summed in order


def tile():
    """(rows of a register tile, bytes of its columns, bytes of a vector)."""
    return TILE_ROWS, TILE_VECTORS * VECTOR_BYTES, VECTOR_BYTES


def max_threads():
    """Threads that OpenMP would use now; 1 where the compiler had no OpenMP."""
    return threads_available()


def openmp():
    """Version of OpenMP's interface, or why there is none."""
    return threads_runtime().decode()


cdef void *allocate(int64_t size) except NULL:
    """size bytes at the start of a cache line."""
    cdef void *memory = aligned_alloc(64, <size_t>in_lines(max(size, 64)))
    if memory == NULL:
        raise MemoryError(f"no {size} bytes of scratch memory for the convolution")
    return memory


cdef inline int64_t in_lines(int64_t size) noexcept nogil:
    """size bytes, rounded up to whole cache lines."""
    return (size + 63) // 64 * 64


cdef inline int64_t count_blocks(int64_t length, int64_t block) noexcept nogil:
    return (length + block - 1) // block


cdef inline int64_t padded_row(int64_t columns, compute kind) noexcept nogil:
    """Elements between rows of a block: whole vectors, and never a power of two, whose rows would share cache sets."""
    return whole_vectors(columns, kind) + VECTOR_BYTES // <int64_t>sizeof(compute)


cdef void gather_strips(
    compute *panel, bint columns_are_positions, const scalar *tensor, const Matrix *m, const Run *runs, int64_t run_count,
    int64_t p0, int64_t p1, int64_t q0, int64_t q1,
) noexcept nogil:
    """Pack m(p0 .. p1, q0 .. q1) as b of ``multiply``, its columns the positions or the columns of m."""
    cdef int64_t columns = p1 - p0 if columns_are_positions else q1 - q0
    cdef int64_t depth = q1 - q0 if columns_are_positions else p1 - p0
    cdef int64_t j = 0, width, last
    cdef compute *strip
    while j < columns:
        width = min(strip_width(panel[0]), whole_vectors(columns - j, panel[0]))
        last = min(j + width, columns)
        strip = panel + j * depth
        if last - j < width:
            memset(strip, 0, depth * width * sizeof(compute))
        if columns_are_positions:
            gather(strip, 1, width, tensor, m, runs, run_count, p0 + j, p0 + last, q0, q1)
        else:
            gather(strip, width, 1, tensor, m, runs, run_count, p0, p1, q0 + j, q0 + last)
        j += width


# ---- fprop, dgrad ----------------------------------------------------------------------------------------------------

cdef struct Correlation:
    Matrix x, w, y  # source, filter, target
    Blocks blocks
    int64_t groups, position_blocks, channel_blocks
    int64_t filter_blocks, filter_size  # of the packed filter of one group: tasks, elements
    int64_t sums_offset, runs_offset, scratch  # of one thread: its panel, its sums, its runs; in bytes


cdef void pack_filter(
    const Correlation *c, const scalar *filter, compute *packed, int64_t task
) noexcept nogil:
    """One strip of output channels of one group; o0 * depth is where it begins in either layout."""
    cdef int64_t g = task // c.filter_blocks, depth = columns_of(&c.w), channels = positions_of(&c.w)
    cdef int64_t o0 = task % c.filter_blocks * strip_width(packed[0])
    cdef int64_t o1 = min(o0 + strip_width(packed[0]), channels)
    cdef int64_t q0 = 0, q1
    cdef Run run
    find_runs(&c.w, o0, o1, &run)
    filter += g * c.w.group_stride
    packed += g * c.filter_size + o0 * depth
    if c.blocks.columns_follow_memory:
        gather_strips(packed, True, filter, &c.w, &run, 1, 0, o1 - o0, 0, depth)
        return
    while q0 < depth:  # a few channels at a time, whose taps are neighbours in memory
        q1 = min(q0 + FILTER_CHANNELS * c.w.taps, depth)
        gather(packed + q0, depth, 1, filter, &c.w, &run, 1, 0, o1 - o0, q0, q1)
        q0 = q1


cdef void correlate_block(
    const Correlation *c, const scalar *source, const scalar *filter, scalar *target, const compute *packed,
    char *scratch, int64_t task,
) noexcept nogil:
    cdef int64_t g = task // (c.position_blocks * c.channel_blocks)
    cdef int64_t block = c.blocks.rows if c.blocks.columns_follow_memory else c.blocks.columns
    cdef int64_t p0 = task // c.channel_blocks % c.position_blocks * block
    cdef int64_t positions = min(block, positions_of(&c.x) - p0)
    cdef int64_t channel_block = c.blocks.columns if c.blocks.columns_follow_memory else c.blocks.rows
    cdef int64_t o0 = task % c.channel_blocks * channel_block
    cdef int64_t channels = min(channel_block, positions_of(&c.w) - o0)
    cdef int64_t depth = columns_of(&c.x), k0 = 0, k1, rows, columns, row, sums_p, sums_o, run_count
    cdef compute *panel = <compute *>scratch
    cdef compute *sums = <compute *>(scratch + c.sums_offset)
    cdef Run *runs = <Run *>(scratch + c.runs_offset)

    source += g * c.x.group_stride
    filter += g * c.w.group_stride
    target += g * c.y.group_stride
    packed += g * c.filter_size + o0 * depth
    rows, columns = (positions, channels) if c.blocks.columns_follow_memory else (channels, positions)
    row = padded_row(columns, sums[0])
    sums_p = row if c.blocks.columns_follow_memory else 1
    sums_o = 1 if c.blocks.columns_follow_memory else row
    memset(sums, 0, rows * row * sizeof(compute))
    run_count = find_runs(&c.x, p0, p0 + positions, runs)
    while k0 < depth:
        k1 = min(k0 + c.blocks.depth, depth)
        if c.blocks.columns_follow_memory:
            gather(panel, c.blocks.depth, 1, source, &c.x, runs, run_count, 0, positions, k0, k1)
            multiply(rows, columns, k1 - k0, panel, c.blocks.depth, 1, packed, k0, depth, sums, row)
        else:
            gather_strips(panel, True, source, &c.x, runs, run_count, 0, positions, k0, k1)
            multiply(rows, columns, k1 - k0, packed + k0, depth, 1, panel, 0, k1 - k0, sums, row)
        k0 = k1
    if compute is not int:
        if c.x.padded and any_nan(sums, rows, columns, row):
            repair_positions(sums, sums_p, sums_o, o0, o0 + channels, source, &c.x, runs, run_count, filter, &c.w)
    run_count = find_runs(&c.y, p0, p0 + positions, runs)
    scatter(target, &c.y, sums, sums_p, sums_o, runs, run_count, o0, o0 + channels)


cdef int correlate_walk(
    const scalar[:, :, :, :, :, :] source, const scalar[:, :, :, :, :, :] filter, scalar[:, :, :, :, :, :] target,
    const conv_walk *walk, const Blocks *blocks, compute kind,
) except -1:
    cdef Correlation c
    cdef int64_t positions, channels, position_block, channel_block, panel_size, sums_size, tasks, task
    cdef int threads = <int>blocks.threads
    cdef bint taps_fastest = not blocks.columns_follow_memory
    cdef Tap *taps = NULL
    cdef compute *packed = NULL
    cdef char *scratch = NULL
    cdef const scalar *x = &source[0, 0, 0, 0, 0, 0]
    cdef const scalar *w = &filter[0, 0, 0, 0, 0, 0]
    cdef scalar *y = &target[0, 0, 0, 0, 0, 0]
    try:
        taps = <Tap *>allocate((2 * count_taps(walk) + 1) * sizeof(Tap))
        describe_source(&c.x, source.shape, source.strides, sizeof(scalar), taps_fastest, taps, walk)
        describe_filter(&c.w, filter.shape, filter.strides, sizeof(scalar), taps_fastest, taps + count_taps(walk), walk)
        describe_target(&c.y, target.shape, target.strides, sizeof(scalar), taps_fastest, taps + 2 * count_taps(walk), walk)
        positions = positions_of(&c.x)
        channels = positions_of(&c.w)
        c.blocks = blocks[0]
        c.groups = source.shape[1]
        c.filter_blocks = count_blocks(channels, strip_width(kind))
        if blocks.columns_follow_memory:
            position_block, channel_block = blocks.rows, blocks.columns
            c.filter_size = columns_of(&c.w) * whole_vectors(channels, kind)
            panel_size = blocks.rows * blocks.depth
        else:
            position_block, channel_block = blocks.columns, blocks.rows
            c.filter_size = columns_of(&c.w) * channels
            panel_size = whole_vectors(blocks.columns, kind) * blocks.depth
        sums_size = blocks.rows * padded_row(blocks.columns, kind)
        c.position_blocks = count_blocks(positions, position_block)
        c.channel_blocks = count_blocks(channels, channel_block)
        c.sums_offset = in_lines(panel_size * sizeof(compute))
        c.runs_offset = c.sums_offset + in_lines(sums_size * sizeof(compute))
        c.scratch = c.runs_offset + in_lines(position_block * sizeof(Run))
        packed = <compute *>allocate(c.groups * c.filter_size * sizeof(compute))
        scratch = <char *>allocate(threads * c.scratch)
        tasks = c.groups * c.filter_blocks
        for task in prange(tasks, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1, nogil=True):
            pack_filter(&c, w, packed, task)
        tasks = c.groups * c.position_blocks * c.channel_blocks
        for task in prange(tasks, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1, nogil=True):
            correlate_block(&c, x, w, y, packed, scratch + threadid() * c.scratch, task)
    finally:
        free(taps)
        free(packed)
        free(scratch)
    return 0


cdef int correlate_walks(
    const scalar[:, :, :, :, :, :] source, const scalar[:, :, :, :, :, :] filter, scalar[:, :, :, :, :, :] target,
    const int64_t[:, :, ::1] walks, const int64_t[::1] blocks, compute kind,
) except -1:
    cdef Py_ssize_t i
    for i in range(walks.shape[0]):
        correlate_walk(source, filter, target, <const conv_walk *>&walks[i, 0, 0], <const Blocks *>&blocks[0], kind)
    return 0


def correlate(int dtype, source, filter, target, walks, blocks):
    """target(p, o) = sum over q of source(p, q) * filter(o, q), for each walk in turn.

    The tensors have shape (batch, group, channel, depth, height, width), the filter (group, output channel, input channel,
    depth, height, width); none is empty. ``walks`` holds AxisWalk rows, int64 of shape (walks, 3, 10); ``blocks`` a Plan.
    """
    if dtype == F16:
        correlate_walks[f16, float](source, filter, target, walks, blocks, 0)
    elif dtype == BF16:
        correlate_walks[bf16, float](source, filter, target, walks, blocks, 0)
    elif dtype == F32:
        correlate_walks[float, float](source, filter, target, walks, blocks, 0)
    elif dtype == F64:
        correlate_walks[double, double](source, filter, target, walks, blocks, 0)
    elif dtype == I32:
        correlate_walks[int, int](source, filter, target, walks, blocks, 0)


# ---- wgrad -----------------------------------------------------------------------------------------------------------

cdef struct Accumulation:
    Matrix x, w, y  # source, filter, target
    Blocks blocks
    int64_t groups, row_blocks, column_blocks
    int64_t b_offset, sums_offset, runs_offset, scratch  # of one thread: panels a and b, sums, runs; in bytes
    int64_t sums_size  # elements


cdef inline void block_of(const Accumulation *c, int64_t block, int64_t *g, int64_t *limits) noexcept nogil:
    """The group of a block and its limits o0, o1, q0, q1 in the filter."""
    cdef int64_t column = block % c.column_blocks * c.blocks.columns
    cdef int64_t row = block // c.column_blocks % c.row_blocks * c.blocks.rows
    cdef int64_t o0, q0, o_block, q_block
    g[0] = block // (c.column_blocks * c.row_blocks)
    if c.blocks.columns_follow_memory:
        o0, q0, o_block, q_block = row, column, c.blocks.rows, c.blocks.columns
    else:
        o0, q0, o_block, q_block = column, row, c.blocks.columns, c.blocks.rows
    limits[0] = o0
    limits[1] = min(o0 + o_block, positions_of(&c.w))
    limits[2] = q0
    limits[3] = min(q0 + q_block, columns_of(&c.w))


cdef void accumulate_block(
    const Accumulation *c, const scalar *source, const scalar *target, compute *sums, char *scratch,
    int64_t block, int64_t slice,
) noexcept nogil:
    """sums = the block's products over one slice of the positions."""
    cdef int64_t g, positions = positions_of(&c.x), x_runs, y_runs, row
    cdef int64_t k0 = positions * slice // c.blocks.slices, k1, end = positions * (slice + 1) // c.blocks.slices
    cdef int64_t limits[4]
    cdef compute *a = <compute *>scratch
    cdef compute *b = <compute *>(scratch + c.b_offset)
    cdef Run *of_x = <Run *>(scratch + c.runs_offset)
    cdef Run *of_y = of_x + c.blocks.depth
    block_of(c, block, &g, limits)
    cdef int64_t o0 = limits[0], o1 = limits[1], q0 = limits[2], q1 = limits[3], channels = o1 - o0, columns = q1 - q0
    source += g * c.x.group_stride
    target += g * c.y.group_stride
    row = padded_row(columns if c.blocks.columns_follow_memory else channels, sums[0])
    memset(sums, 0, (channels if c.blocks.columns_follow_memory else columns) * row * sizeof(compute))
    while k0 < end:
        k1 = min(k0 + c.blocks.depth, end)
        x_runs = find_runs(&c.x, k0, k1, of_x)
        y_runs = find_runs(&c.y, k0, k1, of_y)
        if c.blocks.columns_follow_memory:
            gather(a, padded_row(channels, a[0]), 1, target, &c.y, of_y, y_runs, 0, k1 - k0, o0, o1)
            gather_strips(b, False, source, &c.x, of_x, x_runs, 0, k1 - k0, q0, q1)
            multiply(channels, columns, k1 - k0, a, 1, padded_row(channels, a[0]), b, 0, k1 - k0, sums, row)
        else:
            gather(a, 1, c.blocks.depth, source, &c.x, of_x, x_runs, 0, k1 - k0, q0, q1)
            gather_strips(b, False, target, &c.y, of_y, y_runs, 0, k1 - k0, o0, o1)
            multiply(columns, channels, k1 - k0, a, c.blocks.depth, 1, b, 0, k1 - k0, sums, row)
        k0 = k1


cdef void finish_block(
    const Accumulation *c, const scalar *source, scalar *filter, const scalar *target, compute *sums, char *scratch,
    int64_t block,
) noexcept nogil:
    """Add the slices of a block in order and store it."""
    cdef int64_t g, slice, i, row, sums_o, sums_q
    cdef int64_t limits[4]
    cdef Run *runs = <Run *>(scratch + c.runs_offset)
    cdef Run run
    block_of(c, block, &g, limits)
    cdef int64_t o0 = limits[0], o1 = limits[1], q0 = limits[2], q1 = limits[3]
    cdef int64_t rows = o1 - o0 if c.blocks.columns_follow_memory else q1 - q0
    cdef int64_t columns = q1 - q0 if c.blocks.columns_follow_memory else o1 - o0
    row = padded_row(columns, sums[0])
    sums_o = row if c.blocks.columns_follow_memory else 1
    sums_q = 1 if c.blocks.columns_follow_memory else row
    source += g * c.x.group_stride
    target += g * c.y.group_stride
    filter += g * c.w.group_stride
    for slice in range(1, c.blocks.slices):
        for i in range(rows * row):
            sums[i] += sums[slice * c.sums_size + i]
    if compute is not int:
        if c.x.padded and any_nan(sums, rows, columns, row):
            repair_filter(sums, sums_o, sums_q, o0, o1, q0, q1, source, &c.x, target, &c.y, runs, c.blocks.depth)
    find_runs(&c.w, o0, o1, &run)
    scatter(filter, &c.w, sums, sums_o, sums_q, &run, 1, q0, q1)


cdef void wgrad_task(
    const Accumulation *c, const scalar *source, scalar *filter, const scalar *target, compute *partial, char *scratch,
    int64_t task,
) noexcept nogil:
    """One slice of a block; the whole of it, stored as well, where there is one slice."""
    cdef int64_t block = task // c.blocks.slices, slice = task % c.blocks.slices
    cdef compute *sums = partial + task * c.sums_size
    if c.blocks.slices == 1:
        sums = <compute *>(scratch + c.sums_offset)
    accumulate_block(c, source, target, sums, scratch, block, slice)
    if c.blocks.slices == 1:
        finish_block(c, source, filter, target, sums, scratch, block)


cdef int wgrad_walk(
    const scalar[:, :, :, :, :, :] source, scalar[:, :, :, :, :, :] filter, const scalar[:, :, :, :, :, :] target,
    const int64_t[:, :, ::1] walks, const int64_t[::1] blocks_array, compute kind,
) except -1:
    cdef Accumulation c
    cdef const conv_walk *walk = <const conv_walk *>&walks[0, 0, 0]
    cdef const Blocks *blocks = <const Blocks *>&blocks_array[0]
    cdef int64_t rows, columns, a_size, b_size, block_count, task
    cdef int threads = <int>blocks.threads
    cdef bint taps_fastest = not blocks.columns_follow_memory
    cdef Tap *taps = NULL
    cdef compute *partial = NULL
    cdef char *scratch = NULL
    cdef const scalar *x = &source[0, 0, 0, 0, 0, 0]
    cdef scalar *w = &filter[0, 0, 0, 0, 0, 0]
    cdef const scalar *y = &target[0, 0, 0, 0, 0, 0]
    try:
        taps = <Tap *>allocate((2 * count_taps(walk) + 1) * sizeof(Tap))
        describe_source(&c.x, source.shape, source.strides, sizeof(scalar), taps_fastest, taps, walk)
        describe_filter(&c.w, filter.shape, filter.strides, sizeof(scalar), taps_fastest, taps + count_taps(walk), walk)
        describe_target(&c.y, target.shape, target.strides, sizeof(scalar), taps_fastest, taps + 2 * count_taps(walk), walk)
        c.blocks = blocks[0]
        c.groups = source.shape[1]
        if blocks.columns_follow_memory:
            rows, columns = positions_of(&c.w), columns_of(&c.w)
            a_size = padded_row(blocks.rows, kind) * blocks.depth
        else:
            rows, columns = columns_of(&c.w), positions_of(&c.w)
            a_size = blocks.rows * blocks.depth
        b_size = whole_vectors(blocks.columns, kind) * blocks.depth
        c.row_blocks = count_blocks(rows, blocks.rows)
        c.column_blocks = count_blocks(columns, blocks.columns)
        c.sums_size = in_lines(blocks.rows * padded_row(blocks.columns, kind) * sizeof(compute)) // sizeof(compute)
        c.b_offset = in_lines(a_size * sizeof(compute))
        c.sums_offset = c.b_offset + in_lines(b_size * sizeof(compute))
        c.runs_offset = c.sums_offset + (c.sums_size * sizeof(compute) if blocks.slices == 1 else 0)
        c.scratch = c.runs_offset + in_lines(2 * blocks.depth * sizeof(Run))
        block_count = c.groups * c.row_blocks * c.column_blocks
        if blocks.slices > 1:
            partial = <compute *>allocate(block_count * blocks.slices * c.sums_size * sizeof(compute))
        scratch = <char *>allocate(threads * c.scratch)
        for task in prange(
            block_count * blocks.slices, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1, nogil=True
        ):
            wgrad_task(&c, x, w, y, partial, scratch + threadid() * c.scratch, task)
        if blocks.slices > 1:
            for task in prange(
                block_count, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1, nogil=True
            ):
                finish_block(&c, x, w, y, partial + task * blocks.slices * c.sums_size,
                             scratch + threadid() * c.scratch, task)
    finally:
        free(taps)
        free(partial)
        free(scratch)
    return 0


def wgrad(int dtype, source, filter, target, walks, blocks):
    """filter(o, q) = sum over p of target(p, o) * source(p, q); arguments as those of ``correlate``, with one walk."""
    if dtype == F16:
        wgrad_walk[f16, float](source, filter, target, walks, blocks, 0)
    elif dtype == BF16:
        wgrad_walk[bf16, float](source, filter, target, walks, blocks, 0)
    elif dtype == F32:
        wgrad_walk[float, float](source, filter, target, walks, blocks, 0)
    elif dtype == F64:
        wgrad_walk[double, double](source, filter, target, walks, blocks, 0)
    elif dtype == I32:
        wgrad_walk[int, int](source, filter, target, walks, blocks, 0)
