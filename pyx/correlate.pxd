"""fprop and dgrad: target(p, o) = sum over q of source(p, q) * filter(o, q).

The filter is packed once, for all blocks of positions; the source is packed by each block for itself.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from blocks cimport Blocks, allocate, count_blocks, in_lines, padded_row
from exact cimport any_nan, repair_positions
from matrix cimport Matrix, Run, Tap, columns_of, describe_operands, find_runs, positions_of, taps_of_operands
from pack cimport gather, gather_strips
from problem cimport conv_walk
from scalar cimport compute, scalar
from store cimport scatter
from ukernel cimport multiply, strip_width, whole_vectors

cdef enum:
    FILTER_CHANNELS = 16

cdef struct Correlation:
    Matrix x, w, y  # source, filter, target
    Blocks blocks
    int64_t groups, position_blocks, channel_blocks
    int64_t filter_blocks, filter_size  # of the packed filter of one group: tasks, elements
    int64_t sums_offset, runs_offset, scratch  # of one thread: its panel, its sums, its runs; in bytes


cdef inline void pack_filter(
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


cdef inline void correlate_block(
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


cdef inline void describe_correlation(
    Correlation *c, const scalar[:, :, :, :, :, :] source, const scalar[:, :, :, :, :, :] filter,
    const scalar[:, :, :, :, :, :] target, const conv_walk *walk, const Blocks *blocks, Tap *taps, compute kind,
) noexcept nogil:
    """Everything about one walk but its memory; ``taps`` has room for taps_of_operands(walk)."""
    cdef int64_t position_block, channel_block, panel_size
    describe_operands(
        &c.x, &c.w, &c.y, source.shape, source.strides, filter.shape, filter.strides, target.shape, target.strides,
        sizeof(scalar), not blocks.columns_follow_memory, taps, walk,
    )
    c.blocks = blocks[0]
    c.groups = source.shape[1]
    c.filter_blocks = count_blocks(positions_of(&c.w), strip_width(kind))
    if blocks.columns_follow_memory:
        position_block, channel_block = blocks.rows, blocks.columns
        c.filter_size = columns_of(&c.w) * whole_vectors(positions_of(&c.w), kind)
        panel_size = blocks.rows * blocks.depth
    else:
        position_block, channel_block = blocks.columns, blocks.rows
        c.filter_size = columns_of(&c.w) * positions_of(&c.w)
        panel_size = whole_vectors(blocks.columns, kind) * blocks.depth
    c.position_blocks = count_blocks(positions_of(&c.x), position_block)
    c.channel_blocks = count_blocks(positions_of(&c.w), channel_block)
    c.sums_offset = in_lines(panel_size * sizeof(compute))
    c.runs_offset = c.sums_offset + in_lines(blocks.rows * padded_row(blocks.columns, kind) * sizeof(compute))
    c.scratch = c.runs_offset + in_lines(position_block * sizeof(Run))


cdef inline int correlate_walks(
    const scalar[:, :, :, :, :, :] source, const scalar[:, :, :, :, :, :] filter, scalar[:, :, :, :, :, :] target,
    const int64_t[:, :, ::1] walk_array, const int64_t[::1] block_array, compute kind,
) except -1:
    cdef Correlation c
    cdef const conv_walk *walks = <const conv_walk *>&walk_array[0, 0, 0]
    cdef const Blocks *blocks = <const Blocks *>&block_array[0]
    cdef int64_t i, tasks, task, most_taps = 0, most_filter = 0, most_scratch = 0
    cdef int threads = <int>blocks.threads
    cdef Tap *taps = NULL
    cdef compute *packed = NULL
    cdef char *scratch = NULL
    cdef const scalar *x = &source[0, 0, 0, 0, 0, 0]
    cdef const scalar *w = &filter[0, 0, 0, 0, 0, 0]
    cdef scalar *y = &target[0, 0, 0, 0, 0, 0]
    try:
        # All memory for all walks comes first: where there is too little, nothing has been written.
        for i in range(walk_array.shape[0]):
            most_taps = max(most_taps, taps_of_operands(walks + i))
        taps = <Tap *>allocate(most_taps * sizeof(Tap))
        for i in range(walk_array.shape[0]):
            describe_correlation(&c, source, filter, target, walks + i, blocks, taps, kind)
            most_filter = max(most_filter, c.groups * c.filter_size)
            most_scratch = max(most_scratch, threads * c.scratch)
        packed = <compute *>allocate(most_filter * sizeof(compute))
        scratch = <char *>allocate(most_scratch)
        for i in range(walk_array.shape[0]):
            describe_correlation(&c, source, filter, target, walks + i, blocks, taps, kind)
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
