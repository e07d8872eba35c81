"""dgrad with a stride, all phases of a box of positions in one task: what they see is copied once, and their sums are
brought together as they lie in the target.

Tiles run across positions: sums are [phase][o][n][d][h][w]. Each combination of phases of the depth and the height has
neighbouring steps for those of the width, as many as the stride, and these make whole rows of the target.
"""

from libc.stdint cimport int32_t, int64_t

from blocks cimport in_lines
from convolution cimport tables_size
from copy cimport store_block
from correlation cimport Correlation
from exact cimport any_nan
from problem cimport conv_walk
from products cimport Part, add_products, repair
from scalar cimport compute, scalar
from tensor cimport target_offset
from ukernel cimport whole_vectors
from window cimport Box, Window, column_offsets, fill_window, find_box, position_offsets


cdef inline void join_boxes(Correlation *steps) noexcept nogil:
    """Give all phases the boxes of the longest one."""
    cdef int64_t i, phases = steps.conv.blocks.phases, boxes
    cdef int axis
    for axis in range(4):
        boxes = 0
        for i in range(phases):
            boxes = max(boxes, steps[i].conv.boxes[axis])
        for i in range(phases):
            steps[i].conv.boxes[axis] = boxes
    steps.conv.box_count = steps.conv.boxes[0] * steps.conv.boxes[1] * steps.conv.boxes[2] * steps.conv.boxes[3]


cdef inline int64_t row_pitch(const Correlation *steps, compute kind) noexcept nogil:
    """Elements for a row of the target."""
    return whole_vectors(steps.conv.window.axis[2].positions * steps.conv.walk.axis[2].target_step, kind)


cdef inline int64_t phases_scratch(const Correlation *steps, compute kind) noexcept nogil:
    """Bytes of one thread: a window, the sums of each phase, rows of the target, tables."""
    cdef int64_t i, tables = 0
    cdef int64_t size = steps.conv.window_size + steps.conv.blocks.phases * steps.sums_size
    for i in range(steps.conv.blocks.phases):
        tables = max(tables, tables_size(&steps[i].conv))
    return in_lines((size + steps.conv.blocks.outputs * row_pitch(steps, kind)) * sizeof(compute)) + tables


cdef inline void fill_shared(
    compute *window, const Correlation *steps, const Box *box, const scalar *source, int64_t channels
) noexcept nogil:
    """What all phases see of a box: as if one walk had a tap for each neighbour that one of them sees."""
    cdef Window m = steps.conv.window
    cdef conv_walk walk = steps.conv.walk
    cdef int axis
    for axis in range(3):
        walk.axis[axis].source_begin -= m.axis[axis].begin
        walk.axis[axis].taps = m.axis[axis].extent - m.axis[axis].positions + 1
        m.axis[axis].begin, m.axis[axis].tap = 0, 1
    fill_window(window, &m, &walk, box, source, &steps.conv.x, channels)


cdef inline int64_t find_phase(Box *box, const Correlation *c, const Correlation *steps, int64_t index) noexcept nogil:
    return find_box(box, &c.conv.window, &c.conv.walk, c.conv.batch, steps.conv.boxes, index)


cdef inline void spread_row(compute *row, int64_t step, const compute *sums, int64_t count) noexcept nogil:
    cdef int64_t w
    for w in range(count):
        row[w * step] = sums[w]


cdef inline void interleave_rows(compute *row, const compute *even, const compute *odd, int64_t count) noexcept nogil:
    """Two phases at once: compilers make vectors of that."""
    cdef int64_t w
    for w in range(count):
        row[2 * w] = even[w]
        row[2 * w + 1] = odd[w]


cdef inline int64_t join_rows(
    compute *rows, const Correlation *c, const Correlation *steps, int64_t index, int64_t outputs, const compute *sums,
    int64_t row
) noexcept nogil:
    """rows[o] = the row of the target that row number ``row`` of each phase of the width is a part of; its length."""
    cdef int64_t step = c.conv.walk.axis[2].target_step, pitch = row_pitch(c, rows[0]), r, o, begin, length = 0
    cdef int64_t count[2]
    cdef const compute *part[2]
    cdef const compute *of
    cdef Box box
    for r in range(step):
        find_phase(&box, c + r, steps, index)
        begin = c[r].conv.walk.axis[2].target_begin
        length += box.count[3]
        of = sums + r * c.sums_size + row * whole_vectors(box.count[3], rows[0])
        if step == 2:
            part[begin], count[begin] = of, box.count[3]
        else:
            for o in range(outputs):
                spread_row(rows + o * pitch + begin, step, of + o * c.row, box.count[3])
    if step == 2:
        for o in range(outputs):
            interleave_rows(rows + o * pitch, part[0] + o * c.row, part[1] + o * c.row, count[1])
            if count[0] > count[1]:
                rows[o * pitch + 2 * count[1]] = part[0][o * c.row + count[1]]
    return length


cdef inline void store_phases(
    const Correlation *steps, int64_t index, int64_t outputs, const compute *sums, compute *rows, scalar *target
) noexcept nogil:
    """Row by row of the target."""
    cdef int64_t step = steps.conv.walk.axis[2].target_step, i = 0, n, d, h, row, columns
    cdef const Correlation *c
    cdef Box box
    while i < steps.conv.blocks.phases:
        c = steps + i
        find_phase(&box, c, steps, index)
        row = 0
        for n in range(box.count[0]):
            for d in range(box.count[1]):
                for h in range(box.count[2]):
                    columns = join_rows(rows, c, steps, index, outputs, sums + i * c.sums_size, row)
                    store_block(
                        target + target_offset(&c.conv.y, &c.conv.walk, box.begin[0] + n, box.begin[1] + d,
                                               box.begin[2] + h, box.begin[3])
                        - c.conv.walk.axis[2].target_begin * c.conv.y.axis[2],
                        c.conv.y.axis[2], c.conv.y.channel, rows, 1, row_pitch(c, rows[0]), columns, outputs,
                    )
                    row += 1
        i += step


cdef inline void correlate_phases(
    const Correlation *steps, const scalar *source, const scalar *filter, scalar *target, const compute *packed,
    char *scratch, int64_t task,
) noexcept nogil:
    cdef const Correlation *c
    cdef int64_t outer = task // steps.conv.output_blocks, o0 = task % steps.conv.output_blocks * steps.conv.blocks.outputs
    cdef int64_t outputs = min(steps.conv.blocks.outputs, steps.conv.outputs - o0), phases = steps.conv.blocks.phases
    cdef int64_t g = outer % steps.conv.groups, index = outer // steps.conv.groups, positions, i, columns
    cdef int axis
    cdef Box box
    cdef Box whole  # of the longest phases
    cdef Part part
    cdef compute *window = <compute *>scratch
    cdef compute *sums = window + steps.conv.window_size
    cdef compute *rows = sums + phases * steps.sums_size
    cdef int32_t *position = <int32_t *>(rows + steps.conv.blocks.outputs * row_pitch(steps, rows[0]))
    cdef int32_t *column = position + steps.conv.box_positions
    source += g * steps.conv.x.group
    filter += g * steps.conv.w.group
    target += g * steps.conv.y.group + o0 * steps.conv.y.channel
    find_phase(&whole, steps, steps, index)
    for i in range(1, phases):
        find_phase(&box, steps + i, steps, index)
        for axis in range(4):
            whole.count[axis] = max(whole.count[axis], box.count[axis])
    part.begin = 0
    while part.begin < steps.conv.channels:
        part.channels = min(steps.conv.blocks.chunk, steps.conv.channels - part.begin)
        fill_shared(window, steps, &whole, source + part.begin * steps.conv.x.channel, part.channels)
        for i in range(phases):
            c = steps + i
            positions = find_phase(&box, c, steps, index)
            if positions:
                position_offsets(&c.conv.window, &box, position)
                column_offsets(&c.conv.window, &c.conv.walk, part.channels, column)
                add_products(
                    c, &box, positions, outputs, &part, window, filter, packed + c.packed + g * c.filter_size
                    + (part.begin * c.filter_outputs + o0 * part.channels) * c.conv.taps, NULL, position, column,
                    sums + i * c.sums_size, c.row, False,
                )
        part.begin += part.channels
    if compute is not int:
        for i in range(phases if steps.nonfinite[0] else 0):
            c = steps + i
            positions = find_phase(&box, c, steps, index)
            columns = whole_vectors(box.count[3], rows[0])
            if positions and c.conv.padded and any_nan(sums + i * c.sums_size, outputs, positions // box.count[3] * columns, c.row):
                repair(c, &box, o0, outputs, source, filter, sums + i * c.sums_size, 1, columns, c.row)
    store_phases(steps, index, outputs, sums, rows, target)
