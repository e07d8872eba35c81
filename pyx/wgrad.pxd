"""wgrad: filter(o, t, c) = sum over positions p of source(p, t, c) * target(p, o).

A block is all taps of a chunk of input channels, by a block of output channels: rows of a tile are (t, c), columns o,
and the depth is the positions of one box after the other. Where there are few blocks, each slice of the boxes is a task
of its own, and the slices are added in order.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from blocks cimport Blocks, Step, allocate, count_blocks, in_lines, multiples, padded_row, window_of
from copy cimport load_block, store_block
from exact cimport any_nan, is_padded, position_sum
from problem cimport conv_walk
from scalar cimport compute, scalar
from tensor cimport Tensor, count_taps, describe_filter, describe_tensor, filter_offset, target_offset
from ukernel cimport multiply_strip, strip_width, whole_strips
from window cimport (
    Box, Window, column_offsets, count_boxes, fill_window, find_box, is_in_place, lay_out, lay_over, position_offsets,
    window_offset,
)

cdef struct Accumulation:
    conv_walk walk
    Blocks blocks
    Window window
    Tensor x, w, y  # source, filter, target
    int64_t batch, groups, channels, outputs, taps
    int64_t boxes[4]
    int64_t box_count, chunk_blocks, output_blocks
    int64_t row  # elements between rows of sums
    int64_t box_positions
    int64_t window_size, panel_size, sums_size, scratch  # of one thread: elements, and bytes in all
    bint padded
    bint in_place  # the source is its own window
    const int32_t *panel_depth  # multiples of the strip's width

cdef struct Part:  # of the filter of group g: output channels o0 .. , input channels c0 ..
    int64_t g, o0, outputs, c0, channels


cdef inline void part_of(const Accumulation *c, int64_t block, Part *part) noexcept nogil:
    part.o0 = block % c.output_blocks * c.blocks.outputs
    part.outputs = min(c.blocks.outputs, c.outputs - part.o0)
    part.c0 = block // c.output_blocks % c.chunk_blocks * c.blocks.chunk
    part.channels = min(c.blocks.chunk, c.channels - part.c0)
    part.g = block // (c.output_blocks * c.chunk_blocks)


cdef inline void pack_target(
    const Accumulation *c, const Box *box, const scalar *target, int64_t outputs, int64_t positions, compute *panel
) noexcept nogil:
    """Strips of output channels: panel[strip][p][o]; the last one filled up with zeros."""
    cdef int64_t j = 0, n, d, h, row, count, width = strip_width(panel[0])
    while j < outputs:
        count = min(width, outputs - j)
        if count < width:
            memset(panel, 0, positions * width * sizeof(compute))
        row = 0
        for n in range(box.count[0]):
            for d in range(box.count[1]):
                for h in range(box.count[2]):
                    load_block(
                        panel + row * box.count[3] * width, width, 1,
                        target + target_offset(&c.y, &c.walk, box.begin[0] + n, box.begin[1] + d, box.begin[2] + h,
                                               box.begin[3]) + j * c.y.channel,
                        c.walk.axis[2].target_step * c.y.axis[2], c.y.channel, box.count[3], count,
                    )
                    row += 1
        panel += positions * width
        j += width


cdef inline void accumulate(
    const Accumulation *c, const Part *part, const scalar *source, const scalar *target, compute *sums, char *scratch,
    int64_t slice,
) noexcept nogil:
    """sums = the products of a part over one slice of the boxes."""
    cdef int64_t positions, j, box_index, first_box, rows = c.taps * part.channels, width = strip_width(sums[0])
    cdef Box box
    cdef compute *window = <compute *>scratch
    cdef const compute *seen = window
    cdef compute *panel = window + c.window_size
    cdef int32_t *position = <int32_t *>(panel + c.panel_size + c.sums_size)
    cdef int32_t *column = position + c.box_positions
    source += part.g * c.x.group + (part.o0 if c.blocks.channelwise else part.c0) * c.x.channel
    target += part.g * c.y.group + part.o0 * c.y.channel
    column_offsets(&c.window, &c.walk, part.channels, column)
    first_box = c.box_count * slice // c.blocks.slices
    if c.box_count == 0:
        memset(sums, 0, rows * c.row * sizeof(compute))
    for box_index in range(first_box, c.box_count * (slice + 1) // c.blocks.slices):
        positions = find_box(&box, &c.window, &c.walk, c.batch, c.boxes, box_index)
        position_offsets(&c.window, &box, position)
        if not c.in_place:
            fill_window(window, &c.window, &c.walk, &box, source, &c.x,
                        part.outputs if c.blocks.channelwise else part.channels)
        elif scalar is compute:
            seen = source + window_offset(&box, &c.walk, &c.x)
        pack_target(c, &box, target, part.outputs, positions, panel)
        j = 0
        while j < part.outputs:
            multiply_strip(c.blocks.channelwise, rows, min(width, part.outputs - j), positions,
                           seen + (j if c.blocks.channelwise else 0), column, position,
                           panel + j * positions, c.panel_depth, sums + j, c.row, box_index == first_box)
            j += width


cdef inline void finish(
    const Accumulation *c, const Part *part, const scalar *source, scalar *filter, const scalar *target, compute *sums
) noexcept nogil:
    """Add the slices of a part in order and store it."""
    cdef int64_t slice, i, t, q, o, rows = c.taps * part.channels
    source += part.g * c.x.group + (part.o0 if c.blocks.channelwise else part.c0) * c.x.channel
    target += part.g * c.y.group + part.o0 * c.y.channel
    filter += part.g * c.w.group + part.o0 * c.w.batch + part.c0 * c.w.channel
    for slice in range(1, c.blocks.slices):
        for i in range(rows * c.row):
            sums[i] += sums[slice * c.sums_size + i]
    if compute is not int:
        if c.padded and any_nan(sums, rows, part.outputs, c.row):
            for q in range(rows):
                for o in range(part.outputs):
                    if sums[q * c.row + o] != sums[q * c.row + o]:
                        sums[q * c.row + o] = position_sum(
                            &c.walk, source + (o if c.blocks.channelwise else q % part.channels) * c.x.channel, &c.x,
                            q // part.channels,
                            target + o * c.y.channel, &c.y, c.batch, sums[0],
                        )
    for t in range(c.taps):
        store_block(filter + filter_offset(&c.w, &c.walk, t), c.w.batch, c.w.channel,
                    sums + t * part.channels * c.row, 1, c.row, part.outputs, part.channels)


cdef inline void wgrad_task(
    const Accumulation *c, const scalar *source, scalar *filter, const scalar *target, compute *partial, char *scratch,
    int64_t task,
) noexcept nogil:
    """One slice of a part; the whole of it, stored as well, where there is one slice."""
    cdef compute *sums = partial + task * c.sums_size
    cdef Part part
    part_of(c, task // c.blocks.slices, &part)
    if c.blocks.slices == 1:
        sums = <compute *>scratch + c.window_size + c.panel_size
    accumulate(c, &part, source, target, sums, scratch, task % c.blocks.slices)
    if c.blocks.slices == 1:
        finish(c, &part, source, filter, target, sums)


cdef inline void finish_task(
    const Accumulation *c, const scalar *source, scalar *filter, const scalar *target, compute *partial, int64_t block
) noexcept nogil:
    cdef Part part
    part_of(c, block, &part)
    finish(c, &part, source, filter, target, partial + block * c.blocks.slices * c.sums_size)


cdef inline int wgrad_step(
    const scalar[:, :, :, :, :, :] source, scalar[:, :, :, :, :, :] filter, const scalar[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array, compute kind,
) except -1:
    cdef Accumulation c
    cdef const Step *step = <const Step *>&step_array[0, 0]
    cdef const Blocks *blocks = <const Blocks *>&block_array[0]
    cdef int64_t block_count, tasks, task
    cdef int threads = <int>blocks.threads
    cdef int32_t *table = NULL
    cdef compute *partial = NULL
    cdef char *scratch = NULL
    cdef const scalar *x = &source[0, 0, 0, 0, 0, 0]
    cdef scalar *w = &filter[0, 0, 0, 0, 0, 0]
    cdef const scalar *y = &target[0, 0, 0, 0, 0, 0]
    c.walk = step.walk
    c.blocks = blocks[0]
    describe_tensor(&c.x, source.strides, sizeof(scalar))
    describe_filter(&c.w, filter.strides, sizeof(scalar))
    describe_tensor(&c.y, target.strides, sizeof(scalar))
    c.batch, c.groups, c.channels, c.outputs = source.shape[0], source.shape[1], filter.shape[2], filter.shape[1]
    c.taps = count_taps(&c.walk)
    c.padded = is_padded(&c.walk)
    window_of(&c.window, blocks, step)
    c.window_size = lay_out(&c.window, True) + strip_width(kind)
    c.in_place = False
    if scalar is compute:  # a vector of channels is read whole, and beyond the last one there may be no memory
        c.in_place = not blocks.channelwise and is_in_place(&c.window, &c.walk, &c.x, False, sizeof(scalar))
    if c.in_place:
        c.window_size = 0
        lay_over(&c.window, &c.walk, &c.x)
    c.box_count = count_boxes(&c.window, &c.walk, c.batch, c.boxes)
    c.chunk_blocks = count_blocks(c.channels, blocks.chunk)
    c.output_blocks = count_blocks(c.outputs, blocks.outputs)
    c.row = padded_row(blocks.outputs, kind)
    c.box_positions = blocks.images * step.axis[0].positions * step.axis[1].positions * step.axis[2].positions
    c.window_size = in_lines(c.window_size * sizeof(compute)) // sizeof(compute)
    c.panel_size = c.box_positions * whole_strips(blocks.outputs, kind)
    c.sums_size = in_lines(c.taps * blocks.chunk * c.row * sizeof(compute)) // sizeof(compute)
    c.scratch = (c.window_size + c.panel_size + c.sums_size) * sizeof(compute)
    c.scratch += in_lines((c.box_positions + c.taps * blocks.chunk) * sizeof(int32_t))
    try:
        table = <int32_t *>allocate(c.box_positions * sizeof(int32_t))
        multiples(table, strip_width(kind), c.box_positions)
        c.panel_depth = table
        block_count = c.groups * c.chunk_blocks * c.output_blocks
        tasks = block_count * blocks.slices
        if blocks.slices > 1:
            partial = <compute *>allocate(tasks * c.sums_size * sizeof(compute))
        scratch = <char *>allocate(threads * c.scratch)
        for task in prange(tasks, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1, nogil=True):
            wgrad_task(&c, x, w, y, partial, scratch + threadid() * c.scratch, task)
        if blocks.slices > 1:
            tasks = block_count
            for task in prange(tasks, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1, nogil=True):
                finish_task(&c, x, w, y, partial, task)
    finally:
        free(table)
        free(partial)
        free(scratch)
    return 0
