"""fprop and dgrad: target(p, o) = sum over taps t and channels c of source(p, t, c) * filter(o, t, c).

The filter is packed once, for all boxes of positions. A task is a box and a block of output channels; chunk after chunk
of the channels it fills the box's window and adds the products to its sums, and in the end it stores them.

                        rows of a tile      columns of a tile
    channels across     positions           output channels
    positions across    output channels     positions of a row
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from blocks cimport Blocks, Step, allocate, first_line, in_lines, multiples, transposed_multiples
from convolution cimport Convolution
from copy cimport store_block
from correlation cimport Correlation, describe_correlation, pack_filter, takes_sums
from exact cimport any_nan, filter_sum
from scalar cimport compute, scalar
from tensor cimport target_offset
from ukernel cimport multiply_strip, strip_width, whole_vectors
from window cimport Box, column_offsets, fill_window, find_box, position_offsets, window_offset


cdef inline void add_products(
    const Correlation *c, const Box *box, int64_t positions, int64_t o0, int64_t outputs, int64_t channels,
    const compute *window, const compute *packed, const int32_t *position, const int32_t *column,
    compute *sums, int64_t sums_row, bint fresh,
) noexcept nogil:
    """sums += the products of a chunk of channels, or = those of the first one.

    ``packed`` is the chunk's filter from output channel o0 on.
    """
    cdef const Convolution *conv = &c.conv
    cdef int64_t depth = conv.taps * channels, j = 0, r, w, width = strip_width(sums[0]), row = box.count[3]
    cdef int64_t sums_h = whole_vectors(row, sums[0])
    if not conv.blocks.positions_across:
        while j < outputs:
            multiply_strip(conv.blocks.channelwise, positions, min(width, outputs - j), depth,
                           window + (j if conv.blocks.channelwise else 0), position, column, packed + j * depth,
                           c.filter_depth, sums + j, sums_row, fresh)
            j += width
        return
    for r in range(positions // row):
        w = 0
        while w < row:
            multiply_strip(
                False, outputs, min(width, row - w), depth, packed,
                c.filter_rows if channels == conv.blocks.chunk else c.last_filter_rows, c.filter_depth,
                window + position[r * row + w], column, sums + r * sums_h + w, sums_row, fresh,
            )
            w += width


cdef inline void repair(
    const Correlation *c, const Box *box, int64_t o0, int64_t outputs, const scalar *source, const scalar *filter,
    compute *sums, int64_t sums_w, int64_t sums_h, int64_t sums_o,
) noexcept nogil:
    """Form the sums again that are NaN."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t n, d, h, w, o, row = 0
    cdef int64_t position[4]
    cdef compute *sum
    if compute is not int:
        for n in range(box.count[0]):
            for d in range(box.count[1]):
                for h in range(box.count[2]):
                    for w in range(box.count[3]):
                        position[0], position[1] = box.begin[0] + n, box.begin[1] + d
                        position[2], position[3] = box.begin[2] + h, box.begin[3] + w
                        for o in range(outputs):
                            sum = sums + row * sums_h + w * sums_w + o * sums_o
                            if sum[0] != sum[0]:
                                sum[0] = filter_sum(&conv.walk,
                                                    source + (o * conv.x.channel if conv.blocks.channelwise else 0),
                                                    &conv.x, position,
                                                    filter + (o0 + o) * conv.w.batch, &conv.w, conv.channels, sum[0])
                    row += 1


cdef inline void correlate_block(
    const Correlation *c, const scalar *source, const scalar *filter, scalar *target, const compute *packed,
    char *scratch, int64_t task,
) noexcept nogil:
    cdef const Convolution *conv = &c.conv
    cdef int64_t g = task // (conv.box_count * conv.output_blocks), o0 = task % conv.output_blocks * conv.blocks.outputs
    cdef int64_t outputs = min(conv.blocks.outputs, conv.outputs - o0), c0 = 0, channels, last = 0, n, d, h, row = 0
    cdef int64_t positions, rows, columns, sums_w, sums_h, sums_o, sums_row = c.row
    cdef bint direct = False
    cdef Box box
    cdef compute *window = <compute *>scratch
    cdef const compute *seen = window
    cdef compute *sums = window + conv.window_size
    cdef int32_t *position = <int32_t *>(sums + c.sums_size)
    cdef int32_t *column = position + conv.box_positions
    positions = find_box(&box, &conv.window, &conv.walk, conv.batch, conv.boxes,
                         task // conv.output_blocks % conv.box_count)
    position_offsets(&conv.window, &box, position)
    source += g * conv.x.group
    filter += g * conv.w.group
    target += g * conv.y.group + o0 * conv.y.channel
    packed += g * c.filter_size
    if conv.blocks.channelwise:
        source += o0 * conv.x.channel
    if scalar is compute:
        direct = takes_sums(c, &box, outputs, sums[0])
        if direct:
            sums = target + target_offset(&conv.y, &conv.walk, box.begin[0], box.begin[1], box.begin[2], box.begin[3])
            sums_row = conv.walk.axis[2].target_step * conv.y.axis[2]
            if conv.blocks.positions_across:
                sums_row = conv.y.channel
    if conv.blocks.positions_across:
        sums_w, sums_h, sums_o = 1, whole_vectors(box.count[3], sums[0]), sums_row
        rows, columns = outputs, positions // box.count[3] * sums_h
    else:
        sums_w, sums_h, sums_o = sums_row, sums_row * box.count[3], 1
        rows, columns = positions, outputs
    if conv.channels == 0 or conv.taps == 0:
        memset(sums, 0, rows * sums_row * sizeof(compute))
    while c0 < conv.channels and conv.taps:
        channels = min(conv.blocks.chunk, conv.channels - c0)
        if channels != last:
            column_offsets(&conv.window, &conv.walk, channels, column)
            last = channels
        if not conv.in_place:
            fill_window(window, &conv.window, &conv.walk, &box, source + c0 * conv.x.channel, &conv.x,
                        outputs if conv.blocks.channelwise else channels)
        elif scalar is compute:
            seen = source + window_offset(&box, &conv.walk, &conv.x) + c0 * conv.x.channel
        add_products(
            c, &box, positions, o0, outputs, channels, seen,
            packed + c0 * conv.taps * c.filter_outputs + o0 * conv.taps * channels, position, column, sums, sums_row,
            c0 == 0,
        )
        c0 += channels
    if compute is not int:
        if conv.padded and any_nan(sums, rows, columns, sums_row):
            repair(c, &box, o0, outputs, source, filter, sums, sums_w, sums_h, sums_o)
    if direct:
        return
    for n in range(box.count[0]):
        for d in range(box.count[1]):
            for h in range(box.count[2]):
                store_block(
                    target + target_offset(&conv.y, &conv.walk, box.begin[0] + n, box.begin[1] + d, box.begin[2] + h,
                                           box.begin[3]),
                    conv.walk.axis[2].target_step * conv.y.axis[2], conv.y.channel,
                    sums + row * sums_h, sums_w, sums_o, box.count[3], outputs,
                )
                row += 1


cdef inline int correlate_steps(
    const scalar[:, :, :, :, :, :] source, const scalar[:, :, :, :, :, :] filter, scalar[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array, compute kind,
) except -1:
    cdef Correlation c
    cdef const Blocks *blocks = <const Blocks *>&block_array[0]
    cdef int64_t i, tasks, task, rest, most_depth = 0, most_filter = 0, most_scratch = 0, tables_size
    cdef int threads = <int>blocks.threads
    cdef void *memory = NULL
    cdef int32_t *tables
    cdef int32_t *filter_rows
    cdef int32_t *filter_line
    cdef compute *packed
    cdef char *scratch
    cdef const scalar *x = &source[0, 0, 0, 0, 0, 0]
    cdef const scalar *w = &filter[0, 0, 0, 0, 0, 0]
    cdef scalar *y = &target[0, 0, 0, 0, 0, 0]
    try:
        # All memory for all steps comes first: where there is too little, nothing has been written.
        for i in range(step_array.shape[0]):
            describe_correlation(&c, source, filter, target, <const Step *>&step_array[i, 0], blocks, kind)
            most_depth = max(most_depth, c.conv.taps * blocks.chunk)
            most_filter = max(most_filter, in_lines(c.conv.groups * c.filter_size * sizeof(compute)))
            most_scratch = max(most_scratch, threads * c.scratch)
        tables_size = in_lines((3 * most_depth + 2 * blocks.outputs) * sizeof(int32_t))
        memory = allocate(tables_size, most_filter, most_scratch)
        tables = <int32_t *>first_line(memory)
        packed = <compute *>(first_line(memory) + tables_size)
        scratch = first_line(memory) + tables_size + most_filter
        multiples(tables, 1 if blocks.positions_across else strip_width(kind), most_depth)
        filter_rows = tables + most_depth
        filter_line = filter_rows + 2 * blocks.outputs
        for i in range(step_array.shape[0]):
            if step_array.shape[0] > 1:
                describe_correlation(&c, source, filter, target, <const Step *>&step_array[i, 0], blocks, kind)
            c.filter_depth = tables
            c.filter_rows, c.last_filter_rows = filter_rows, filter_rows + blocks.outputs
            c.filter_line, c.last_filter_line = filter_line, filter_line + most_depth
            rest = c.conv.channels % blocks.chunk
            multiples(filter_rows, c.conv.taps * blocks.chunk, blocks.outputs)
            multiples(filter_rows + blocks.outputs, c.conv.taps * rest, blocks.outputs)
            transposed_multiples(filter_line, strip_width(kind), blocks.chunk, c.conv.taps)
            transposed_multiples(filter_line + most_depth, strip_width(kind), rest, c.conv.taps)
            tasks = c.conv.groups * c.filter_strips
            if threads == 1:  # a team of one would cost a system call
                with nogil:
                    for task in range(tasks):
                        pack_filter(&c, w, packed, task)
            else:
                for task in prange(tasks, schedule="dynamic", num_threads=threads, nogil=True):
                    pack_filter(&c, w, packed, task)
            tasks = c.conv.groups * c.conv.box_count * c.conv.output_blocks
            if threads == 1:
                with nogil:
                    for task in range(tasks):
                        correlate_block(&c, x, w, y, packed, scratch, task)
            else:
                for task in prange(tasks, schedule="dynamic", num_threads=threads, nogil=True):
                    correlate_block(&c, x, w, y, packed, scratch + threadid() * c.scratch, task)
    finally:
        free(memory)
    return 0
