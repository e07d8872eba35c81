"""wgrad: filter(o, t, c) = sum over positions p of source(p, t, c) * target(p, o).

A block is all taps of a chunk of input channels, by a block of output channels: rows of a tile are (t, c), columns o,
and the depth is the positions of one box after the other. Where there are few blocks, each slice of the boxes is a task
of its own, and the slices are added in order.
"""

from cython.parallel cimport prange
from libc.stdint cimport INT32_MAX, int32_t, int64_t
from libc.stdlib cimport free, llabs
from libc.string cimport memset

from blocks cimport Blocks, Step, allocate, count_blocks, first_line, in_lines, multiples, padded_row
from convolution cimport Convolution, describe_convolution, tables_size
from copy cimport join_lines, load_block, store_block
from exact cimport any_nan, position_sum
from scalar cimport compute, scalar
from tasks cimport share_tasks, take_task, task_range
from tensor cimport filter_offset, target_offset
from ukernel cimport (
    PAIRS, SCALARS, TILE_VECTORS, VECTOR_BYTES, multiply_strip, strip_width, whole_strips, whole_vectors,
)
from window cimport Box, column_offsets, fill_window, find_box, position_offsets, window_offset

cdef struct Accumulation:
    Convolution conv
    int64_t chunk_blocks
    int64_t window_elements
    int64_t row  # elements between rows of sums
    int64_t panel_size, sums_size, scratch  # of one thread: elements, and bytes in all
    bint panel_in_place  # the target itself serves as the panel
    int32_t *panel_depth  # multiples of the strip's width

cdef struct Part:  # of the filter of group g: output channels o0 .. , input channels c0 ..
    int64_t g, o0, outputs, c0, channels


cdef inline void part_of(const Accumulation *c, int64_t block, Part *part) noexcept nogil:
    cdef const Convolution *conv = &c.conv
    part.o0 = block % conv.output_blocks * conv.blocks.outputs
    part.outputs = min(conv.blocks.outputs, conv.outputs - part.o0)
    part.c0 = block // conv.output_blocks % c.chunk_blocks * conv.blocks.chunk
    part.channels = min(conv.blocks.chunk, conv.channels - part.c0)
    part.g = block // (conv.output_blocks * c.chunk_blocks)


cdef inline int64_t row_lines(const Accumulation *c, const Box *box) noexcept nogil:
    """Lines of the panel for a row of positions: a whole number of pairs of them."""
    return box.count[3] + box.count[3] % 2 if c.conv.blocks.pairs else box.count[3]


cdef inline void pair_window(
    const Accumulation *c, compute *window, int32_t *position, int64_t *positions
) noexcept nogil:
    """Join each element with the one that the next position sees there; keep the offset of every second position."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t i, shift = conv.window.axis[2].step * conv.window.pitch[2]
    join_lines(window, window, window + shift, c.window_elements)
    for i in range(positions[0] // 2):
        position[i] = position[2 * i]
    positions[0] = positions[0] // 2


cdef inline void pack_target(
    const Accumulation *c, const Box *box, const scalar *target, int64_t outputs, int64_t positions, compute *panel
) noexcept nogil:
    """Strips of output channels: panel[strip][p][o]; the last one filled up with zeros.

    Where positions are paired, a row of an odd number of them has a line of zeros more.
    """
    cdef const Convolution *conv = &c.conv
    cdef int64_t j = 0, n, d, h, p, row, count, width = strip_width(panel[0]), lines = row_lines(c, box)
    while j < outputs:
        count = min(width, outputs - j)
        if count < width or lines > box.count[3]:
            memset(panel, 0, positions // box.count[3] * lines * width * sizeof(compute))
        row = 0
        for n in range(box.count[0]):
            for d in range(box.count[1]):
                for h in range(box.count[2]):
                    load_block(
                        panel + row * lines * width, width, 1,
                        target + j * conv.y.channel + target_offset(
                            &conv.y, &conv.walk, box.begin[0] + n, box.begin[1] + d, box.begin[2] + h, box.begin[3]),
                        conv.walk.axis[2].target_step * conv.y.axis[2], conv.y.channel, box.count[3], count,
                    )
                    row += 1
        if conv.blocks.pairs:
            for p in range(row * lines // 2):
                join_lines(panel + p * width, panel + 2 * p * width, panel + (2 * p + 1) * width, width)
        panel += row * lines * width
        j += width


cdef inline bint is_panel(const Accumulation *c, const Step *step, compute kind) noexcept nogil:
    """Whether the target can be read in the place of a panel, and that is faster.

    Whole vectors of channels are read, at offsets that must fit into 32 bits. A panel's lines are adjacent, which tiles
    gain from, the more of them read it, and the narrower it is: at most as many rows as a line has bytes do without.
    """
    cdef const Convolution *conv = &c.conv
    cdef int axis
    cdef int64_t reach = conv.blocks.images * llabs(conv.y.batch)
    for axis in range(3):
        reach += step.axis[axis].positions * conv.walk.axis[axis].target_step * llabs(conv.y.axis[axis])
    return (not conv.blocks.pairs and conv.y.channel == 1 and conv.outputs == whole_vectors(conv.outputs, kind)
            and conv.taps * conv.blocks.chunk <= TILE_VECTORS * VECTOR_BYTES and reach < INT32_MAX)


cdef inline void target_offsets(const Accumulation *c, const Box *box, int32_t *offsets) noexcept nogil:
    """Where the positions of a box are in the target, from its first one on."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t i = 0, n, d, h, w
    for n in range(box.count[0]):
        for d in range(box.count[1]):
            for h in range(box.count[2]):
                for w in range(box.count[3]):
                    offsets[i] = <int32_t>(target_offset(&conv.y, &conv.walk, n, d, h, w)
                                           - target_offset(&conv.y, &conv.walk, 0, 0, 0, 0))
                    i += 1


cdef inline void accumulate(
    const Accumulation *c, const Part *part, const scalar *source, const scalar *target, compute *sums, char *scratch,
    int64_t slice,
) noexcept nogil:
    """sums = the products of a part over one slice of the boxes."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t positions, depth, j, box_index, first_box, rows = conv.taps * part.channels
    cdef int64_t width = strip_width(sums[0]), strip_size
    cdef Box box
    cdef Box seen_box  # with the positions that fill up pairs
    cdef compute *window = <compute *>scratch
    cdef const compute *seen = window
    cdef compute *panel = window + conv.window_size
    cdef int32_t *position = <int32_t *>(panel + c.panel_size + c.sums_size)
    cdef int32_t *column = position + conv.box_positions
    cdef int32_t *line = column + conv.taps * conv.blocks.chunk
    cdef const int32_t *lines = line if c.panel_in_place else c.panel_depth
    cdef const compute *taken = panel
    source += part.g * conv.x.group + part.c0 * conv.x.channel
    target += part.g * conv.y.group + part.o0 * conv.y.channel
    column_offsets(&conv.window, &conv.walk, part.channels, column)
    first_box = conv.box_count * slice // conv.blocks.slices
    if conv.box_count == 0:
        memset(sums, 0, rows * c.row * sizeof(compute))
    for box_index in range(first_box, conv.box_count * (slice + 1) // conv.blocks.slices):
        positions = find_box(&box, &conv.window, &conv.walk, conv.batch, conv.boxes, box_index)
        seen_box = box
        seen_box.count[3] = row_lines(c, &box)
        depth = positions // box.count[3] * seen_box.count[3]
        position_offsets(&conv.window, &seen_box, position)
        if not conv.in_place:
            fill_window(window, &conv.window, &conv.walk, &seen_box, source, &conv.x, part.channels)
        elif scalar is compute:
            seen = source + window_offset(&box, &conv.walk, &conv.x)
        strip_size = depth * width
        if not c.panel_in_place:
            pack_target(c, &box, target, part.outputs, positions, panel)
        elif scalar is compute:
            target_offsets(c, &box, line)
            strip_size = width
            taken = target + target_offset(&conv.y, &conv.walk, box.begin[0], box.begin[1], box.begin[2], box.begin[3])
        if conv.blocks.pairs:
            pair_window(c, window, position, &depth)
        j = 0
        while j < part.outputs:
            multiply_strip(PAIRS if conv.blocks.pairs else SCALARS, rows, min(width, part.outputs - j), depth, seen,
                           column, position,
                           taken + j // width * strip_size, lines, sums + j, c.row, box_index == first_box)
            j += width


cdef inline void finish(
    const Accumulation *c, const Part *part, const scalar *source, scalar *filter, const scalar *target, compute *sums
) noexcept nogil:
    """Add the slices of a part in order and store it."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t slice, i, t, q, o, rows = conv.taps * part.channels
    source += part.g * conv.x.group + part.c0 * conv.x.channel
    target += part.g * conv.y.group + part.o0 * conv.y.channel
    filter += part.g * conv.w.group + part.o0 * conv.w.batch + part.c0 * conv.w.channel
    for slice in range(1, conv.blocks.slices):
        for i in range(rows * c.row):
            sums[i] += sums[slice * c.sums_size + i]
    if compute is not int:
        if conv.padded and any_nan(sums, rows, part.outputs, c.row):
            for q in range(rows):
                for o in range(part.outputs):
                    if sums[q * c.row + o] != sums[q * c.row + o]:
                        sums[q * c.row + o] = position_sum(
                            &conv.walk, source + q % part.channels * conv.x.channel,
                            &conv.x, q // part.channels,
                            target + o * conv.y.channel, &conv.y, conv.batch, sums[0],
                        )
    for t in range(conv.taps):
        store_block(filter + filter_offset(&conv.w, &conv.walk, t), conv.w.batch, conv.w.channel,
                    sums + t * part.channels * c.row, 1, c.row, part.outputs, part.channels)


cdef inline void wgrad_task(
    const Accumulation *c, const scalar *source, scalar *filter, const scalar *target, compute *partial, char *scratch,
    int64_t task,
) noexcept nogil:
    """One slice of a part; the whole of it, stored as well, where there is one slice."""
    cdef const Convolution *conv = &c.conv
    cdef compute *sums = partial + task * c.sums_size
    cdef Part part
    part_of(c, task // conv.blocks.slices, &part)
    if conv.blocks.slices == 1:
        sums = <compute *>scratch + conv.window_size + c.panel_size
    accumulate(c, &part, source, target, sums, scratch, task % conv.blocks.slices)
    if conv.blocks.slices == 1:
        finish(c, &part, source, filter, target, sums)


cdef inline void finish_task(
    const Accumulation *c, const scalar *source, scalar *filter, const scalar *target, compute *partial, int64_t block
) noexcept nogil:
    cdef const Convolution *conv = &c.conv
    cdef Part part
    part_of(c, block, &part)
    finish(c, &part, source, filter, target, partial + block * conv.blocks.slices * c.sums_size)


cdef inline void wgrad_tasks(
    const Accumulation *c, const scalar *source, scalar *filter, const scalar *target, compute *partial, char *scratch,
    bint finishing, task_range *ranges, int threads, int thread,
) noexcept nogil:
    cdef int64_t task = take_task(ranges, threads, thread)
    while task >= 0:
        if finishing:
            finish_task(c, source, filter, target, partial, task)
        else:
            wgrad_task(c, source, filter, target, partial, scratch, task)
        task = take_task(ranges, threads, thread)


cdef inline int wgrad_step(
    const scalar[:, :, :, :, :, :] source, scalar[:, :, :, :, :, :] filter, const scalar[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array, compute kind,
) except -1:
    cdef Accumulation c
    cdef const Step *step = <const Step *>&step_array[0, 0]
    cdef const Blocks *blocks = <const Blocks *>&block_array[0]
    cdef int64_t block_count, tasks, table_size, ranges_size, shift, row, partial_size = 0
    cdef int thread, turn, threads = <int>blocks.threads
    cdef void *memory = NULL
    cdef task_range *ranges
    cdef compute *partial
    cdef char *scratch
    cdef const scalar *x = &source[0, 0, 0, 0, 0, 0]
    cdef scalar *w = &filter[0, 0, 0, 0, 0, 0]
    cdef const scalar *y = &target[0, 0, 0, 0, 0, 0]
    describe_convolution(&c.conv, source, filter, target, step, blocks, True, kind)
    c.window_elements = c.conv.window.batch_pitch * c.conv.window.images
    if blocks.pairs:
        shift = c.conv.window.axis[2].step * c.conv.window.pitch[2]
        c.conv.window_size += in_lines(shift * sizeof(compute)) // sizeof(compute)
        row = step.axis[2].positions
        c.conv.box_positions = c.conv.box_positions // row * (row + row % 2)
        c.conv.padded = True  # what fills up a pair may be infinite, and is multiplied by zero
    c.chunk_blocks = count_blocks(c.conv.channels, blocks.chunk)
    c.row = padded_row(blocks.outputs, kind)
    c.panel_in_place = False
    if scalar is compute:
        c.panel_in_place = is_panel(&c, step, kind)
    c.panel_size = 0 if c.panel_in_place else c.conv.box_positions * whole_strips(blocks.outputs, kind)
    c.sums_size = in_lines(c.conv.taps * blocks.chunk * c.row * sizeof(compute)) // sizeof(compute)
    c.scratch = (c.conv.window_size + c.panel_size + c.sums_size) * sizeof(compute) + tables_size(&c.conv)
    if c.panel_in_place:
        c.scratch += in_lines(c.conv.box_positions * sizeof(int32_t))
    block_count = c.conv.groups * c.chunk_blocks * c.conv.output_blocks
    tasks = block_count * blocks.slices
    table_size = in_lines(c.conv.box_positions * sizeof(int32_t))
    ranges_size = in_lines(threads * sizeof(task_range))
    if blocks.slices > 1:
        partial_size = tasks * c.sums_size * sizeof(compute)
    try:
        memory = allocate(table_size + ranges_size, partial_size, threads * c.scratch)
        c.panel_depth = <int32_t *>first_line(memory)
        ranges = <task_range *>(first_line(memory) + table_size)
        partial = <compute *>(first_line(memory) + table_size + ranges_size)
        scratch = <char *>partial + partial_size
        multiples(c.panel_depth, strip_width(kind), c.conv.box_positions)
        for turn in range(2 if blocks.slices > 1 else 1):
            share_tasks(ranges, threads, 0, tasks if turn == 0 else block_count)
            if threads == 1:  # a team of one would cost a system call
                with nogil:
                    wgrad_tasks(&c, x, w, y, partial, scratch, turn == 1, ranges, 1, 0)
            else:
                for thread in prange(threads, schedule="static", num_threads=threads, nogil=True):
                    wgrad_tasks(&c, x, w, y, partial, scratch + thread * c.scratch, turn == 1, ranges, threads, thread)
    finally:
        free(memory)
    return 0
