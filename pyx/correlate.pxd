"""fprop and dgrad: target(p, o) = sum over taps t and channels c of source(p, t, c) * filter(o, t, c).

The filter is packed once, for all boxes of positions. A task is a box and a block of output channels; chunk after chunk
of the channels it fills the box's window and adds the products to its sums, and in the end it stores them.

                        rows of a tile      columns of a tile       packed filter
    channels across     positions           output channels         [chunk][strip of o][t][c][o]
    positions across    output channels     positions of a row      [chunk][o][t][c]
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from blocks cimport (
    Blocks, Step, allocate, count_blocks, in_lines, multiples, padded_row, transposed_multiples, window_of,
)
from copy cimport load_block, load_transposed, store_block
from exact cimport any_nan, filter_sum, is_padded
from problem cimport conv_walk
from scalar cimport compute, scalar
from tensor cimport Tensor, count_taps, describe_filter, describe_tensor, filter_offset, target_offset
from ukernel cimport multiply_strip, strip_width, whole_strips, whole_vectors
from window cimport (
    Box, Window, column_offsets, count_boxes, fill_window, find_box, lay_out, position_offsets,
)

cdef struct Correlation:
    conv_walk walk
    Blocks blocks
    Window window
    Tensor x, w, y  # source, filter, target
    int64_t batch, groups, channels, outputs, taps
    int64_t boxes[4]
    int64_t box_count, output_blocks
    int64_t filter_strips, filter_outputs, filter_size  # of the packed filter of a group; the last in elements
    int64_t most_rows, row  # of a block of sums; elements between its rows
    int64_t box_positions
    int64_t window_size, sums_size, scratch  # of one thread: elements, elements, bytes in all
    bint padded
    bint taps_adjacent  # in the filter: tap t is t elements from the first
    # Tables for a whole chunk of channels and for the last one:
    const int32_t *filter_rows  # multiples of its depth
    const int32_t *last_filter_rows
    const int32_t *filter_line  # where channel c and tap t, as number c * taps + t, are in a packed strip
    const int32_t *last_filter_line
    const int32_t *filter_depth  # multiples of the strip's width, or of one


cdef inline void pack_filter(const Correlation *c, const scalar *filter, compute *packed, int64_t task) noexcept nogil:
    """A strip of output channels of one group."""
    cdef int64_t g = task // c.filter_strips, o0 = task % c.filter_strips * strip_width(packed[0])
    cdef int64_t outputs = min(strip_width(packed[0]), c.outputs - o0), c0 = 0, channels, t, i, depth
    cdef int64_t width = strip_width(packed[0]), together
    cdef const int32_t *line
    cdef compute *to
    cdef const scalar *of
    filter += g * c.w.group + o0 * c.w.batch
    packed += g * c.filter_size
    while c0 < c.channels:
        channels = min(c.blocks.chunk, c.channels - c0)
        depth = c.taps * channels
        to = packed + c0 * c.taps * c.filter_outputs + o0 * depth
        of = filter + c0 * c.w.channel
        if not c.blocks.positions_across and outputs < width:
            memset(to, 0, depth * width * sizeof(compute))
        if c.blocks.positions_across:
            for t in range(c.taps):
                load_block(to + t * channels, depth, 1, of + filter_offset(&c.w, &c.walk, t), c.w.batch, c.w.channel,
                           outputs, channels)
        elif c.taps_adjacent:
            # Each output channel has its taps, or all (c, t), adjacent: transpose these many at once.
            line = c.filter_line if channels == c.blocks.chunk else c.last_filter_line
            together = channels if c.w.channel == c.taps else 1
            for i in range(channels // together):
                load_transposed(to + i * width, line, of + filter_offset(&c.w, &c.walk, 0) + i * c.w.channel, c.w.batch,
                                together * c.taps, outputs)
        else:
            for t in range(c.taps):
                load_block(to + t * channels * width, 1, width, of + filter_offset(&c.w, &c.walk, t), c.w.batch,
                           c.w.channel, outputs, channels)
        c0 += channels


cdef inline void add_products(
    const Correlation *c, const Box *box, int64_t positions, int64_t o0, int64_t outputs, int64_t channels,
    const compute *window, const compute *packed, const int32_t *position, const int32_t *column,
    compute *sums, int64_t sums_row, bint fresh,
) noexcept nogil:
    """sums += the products of a chunk of channels, or = those of the first one.

    ``packed`` is the chunk's filter from output channel o0 on.
    """
    cdef int64_t depth = c.taps * channels, j = 0, r, w, width = strip_width(sums[0]), row = box.count[3]
    cdef int64_t padded = whole_vectors(row, sums[0])
    if not c.blocks.positions_across:
        while j < outputs:
            multiply_strip(c.blocks.channelwise, positions, min(width, outputs - j), depth,
                           window + (j if c.blocks.channelwise else 0), position, column, packed + j * depth,
                           c.filter_depth, sums + j, sums_row, fresh)
            j += width
        return
    for r in range(positions // row):
        w = 0
        while w < row:
            multiply_strip(
                False, outputs, min(width, row - w), depth, packed,
                c.filter_rows if channels == c.blocks.chunk else c.last_filter_rows, c.filter_depth,
                window + position[r * row + w], column, sums + r * padded + w, sums_row, fresh,
            )
            w += width


cdef inline void repair(
    const Correlation *c, const Box *box, int64_t o0, int64_t outputs, const scalar *source, const scalar *filter,
    compute *sums, int64_t sums_w, int64_t sums_h, int64_t sums_o,
) noexcept nogil:
    """Form the sums again that are NaN."""
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
                                sum[0] = filter_sum(&c.walk, source + (o * c.x.channel if c.blocks.channelwise else 0),
                                                    &c.x, position,
                                                    filter + (o0 + o) * c.w.batch, &c.w, c.channels, sum[0])
                    row += 1


cdef inline bint takes_sums(const Correlation *c, const Box *box, int64_t outputs, compute kind) noexcept nogil:
    """Whether the target itself can hold the sums of a box: whole vectors of channels, positions evenly spaced."""
    cdef int axis
    cdef int64_t spaced = c.walk.axis[2].target_step * c.y.axis[2] * box.count[3]
    if c.y.channel != 1 or outputs != whole_vectors(outputs, kind):
        return False
    for axis in range(1, -1, -1):
        if box.count[1 + axis] > 1 and c.walk.axis[axis].target_step * c.y.axis[axis] != spaced:
            return False
        spaced *= box.count[1 + axis]
    return box.count[0] == 1 or c.y.batch == spaced


cdef inline void correlate_block(
    const Correlation *c, const scalar *source, const scalar *filter, scalar *target, const compute *packed,
    char *scratch, int64_t task,
) noexcept nogil:
    cdef int64_t g = task // (c.box_count * c.output_blocks), o0 = task % c.output_blocks * c.blocks.outputs
    cdef int64_t outputs = min(c.blocks.outputs, c.outputs - o0), c0 = 0, channels, last = 0, n, d, h, row = 0
    cdef int64_t positions, rows, columns, sums_w, sums_h, sums_o, sums_row = c.row
    cdef bint direct = False
    cdef Box box
    cdef compute *window = <compute *>scratch
    cdef compute *sums = window + c.window_size
    cdef int32_t *position = <int32_t *>(sums + c.sums_size)
    cdef int32_t *column = position + c.box_positions
    positions = find_box(&box, &c.window, &c.walk, c.batch, c.boxes, task // c.output_blocks % c.box_count)
    position_offsets(&c.window, &box, position)
    source += g * c.x.group
    filter += g * c.w.group
    target += g * c.y.group + o0 * c.y.channel
    packed += g * c.filter_size
    if c.blocks.channelwise:
        source += o0 * c.x.channel
    if scalar is compute:
        direct = not c.blocks.positions_across and c.channels and c.taps and takes_sums(c, &box, outputs, sums[0])
        if direct:
            sums = target + target_offset(&c.y, &c.walk, box.begin[0], box.begin[1], box.begin[2], box.begin[3])
            sums_row = c.walk.axis[2].target_step * c.y.axis[2]
    if c.blocks.positions_across:
        sums_w, sums_h, sums_o = 1, whole_vectors(box.count[3], sums[0]), sums_row
        rows, columns = outputs, positions // box.count[3] * sums_h
    else:
        sums_w, sums_h, sums_o = sums_row, sums_row * box.count[3], 1
        rows, columns = positions, outputs
    if c.channels == 0 or c.taps == 0:
        memset(sums, 0, rows * sums_row * sizeof(compute))
    while c0 < c.channels and c.taps:
        channels = min(c.blocks.chunk, c.channels - c0)
        if channels != last:
            column_offsets(&c.window, &c.walk, channels, column)
            last = channels
        fill_window(window, &c.window, &c.walk, &box, source + c0 * c.x.channel, &c.x,
                    outputs if c.blocks.channelwise else channels)
        add_products(
            c, &box, positions, o0, outputs, channels, window,
            packed + c0 * c.taps * c.filter_outputs + o0 * c.taps * channels, position, column, sums, sums_row,
            c0 == 0,
        )
        c0 += channels
    if compute is not int:
        if c.padded and any_nan(sums, rows, columns, sums_row):
            repair(c, &box, o0, outputs, source, filter, sums, sums_w, sums_h, sums_o)
    if direct:
        return
    for n in range(box.count[0]):
        for d in range(box.count[1]):
            for h in range(box.count[2]):
                store_block(
                    target + target_offset(&c.y, &c.walk, box.begin[0] + n, box.begin[1] + d, box.begin[2] + h,
                                           box.begin[3]),
                    c.walk.axis[2].target_step * c.y.axis[2], c.y.channel,
                    sums + row * sums_h, sums_w, sums_o, box.count[3], outputs,
                )
                row += 1


cdef inline void describe_correlation(
    Correlation *c, const scalar[:, :, :, :, :, :] source, const scalar[:, :, :, :, :, :] filter,
    const scalar[:, :, :, :, :, :] target, const Step *step, const Blocks *blocks, compute kind,
) noexcept nogil:
    """Everything about one walk but its memory and tables."""
    cdef int64_t rows_of_box, t
    c.walk = step.walk
    c.blocks = blocks[0]
    describe_tensor(&c.x, source.strides, sizeof(scalar))
    describe_filter(&c.w, filter.strides, sizeof(scalar))
    describe_tensor(&c.y, target.strides, sizeof(scalar))
    c.batch, c.groups, c.channels, c.outputs = source.shape[0], source.shape[1], filter.shape[2], filter.shape[1]
    c.taps = count_taps(&c.walk)
    c.padded = is_padded(&c.walk)
    window_of(&c.window, blocks, step)
    c.window_size = lay_out(&c.window, not blocks.positions_across) + strip_width(kind)
    c.box_count = count_boxes(&c.window, &c.walk, c.batch, c.boxes)
    c.output_blocks = count_blocks(c.outputs, blocks.outputs)
    c.filter_strips = count_blocks(c.outputs, strip_width(kind))
    c.filter_outputs = c.outputs if blocks.positions_across else whole_strips(c.outputs, kind)
    c.filter_size = c.channels * c.taps * c.filter_outputs
    c.taps_adjacent = c.w.batch != 1 and (c.taps > 1 or c.w.channel == 1)
    for t in range(c.taps):
        if filter_offset(&c.w, &c.walk, t) - filter_offset(&c.w, &c.walk, 0) != t:
            c.taps_adjacent = False
    rows_of_box = blocks.images * step.axis[0].positions * step.axis[1].positions
    c.box_positions = rows_of_box * step.axis[2].positions
    if blocks.positions_across:
        c.most_rows = blocks.outputs
        c.row = padded_row(rows_of_box * whole_vectors(step.axis[2].positions, kind), kind)
    else:
        c.most_rows = c.box_positions
        c.row = padded_row(blocks.outputs, kind)
    c.window_size = in_lines(c.window_size * sizeof(compute)) // sizeof(compute)
    c.sums_size = in_lines(c.most_rows * c.row * sizeof(compute)) // sizeof(compute)
    c.scratch = (c.window_size + c.sums_size) * sizeof(compute)
    c.scratch += in_lines((c.box_positions + c.taps * blocks.chunk) * sizeof(int32_t))


cdef inline int correlate_steps(
    const scalar[:, :, :, :, :, :] source, const scalar[:, :, :, :, :, :] filter, scalar[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array, compute kind,
) except -1:
    cdef Correlation c
    cdef const Blocks *blocks = <const Blocks *>&block_array[0]
    cdef int64_t i, tasks, task, rest, most_depth = 0, most_filter = 0, most_scratch = 0
    cdef int threads = <int>blocks.threads
    cdef int32_t *tables = NULL
    cdef int32_t *filter_rows
    cdef int32_t *filter_line
    cdef compute *packed = NULL
    cdef char *scratch = NULL
    cdef const scalar *x = &source[0, 0, 0, 0, 0, 0]
    cdef const scalar *w = &filter[0, 0, 0, 0, 0, 0]
    cdef scalar *y = &target[0, 0, 0, 0, 0, 0]
    try:
        # All memory for all steps comes first: where there is too little, nothing has been written.
        for i in range(step_array.shape[0]):
            describe_correlation(&c, source, filter, target, <const Step *>&step_array[i, 0], blocks, kind)
            most_depth = max(most_depth, c.taps * blocks.chunk)
            most_filter = max(most_filter, c.groups * c.filter_size)
            most_scratch = max(most_scratch, threads * c.scratch)
        tables = <int32_t *>allocate((3 * most_depth + 2 * blocks.outputs) * sizeof(int32_t))
        packed = <compute *>allocate(most_filter * sizeof(compute))
        scratch = <char *>allocate(most_scratch)
        multiples(tables, 1 if blocks.positions_across else strip_width(kind), most_depth)
        filter_rows = tables + most_depth
        filter_line = filter_rows + 2 * blocks.outputs
        for i in range(step_array.shape[0]):
            describe_correlation(&c, source, filter, target, <const Step *>&step_array[i, 0], blocks, kind)
            c.filter_depth = tables
            c.filter_rows, c.last_filter_rows = filter_rows, filter_rows + blocks.outputs
            c.filter_line, c.last_filter_line = filter_line, filter_line + most_depth
            rest = c.channels % blocks.chunk
            multiples(filter_rows, c.taps * blocks.chunk, blocks.outputs)
            multiples(filter_rows + blocks.outputs, c.taps * rest, blocks.outputs)
            transposed_multiples(filter_line, strip_width(kind), blocks.chunk, c.taps)
            transposed_multiples(filter_line + most_depth, strip_width(kind), rest, c.taps)
            tasks = c.groups * c.filter_strips
            for task in prange(tasks, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1, nogil=True):
                pack_filter(&c, w, packed, task)
            tasks = c.groups * c.box_count * c.output_blocks
            for task in prange(tasks, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1, nogil=True):
                correlate_block(&c, x, w, y, packed, scratch + threadid() * c.scratch, task)
    finally:
        free(tables)
        free(packed)
        free(scratch)
    return 0
