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
from copy.window cimport Box, Window, fill_window, find_box, position_steps
from direct.correlate_tasks cimport Correlation
from direct.exact cimport any_nan
from direct.products cimport CorrelateTask, add_products, begin_chunk
from direct.repair cimport SumSteps, repair
from direct.walk cimport Convolution, tables_size
from direct.zones cimport WORTH, Zone, find_zones, list_places
from parallel.tasks cimport is_stopped
from tile.multiply cimport Sums
from tile.ukernel cimport FRESH, whole_vectors

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


cdef inline void list_tables(const CorrelateTask *t, const Box *whole) noexcept nogil:
    """Where the positions of a phase are in the window, and where their sums are among those of its rows."""
    cdef const Correlation *c = t.c
    cdef int64_t i, length = row_length(c, whole), begin = c.conv.walk.axis[2].target_begin * c.row
    cdef int64_t position_step[4]
    cdef int64_t place_step[4]
    cdef const Zone *zone
    position_steps(&c.conv.window, position_step)
    place_step[3], place_step[2] = c.conv.walk.axis[2].target_step * c.row, length * c.row
    place_step[1] = place_step[2] * t.box.count[2]
    place_step[0] = place_step[1] * t.box.count[1]
    for i in range(t.zones.count):
        zone = &t.zones.zone[i]
        list_places(zone, &t.box, 0, position_step, t.position + zone.begin)
        if not c.conv.blocks.positions_across:
            list_places(zone, &t.box, begin, place_step, t.places + zone.begin)


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
    const Correlation *c, const Box *boxes, const Box *whole, int64_t row, const compute *sums, int64_t outputs,
    compute *made, scalar *target
) noexcept nogil:
    """A row of the target, which is made there where it can be; ``target`` points at its first position."""
    cdef int64_t pitch = row_pitch(c, made[0]), length = 0, r, w
    if not c.conv.blocks.positions_across:
        for r in range(c.conv.walk.axis[2].target_step):
            length += boxes[r].count[3]
        sums += row * row_length(c, whole) * c.row
        if scalar is compute:
            if c.conv.blocks.nontemporal and c.conv.y.channel == 1 and holds_lines(&c.conv.y, target, outputs):
                for w in range(length):
                    stream_lines(target + w * c.conv.y.axis[2], sums + w * c.row, outputs * sizeof(compute))
                return
        store_block(target, c.conv.y.axis[2], c.conv.y.channel, sums, c.row, 1, length, outputs)
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
    cdef int64_t step = steps.conv.walk.axis[2].target_step, phases = steps.conv.blocks.phases, n, d, h, i, first
    cdef const Box *whole = boxes + phases
    cdef const Box *box
    cdef const Correlation *c
    for n in range(whole.count[0]):
        for d in range(whole.count[1]):
            for h in range(whole.count[2]):
                i = 0
                while i < phases:
                    c, box = steps + i, boxes + i
                    if d < box.count[1] and h < box.count[2]:
                        first = target_offset(&c.conv.y, &c.conv.walk, box.begin[0] + n, box.begin[1] + d,
                                              box.begin[2] + h, box.begin[3])
                        first -= c.conv.walk.axis[2].target_begin * c.conv.y.axis[2]
                        store_row(c, box, whole, (n * box.count[1] + d) * box.count[2] + h, sums + i * steps.sums_size,
                                  outputs, made, target + first)
                    i += step


cdef inline void repair_phase(
    const Correlation *c, const Box *box, const Box *whole, int64_t outputs, const scalar *source,
    const scalar *filter, compute *sums, compute *shared
) noexcept nogil:
    """``sums`` are one phase's, or among those ``shared`` by the phases of its rows, some of which nobody has set."""
    cdef int64_t rows = box.count[0] * box.count[1] * box.count[2], columns = whole_vectors(box.count[3], sums[0])
    cdef int64_t step = c.conv.walk.axis[2].target_step, length = row_length(c, whole)
    if compute is not int:
        if c.conv.blocks.positions_across:
            if any_nan(sums, outputs, rows * columns, c.row):
                repair(&c.conv, box, outputs, source, filter, sums, SumSteps(1, columns, c.row))
        elif any_nan(shared, rows * length, outputs, c.row):
            repair(&c.conv, box, outputs, source, filter, shared + c.conv.walk.axis[2].target_begin * c.row,
                   SumSteps(step * c.row, length * c.row, 1))


cdef inline void begin_phase(CorrelateTask *t, const Correlation *c, const Box *boxes, int64_t i) noexcept nogil:
    """What the products of the chunk and phase number i need."""
    cdef bint across = c.conv.blocks.positions_across
    t.c, t.box = c, boxes[i]
    t.sums = Sums(0, t.places, c.row, FRESH)
    if across:
        t.sums.place = NULL
    t.channels = 0  # another walk, other columns
    begin_chunk(t)
    find_zones(&t.zones, &c.conv.walk, &t.box, False, not across, t.words, t.outputs, WORTH)
    list_tables(t, boxes + c.conv.blocks.phases)


cdef inline void correlate_phases(
    const Correlation *steps, const scalar *source, const scalar *filter, scalar *target, const compute *packed,
    char *scratch, int64_t task,
) noexcept nogil:
    cdef const Convolution *conv = &steps.conv
    cdef int64_t outer = task // conv.output_blocks, phases = conv.blocks.phases, step = conv.walk.axis[2].target_step
    cdef int64_t i, g
    cdef CorrelateTask t
    cdef compute *window = <compute *>scratch
    cdef compute *sums = window + conv.window_size
    cdef compute *made = sums + phases * steps.sums_size
    cdef compute *shared  # by the phases of a row
    cdef Box *boxes = <Box *>in_lines(<int64_t>(made + made_size(steps, made[0])))
    t.places = <int64_t *>(<char *>boxes + boxes_size(steps))
    t.position = <int32_t *>(<char *>t.places + places_size(steps))
    t.column = t.position + conv.box_positions
    t.g0 = outer % conv.bundles * conv.blocks.groups
    t.groups = min(conv.blocks.groups, conv.groups - t.g0)
    t.o0 = task % conv.output_blocks * conv.blocks.outputs
    t.outputs = t.group_sums = min(conv.blocks.outputs, conv.outputs - t.o0)
    t.in_target = t.streamed = False
    source += t.g0 * conv.x.group
    target += t.g0 * conv.y.group + t.o0 * conv.y.channel
    find_boxes(boxes, steps, outer // conv.bundles)
    t.c0 = 0
    while t.c0 < conv.channels:
        t.channels = min(conv.blocks.chunk, conv.channels - t.c0)
        fill_shared(window, steps, boxes + phases, source + t.c0 * conv.x.channel, t.groups * t.channels)
        for i in range(phases):
            if boxes[i].count[0] * boxes[i].count[1] * boxes[i].count[2] * boxes[i].count[3]:
                begin_phase(&t, steps + i, boxes, i)
                shared = sums + (i if conv.blocks.positions_across else i // step * step) * steps.sums_size
                add_products(&t, window, filter, packed, made, shared)
        t.c0 += t.channels
        if t.c0 < conv.channels and is_stopped(steps.workers):
            return
    filter += t.g0 * conv.w.group + t.o0 * conv.w.batch
    for i in range(phases if steps.nonfinite[0] else 0):
        shared = sums + i // step * step * steps.sums_size
        for g in range(t.groups if steps[i].conv.padded else 0):
            repair_phase(steps + i, boxes + i, boxes + phases, t.outputs, source + g * conv.x.group,
                         filter + g * conv.w.group, sums + i * steps.sums_size, shared + g * t.outputs)
    store_phases(steps, boxes, t.groups * t.outputs, sums, made, target)
    if conv.blocks.nontemporal:
        end_stream()
