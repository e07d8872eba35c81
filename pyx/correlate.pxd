"""fprop and dgrad: target(p, o) = sum over taps t and channels c of source(p, t, c) * filter(o, t, c).

The filter is packed once, for all boxes of positions, or, where it is large and the boxes are few, by each task. A task
is a box and a block of output channels; chunk after chunk of the channels it fills the box's window and adds the
products to its sums, and in the end it stores them.

                        rows of a tile      columns of a tile
    channels across     positions           output channels
    positions across    output channels     positions of a row
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from blocks cimport Blocks, Step, allocate, first_line, in_lines
from convolution cimport Convolution
from copy cimport store_block, words_of
from correlation cimport (
    Correlation, describe_correlation, filter_tables_size, holds_vectors, make_filter_tables, pack_chunk,
    pack_filter, takes_rows, takes_sums,
)
from exact cimport any_nan, filter_sum
from scalar cimport compute, scalar
from stream cimport end_stream, holds_lines, stream_lines
from tasks cimport share_tasks, take_task, task_range
from tensor cimport target_offset
from ukernel cimport PAIRS, SCALARS, multiply_strip, strip_width, whole_vectors
from window cimport Box, column_offsets, fill_window, find_box, position_offsets, window_offset

cdef inline int64_t row_offset(const Correlation *c, const Box *box, int64_t row) noexcept nogil:
    """Where a row of a box's positions is in the target, counted from the first."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t h = row % box.count[2], d = row // box.count[2]
    return (d // box.count[1] * conv.y.batch + d % box.count[1] * conv.walk.axis[0].target_step * conv.y.axis[0]
            + h * conv.walk.axis[1].target_step * conv.y.axis[1])


cdef struct Part:  # of the depth: a chunk of channels under all taps
    int64_t begin, channels


cdef inline const compute *find_strip(
    const Correlation *c, const scalar *filter, const compute *packed, compute *bank, const Part *part, int64_t outputs,
    const int32_t **lines,
) noexcept nogil:
    """A strip of a chunk's filter, and where its lines are: packed before, as it is in the filter, or packed now."""
    cdef const Convolution *conv = &c.conv
    lines[0] = c.filter_depth
    if not conv.blocks.packs:
        return packed
    if c.strips_in_place and holds_vectors(c, outputs, conv.channels - part.begin - part.channels, bank[0]):
        lines[0] = c.filter_place if part.channels == conv.blocks.chunk else c.last_filter_place
        return <const compute *>filter
    pack_chunk(c, filter, bank, outputs, part.channels)
    return bank


cdef inline void add_products(
    const Correlation *c, const Box *box, int64_t positions, int64_t outputs, const Part *part, const compute *window,
    const scalar *filter, const compute *packed, compute *bank, const int32_t *position, const int32_t *column,
    compute *sums, int64_t sums_row, bint by_rows,
) noexcept nogil:
    """sums += the products of a chunk of channels, or = those of the first one.

    ``filter`` and ``packed`` are the chunk's from the block's first output channel on. ``by_rows``: each row of
    positions has its sums where it is in the target, counted from the box's first.
    """
    cdef const Convolution *conv = &c.conv
    cdef int64_t words = conv.taps * words_of(part.channels, conv.blocks.pairs)
    cdef int64_t depth = conv.taps * part.channels, j = 0, r, w, width = strip_width(sums[0]), row = box.count[3]
    cdef int64_t sums_h = whole_vectors(row, sums[0]), columns
    cdef const int32_t *lines
    cdef const compute *strip
    if not conv.blocks.positions_across:
        while j < outputs:
            columns = min(width, outputs - j)
            strip = find_strip(c, filter + j * conv.w.batch, packed + j * depth, bank, part, columns, &lines)
            for r in range(positions // row if by_rows else 1):
                multiply_strip(PAIRS if conv.blocks.pairs else SCALARS, row if by_rows else positions, columns, words,
                               window, position + r * row, column, strip, lines,
                               sums + (row_offset(c, box, r) if by_rows else 0) + j, sums_row, part.begin == 0)
            j += width
        return
    lines = c.filter_rows if part.channels == conv.blocks.chunk else c.last_filter_rows
    for r in range(positions // row):
        w = 0
        while w < row:
            multiply_strip(SCALARS, outputs, min(width, row - w), depth, packed, lines, c.filter_depth,
                           window + position[r * row + w], column, sums + r * sums_h + w, sums_row, part.begin == 0)
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
                                sum[0] = filter_sum(&conv.walk, source, &conv.x, position,
                                                    filter + (o0 + o) * conv.w.batch, &conv.w, conv.channels, sum[0])
                    row += 1


cdef inline void correlate_block(
    const Correlation *c, const scalar *source, const scalar *filter, scalar *target, const compute *packed,
    char *scratch, int64_t task,
) noexcept nogil:
    cdef const Convolution *conv = &c.conv
    # Groups inside boxes: of channels last, groups are neighbours in memory.
    cdef int64_t g = task // conv.output_blocks % conv.groups, o0 = task % conv.output_blocks * conv.blocks.outputs
    cdef int64_t outputs = min(conv.blocks.outputs, conv.outputs - o0), channels, words
    cdef int64_t n, d, h, w, place, row = 0
    cdef int64_t positions, rows, columns, sums_w, sums_h, sums_o, sums_row = c.row
    cdef bint direct = False, by_rows = False, streamed = False
    cdef Box box
    cdef Part part
    cdef compute *window = <compute *>scratch
    cdef const compute *seen = window
    cdef compute *sums = window + conv.window_size
    cdef compute *bank = sums + c.sums_size
    cdef int32_t *position = <int32_t *>(bank + c.bank_size)
    cdef int32_t *column = position + conv.box_positions
    positions = find_box(&box, &conv.window, &conv.walk, conv.batch, conv.boxes,
                         task // (conv.output_blocks * conv.groups))
    source += g * conv.x.group
    filter += g * conv.w.group
    target += g * conv.y.group + o0 * conv.y.channel
    packed += g * c.filter_size
    if scalar is compute:
        streamed = (conv.blocks.streams and not conv.blocks.positions_across and conv.y.channel == 1
                    and holds_lines(&conv.y, target, outputs))
        direct = not streamed and takes_sums(c, &box, outputs, sums[0])
        # NaN is sought among sums that are evenly spaced.
        by_rows = (not streamed and not direct and takes_rows(c, &box, outputs, sums[0])
                   and not (conv.padded and c.nonfinite[0]))
        direct = direct or by_rows
        if direct:
            sums = target + target_offset(&conv.y, &conv.walk, box.begin[0], box.begin[1], box.begin[2], box.begin[3])
            sums_row = conv.walk.axis[2].target_step * conv.y.axis[2]
            if conv.blocks.positions_across:
                sums_row = conv.y.channel
    position_offsets(&conv.window, &box, position)
    if conv.blocks.positions_across:
        sums_w, sums_h, sums_o = 1, whole_vectors(box.count[3], sums[0]), sums_row
        rows, columns = outputs, positions // box.count[3] * sums_h
    else:
        sums_w, sums_h, sums_o = sums_row, sums_row * box.count[3], 1
        rows, columns = positions, outputs
    if conv.channels == 0 or conv.taps == 0:
        memset(sums, 0, rows * sums_row * sizeof(compute))
    part.begin, part.channels = 0, 0
    while part.begin < conv.channels and conv.taps:
        channels = min(conv.blocks.chunk, conv.channels - part.begin)
        if channels != part.channels:
            words = words_of(channels, conv.blocks.pairs)
            column_offsets(&conv.window, &conv.walk, words, words, 1, column)
            part.channels = channels
        if not conv.in_place:
            fill_window(window, &conv.window, &conv.walk, &box, source + part.begin * conv.x.channel, &conv.x, channels)
        elif scalar is compute:
            seen = source + window_offset(&box, &conv.walk, &conv.x) + part.begin * conv.x.channel
        add_products(c, &box, positions, outputs, &part, seen,
                     filter + o0 * conv.w.batch + part.begin * conv.w.channel,
                     packed + (part.begin * c.filter_outputs + o0 * part.channels) * conv.taps, bank, position, column,
                     sums, sums_row, by_rows)
        part.begin += part.channels
    if compute is not int:
        if conv.padded and c.nonfinite[0] and any_nan(sums, rows, columns, sums_row):
            repair(c, &box, o0, outputs, source, filter, sums, sums_w, sums_h, sums_o)
    if direct:
        return
    for n in range(box.count[0]):
        for d in range(box.count[1]):
            for h in range(box.count[2]):
                place = target_offset(&conv.y, &conv.walk, box.begin[0] + n, box.begin[1] + d, box.begin[2] + h,
                                      box.begin[3])
                if streamed:
                    for w in range(box.count[3]):
                        stream_lines(target + place + w * conv.walk.axis[2].target_step * conv.y.axis[2],
                                     sums + row * sums_h + w * sums_w, outputs * sizeof(compute))
                else:
                    store_block(target + place, conv.walk.axis[2].target_step * conv.y.axis[2], conv.y.channel,
                                sums + row * sums_h, sums_w, sums_o, box.count[3], outputs)
                row += 1
    if streamed:
        end_stream()


cdef inline const Correlation *step_of(
    const Correlation *steps, int64_t count, bint packing, int64_t task
) noexcept nogil:
    """The step that a task belongs to: the last one that begins at it or before it."""
    cdef int64_t low = 0, high = count, middle
    while high - low > 1:
        middle = (low + high) // 2
        if (steps[middle].first_pack if packing else steps[middle].first_task) <= task:
            low = middle
        else:
            high = middle
    return steps + low


cdef inline void run_tasks(
    const Correlation *steps, int64_t count, bint packing, const scalar *source, const scalar *filter, scalar *target,
    compute *packed, char *scratch, task_range *ranges, int threads, int thread,
) noexcept nogil:
    """Pack strips of the filter, or compute blocks, until none is left."""
    cdef const Correlation *c
    cdef int64_t task = take_task(ranges, threads, thread)
    while task >= 0:
        c = step_of(steps, count, packing, task)
        if packing:
            pack_filter(c, filter, packed + c.packed, task - c.first_pack)
        else:
            correlate_block(c, source, filter, target, packed + c.packed, scratch, task - c.first_task)
        task = take_task(ranges, threads, thread)


cdef inline int correlate_steps(
    const scalar[:, :, :, :, :, :] source, const scalar[:, :, :, :, :, :] filter, scalar[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array, compute kind,
) except -1:
    cdef const Blocks *blocks = <const Blocks *>&block_array[0]
    cdef int64_t i, count = step_array.shape[0], packed_size = 0, scratch_size = 0, tables_size = 0
    cdef int64_t turn, first, end, zeros, packs = 0, tasks = 0
    cdef int thread, threads = <int>blocks.threads
    cdef void *steps = NULL
    cdef void *memory = NULL
    cdef int32_t nonfinite = blocks.packs or blocks.pairs  # or seen when the filter is packed
    cdef Correlation *c
    cdef task_range *ranges
    cdef char *tables
    cdef compute *packed
    cdef char *scratch
    cdef const scalar *x = &source[0, 0, 0, 0, 0, 0]
    cdef const scalar *w = &filter[0, 0, 0, 0, 0, 0]
    cdef scalar *y = &target[0, 0, 0, 0, 0, 0]
    try:
        # All memory comes first: where there is too little, nothing has been written.
        steps = allocate(in_lines(count * sizeof(Correlation)), threads * sizeof(task_range), 0)
        c = <Correlation *>first_line(steps)
        ranges = <task_range *>(first_line(steps) + in_lines(count * sizeof(Correlation)))
        for i in range(count):
            describe_correlation(c + i, source, filter, target, <const Step *>&step_array[i, 0], blocks, kind)
            c[i].nonfinite = &nonfinite
            c[i].first_pack, c[i].first_task, c[i].packed = packs, tasks, packed_size
            packs += 0 if blocks.packs else c[i].conv.groups * c[i].filter_strips
            tasks += c[i].conv.groups * c[i].conv.box_count * c[i].conv.output_blocks
            packed_size += in_lines(c[i].conv.groups * c[i].filter_size * sizeof(compute)) // sizeof(compute)
            scratch_size = max(scratch_size, c[i].scratch)
            tables_size += filter_tables_size(c + i)
        memory = allocate(tables_size, packed_size * sizeof(compute), threads * scratch_size)
        tables = first_line(memory)
        packed = <compute *>(tables + tables_size)
        scratch = <char *>(packed + packed_size)
        for i in range(count):
            make_filter_tables(c + i, tables, kind)
            tables += filter_tables_size(c + i)
        # The filter is packed first. Then a first step without taps leaves zeros everywhere, before any sum.
        zeros = c[1].first_task if count > 1 and c.conv.taps == 0 else 0
        for turn in range(3):
            first, end = zeros if turn == 2 else 0, packs if turn == 0 else zeros if turn == 1 else tasks
            if first == end:
                continue
            share_tasks(ranges, threads, first, end)
            if threads == 1:  # a team of one would cost a system call
                with nogil:
                    run_tasks(c, count, turn == 0, x, w, y, packed, scratch, ranges, 1, 0)
            else:
                for thread in prange(threads, schedule="static", num_threads=threads, nogil=True):
                    run_tasks(c, count, turn == 0, x, w, y, packed, scratch + thread * scratch_size, ranges, threads,
                              thread)
    finally:
        free(steps)
        free(memory)
    return 0
