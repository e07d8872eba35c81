"""wgrad: filter(o, q) = sum over p of target(p, o) * source(p, q).

A block of the filter is the work of one thread or, where there are few blocks, of one for each slice of the positions;
the slices are added in order.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from blocks cimport Blocks, allocate, count_blocks, in_lines, padded_row
from exact cimport any_nan, repair_filter
from matrix cimport Matrix, Run, Tap, columns_of, describe_operands, find_runs, positions_of, taps_of_operands
from pack cimport gather, gather_strips
from problem cimport conv_walk
from scalar cimport compute, scalar
from store cimport scatter
from ukernel cimport multiply, whole_vectors

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


cdef inline void accumulate_block(
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


cdef inline void finish_block(
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


cdef inline void wgrad_task(
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


cdef inline int wgrad_walk(
    const scalar[:, :, :, :, :, :] source, scalar[:, :, :, :, :, :] filter, const scalar[:, :, :, :, :, :] target,
    const int64_t[:, :, ::1] walk_array, const int64_t[::1] block_array, compute kind,
) except -1:
    cdef Accumulation c
    cdef const conv_walk *walk = <const conv_walk *>&walk_array[0, 0, 0]
    cdef const Blocks *blocks = <const Blocks *>&block_array[0]
    cdef int64_t rows, columns, a_size, b_size, block_count, tasks, task
    cdef int threads = <int>blocks.threads
    cdef Tap *taps = NULL
    cdef compute *partial = NULL
    cdef char *scratch = NULL
    cdef const scalar *x = &source[0, 0, 0, 0, 0, 0]
    cdef scalar *w = &filter[0, 0, 0, 0, 0, 0]
    cdef const scalar *y = &target[0, 0, 0, 0, 0, 0]
    try:
        taps = <Tap *>allocate(taps_of_operands(walk) * sizeof(Tap))
        describe_operands(
            &c.x, &c.w, &c.y, source.shape, source.strides, filter.shape, filter.strides, target.shape, target.strides,
            sizeof(scalar), not blocks.columns_follow_memory, taps, walk,
        )
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
        tasks = block_count * blocks.slices
        for task in prange(tasks, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1, nogil=True):
            wgrad_task(&c, x, w, y, partial, scratch + threadid() * c.scratch, task)
        if blocks.slices > 1:
            tasks = block_count
            for task in prange(tasks, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1, nogil=True):
                finish_block(&c, x, w, y, partial + task * blocks.slices * c.sums_size,
                             scratch + threadid() * c.scratch, task)
    finally:
        free(taps)
        free(partial)
        free(scratch)
    return 0
