"""dgrad with a stride, all phases of a box of positions in one task: what they see is copied once, and their sums are
brought together as they lie in the target.

Each combination of phases of the depth and the height has neighbouring steps for those of the width, as many as the
stride, and these make whole rows of the target.

                        sums
    channels across     [phases of the width][n][d][h][position of the row][group of a bundle, o]
    positions across    [phase][o][n][d][h][w]
"""

from libc.stdint cimport int32_t, int64_t

from base.memory cimport in_lines
from base.problem cimport conv_walk
from base.scalar cimport compute, scalar
from base.tensor cimport target_offset
from copy.load_store cimport store_block
from copy.stream cimport end_stream, holds_lines, stream_lines
from copy.window cimport Box, Window, column_offsets, fill_window, find_box, position_steps
from direct.correlate_tasks cimport Correlation
from direct.exact cimport any_nan
from direct.products cimport Bundle, DepthChunk, add_products
from direct.repair cimport repair
from direct.walk cimport tables_size
from direct.zones cimport WORTH, Zone, Zones, find_zones, list_places
from parallel.tasks cimport is_stopped
from tile.ukernel cimport whole_vectors

cdef extern from "copy/rows.h" nogil:
    void interleave_words(void *to, const void *even, const void *odd, int64_t count)


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


cdef inline int64_t boxes_size(const Correlation *steps) noexcept nogil:
    """Bytes for a box of each phase, and one more."""
    return in_lines((steps.conv.blocks.phases + 1) * sizeof(Box))


cdef inline int64_t made_size(const Correlation *steps, compute kind) noexcept nogil:
    """Elements for a row of the target of each output, where phases have to be brought together."""
    return steps.conv.blocks.outputs * row_pitch(steps, kind) if steps.conv.blocks.positions_across else 0


cdef inline int64_t places_size(const Correlation *steps) noexcept nogil:
    """Bytes for the places of a phase's positions."""
    return in_lines(steps.conv.box_positions * sizeof(int64_t))


cdef inline int64_t phases_scratch(const Correlation *steps, compute kind) noexcept nogil:
    """Bytes of one thread: a window, the sums of each phase, a row of the target, boxes, places, tables."""
    cdef int64_t i, tables = 0
    cdef int64_t size = steps.conv.window_size + steps.conv.blocks.phases * steps.sums_size
    for i in range(steps.conv.blocks.phases):
        tables = max(tables, tables_size(&steps[i].conv))
    size += made_size(steps, kind)
    return in_lines(size * sizeof(compute)) + boxes_size(steps) + places_size(steps) + tables


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


cdef inline void find_boxes(Box *boxes, const Correlation *steps, int64_t index) noexcept nogil:
    """The box of each phase, and one as long as the longest of them."""
    cdef int64_t i, phases = steps.conv.blocks.phases
    cdef int axis
    for i in range(phases):
        find_box(boxes + i, &steps[i].conv.window, &steps[i].conv.walk, steps.conv.batch, steps.conv.boxes, index)
        if i == 0:
            boxes[phases] = boxes[0]
        for axis in range(4):
            boxes[phases].count[axis] = max(boxes[phases].count[axis], boxes[i].count[axis])


cdef inline int64_t row_length(const Correlation *c, const Box *whole) noexcept nogil:
    """Positions of a row of the target that a box of all phases makes, at most."""
    return whole.count[3] * c.conv.walk.axis[2].target_step


cdef inline void list_tables(
    const Correlation *c, const Box *box, const Box *whole, const Zones *zones, int32_t *position, int64_t *places
) noexcept nogil:
    """Where the positions of a phase are in the window, and where their sums are among those of its rows."""
    cdef int64_t i, length = row_length(c, whole), begin = c.conv.walk.axis[2].target_begin * c.row
    cdef int64_t position_step[4]
    cdef int64_t place_step[4]
    cdef const Zone *zone
    position_steps(&c.conv.window, position_step)
    place_step[3], place_step[2] = c.conv.walk.axis[2].target_step * c.row, length * c.row
    place_step[1] = place_step[2] * box.count[2]
    place_step[0] = place_step[1] * box.count[1]
    for i in range(zones.count):
        zone = &zones.zone[i]
        list_places(zone, box, 0, position_step, position + zone.begin)
        if not c.conv.blocks.positions_across:
            list_places(zone, box, begin, place_step, places + zone.begin)


cdef inline void spread_row(compute *row, int64_t step, const compute *sums, int64_t count) noexcept nogil:
    cdef int64_t w
    for w in range(count):
        row[w * step] = sums[w]


cdef inline void interleave_rows(compute *row, const compute *even, const compute *odd, int64_t count) noexcept nogil:
    """Two phases at once: rows are short, and the rest beyond a compiler's vectors would take most of the time."""
    cdef int64_t w
    if sizeof(compute) == 4:
        interleave_words(row, even, odd, count)
        return
    for w in range(count):
        row[2 * w] = even[w]
        row[2 * w + 1] = odd[w]


cdef inline int64_t join_row(
    compute *made, int64_t pitch, const Correlation *c, const Box *boxes, const compute *sums, int64_t row,
    int64_t outputs
) noexcept nogil:
    """made[o * pitch + w] = a row of the target, of which row number ``row`` of each phase of the width is a part.

    ``c``, ``boxes`` and ``sums`` are the first such phase's. The result is the row's length.
    """
    cdef int64_t step = c.conv.walk.axis[2].target_step, r, o, begin, length = 0
    cdef int64_t count[2]
    cdef const compute *part[2]
    cdef const compute *of
    for r in range(step):
        begin = c[r].conv.walk.axis[2].target_begin
        length += boxes[r].count[3]
        of = sums + r * c.sums_size + row * whole_vectors(boxes[r].count[3], made[0])
        if step == 2:
            part[begin], count[begin] = of, boxes[r].count[3]
        else:
            for o in range(outputs):
                spread_row(made + o * pitch + begin, step, of + o * c.row, boxes[r].count[3])
    if step == 2:
        for o in range(outputs):
            interleave_rows(made + o * pitch, part[0] + o * c.row, part[1] + o * c.row, count[1])
            if count[0] > count[1]:
                made[o * pitch + 2 * count[1]] = part[0][o * c.row + count[1]]
    return length


cdef inline void store_row(
    const Correlation *c, const Box *boxes, const Box *whole, const compute *sums, int64_t n, int64_t d, int64_t h,
    int64_t outputs, compute *made, scalar *target
) noexcept nogil:
    """A row of the target, which is made there where it can be."""
    cdef int64_t pitch = row_pitch(c, made[0]), length = 0, r, w, row = (n * boxes.count[1] + d) * boxes.count[2] + h
    if d >= boxes.count[1] or h >= boxes.count[2]:
        return
    target += target_offset(&c.conv.y, &c.conv.walk, boxes.begin[0] + n, boxes.begin[1] + d, boxes.begin[2] + h,
                            boxes.begin[3])
    target -= c.conv.walk.axis[2].target_begin * c.conv.y.axis[2]
    if not c.conv.blocks.positions_across:
        for r in range(c.conv.walk.axis[2].target_step):
            length += boxes[r].count[3]
        if scalar is compute:
            if c.conv.blocks.streams and c.conv.y.channel == 1 and holds_lines(&c.conv.y, target, outputs):
                sums += row * row_length(c, whole) * c.row
                for w in range(length):
                    stream_lines(target + w * c.conv.y.axis[2], sums + w * c.row, outputs * sizeof(compute))
                return
        store_block(target, c.conv.y.axis[2], c.conv.y.channel, sums + row * row_length(c, whole) * c.row, c.row, 1,
                    length, outputs)
        return
    if scalar is compute:
        if c.conv.y.axis[2] == 1:
            join_row(target, c.conv.y.channel, c, boxes, sums, row, outputs)
            return
    length = join_row(made, pitch, c, boxes, sums, row, outputs)
    store_block(target, c.conv.y.axis[2], c.conv.y.channel, made, 1, pitch, length, outputs)


cdef inline void store_phases(
    const Correlation *steps, const Box *boxes, int64_t outputs, const compute *sums, compute *made, scalar *target
) noexcept nogil:
    """Row after row."""
    cdef int64_t step = steps.conv.walk.axis[2].target_step, phases = steps.conv.blocks.phases, n, d, h, i
    cdef const Box *whole = boxes + phases
    for n in range(whole.count[0]):
        for d in range(whole.count[1]):
            for h in range(whole.count[2]):
                i = 0
                while i < phases:
                    store_row(steps + i, boxes + i, whole, sums + i * steps.sums_size, n, d, h, outputs, made, target)
                    i += step


cdef inline void repair_phase(
    const Correlation *c, const Box *box, const Box *whole, int64_t o0, int64_t outputs, const scalar *source,
    const scalar *filter, compute *sums, compute *shared
) noexcept nogil:
    """``sums`` are one phase's, or among those ``shared`` by the phases of its rows, some of which nobody has set."""
    cdef int64_t rows = box.count[0] * box.count[1] * box.count[2], columns = whole_vectors(box.count[3], sums[0])
    cdef int64_t step = c.conv.walk.axis[2].target_step, length = row_length(c, whole)
    if compute is not int:
        if c.conv.blocks.positions_across:
            if any_nan(sums, outputs, rows * columns, c.row):
                repair(&c.conv, box, o0, outputs, source, filter, sums, 1, columns, c.row)
        elif any_nan(shared, rows * length, outputs, c.row):
            repair(&c.conv, box, o0, outputs, source, filter, shared + c.conv.walk.axis[2].target_begin * c.row,
                   step * c.row, length * c.row, 1)


cdef inline void correlate_phases(
    const Correlation *steps, const scalar *source, const scalar *filter, scalar *target, const compute *packed,
    char *scratch, int64_t task,
) noexcept nogil:
    cdef const Correlation *c
    cdef int64_t outer = task // steps.conv.output_blocks, g0 = outer % steps.conv.bundles * steps.conv.blocks.groups
    cdef int64_t g, groups = min(steps.conv.blocks.groups, steps.conv.groups - g0)
    cdef int64_t o0 = task % steps.conv.output_blocks * steps.conv.blocks.outputs
    cdef int64_t outputs = min(steps.conv.blocks.outputs, steps.conv.outputs - o0), phases = steps.conv.blocks.phases
    cdef int64_t i, positions, step = steps.conv.walk.axis[2].target_step
    cdef DepthChunk part
    cdef Bundle bundle
    cdef Zones zones
    cdef bint across = steps.conv.blocks.positions_across
    cdef compute *window = <compute *>scratch
    cdef compute *sums = window + steps.conv.window_size
    cdef compute *made = sums + phases * steps.sums_size
    cdef compute *shared
    cdef Box *boxes = <Box *>in_lines(<int64_t>(made + made_size(steps, made[0])))
    cdef int64_t *places = <int64_t *>(<char *>boxes + boxes_size(steps))
    cdef int32_t *position = <int32_t *>(<char *>places + places_size(steps))
    cdef int32_t *column = position + steps.conv.box_positions
    source += g0 * steps.conv.x.group
    filter += g0 * steps.conv.w.group
    target += g0 * steps.conv.y.group + o0 * steps.conv.y.channel
    find_boxes(boxes, steps, outer // steps.conv.bundles)
    part.begin = 0
    while part.begin < steps.conv.channels:
        part.channels = min(steps.conv.blocks.chunk, steps.conv.channels - part.begin)
        fill_shared(window, steps, boxes + phases, source + part.begin * steps.conv.x.channel,
                    groups * part.channels)
        for i in range(phases):
            c = steps + i
            positions = boxes[i].count[0] * boxes[i].count[1] * boxes[i].count[2] * boxes[i].count[3]
            shared = sums + i // step * step * steps.sums_size
            if positions:
                find_zones(&zones, &c.conv.walk, boxes + i, False, not across, part.channels, outputs, WORTH)
                list_tables(c, boxes + i, boxes + phases, &zones, position, places)
                column_offsets(&c.conv.window, &c.conv.walk, part.channels, part.channels, 1, column)
                # Several groups across channels alone: their sums are side by side.
                bundle.groups, bundle.filter, bundle.packed, bundle.sums = groups, 0, c.filter_size, outputs
                bundle.window = part.channels * c.conv.window.channel_pitch
                add_products(
                    c, boxes + i, &zones, outputs, &part, &bundle, window, filter,
                    packed + c.packed + g0 * c.filter_size
                    + (part.begin * c.filter_outputs + o0 * part.channels) * c.conv.taps, made, position, column,
                    sums + i * c.sums_size if across else shared, NULL if across else places, c.row, False,
                )
        part.begin += part.channels
        if part.begin < steps.conv.channels and is_stopped(steps.workers):
            return
    for i in range(phases if steps.nonfinite[0] else 0):
        for g in range(groups if steps[i].conv.padded else 0):
            repair_phase(
                steps + i, boxes + i, boxes + phases, o0, outputs, source + g * steps.conv.x.group,
                filter + g * steps.conv.w.group, sums + i * steps.sums_size,
                sums + i // step * step * steps.sums_size + g * outputs)
    store_phases(steps, boxes, groups * outputs, sums, made, target)
    if steps.conv.blocks.streams:
        end_stream()
