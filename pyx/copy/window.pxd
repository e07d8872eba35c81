"""The part of a source that a box of positions sees: copied once, widened, with zeros where it is padding.

A box is a range of positions on each of the four axes batch, depth, height, width. Its window holds the source under
all taps of all its positions, so the element under position p and tap t of channel c is, for tables that depend on
neither the box nor the source,

    window[position[p] + tap[t] + c * pitch of channels]

and no element is copied once for each tap. The window's coordinate on an axis (cpu/direct/boxes.py chooses it) is

    p * step + t * tap + begin      step and tap are the walk's, and neighbours share elements, or, where the taps of
                                    a box lie apart from each other, 1 and the box's extent: a part for each tap.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t
from libc.stdlib cimport llabs

from base.problem cimport conv_axis, conv_inside, conv_source, conv_walk
from base.scalar cimport compute, scalar
from base.tensor cimport Tensor, count_taps, find_tap
from copy.load_store cimport PIECE, load_block, zero_block
from copy.pairs cimport load_pairs, words_of
from tile.ukernel cimport LINE_BYTES

cdef enum:
    SHARING_BYTES = 256

cdef struct WindowAxis:  # WindowAxis of cpu/plan/steps.py, field for field
    int64_t positions  # of a whole box
    int64_t extent
    int64_t apart  # whether there is a part for each tap
    int64_t step, tap, begin

cdef struct Window:
    int64_t images  # of a whole box
    int64_t channels  # of a whole chunk, or pairs of them
    bint pairs
    WindowAxis axis[3]
    int64_t batch_pitch, channel_pitch  # elements between neighbours
    int64_t pitch[3]

cdef struct Box:  # begin .. begin + count - 1 on the axes batch, depth, height, width
    int64_t begin[4]
    int64_t count[4]


cdef inline int64_t staggered(int64_t pitch, int64_t itemsize) noexcept nogil:
    """At least as many elements, but no multiple of SHARING_BYTES.

    A tile of wgrad, which reads a little of each neighbour, would find these in too few sets of the cache.
    """
    return pitch + LINE_BYTES // itemsize if pitch * itemsize % SHARING_BYTES == 0 else pitch


cdef inline int64_t lay_out(Window *m, bint channels_adjacent, int64_t itemsize) noexcept nogil:
    """Set the pitches, channels or positions of a row adjacent in memory; the elements of the whole window."""
    m.channel_pitch = 1
    m.pitch[2] = staggered(m.channels, itemsize) if channels_adjacent else 1
    m.pitch[1] = m.pitch[2] * m.axis[2].extent
    m.pitch[0] = m.pitch[1] * m.axis[1].extent
    m.batch_pitch = m.pitch[0] * m.axis[0].extent
    if channels_adjacent:
        return m.batch_pitch * m.images
    m.channel_pitch = staggered(m.batch_pitch * m.images, itemsize)
    return m.channel_pitch * m.channels


cdef inline bint is_in_place(
    const Window *m, const conv_walk *walk, const Tensor *x, bint positions_adjacent, int64_t itemsize
) noexcept nogil:
    """Whether a source without padding can serve as the window: its offsets fit into 32 bits.

    Where positions are adjacent, so must they be in the source, and channels must not share their place in the cache.
    """
    cdef int axis
    cdef const conv_axis *a
    cdef int64_t reach = m.images * llabs(x.batch) + m.channels * llabs(x.channel)
    for axis in range(3):
        a = &walk.axis[axis]
        reach += (m.axis[axis].positions * a.source_step + a.taps * llabs(a.source_tap)) * llabs(x.axis[axis])
    if positions_adjacent and (x.axis[2] != 1 or walk.axis[2].source_step != 1 or x.channel * itemsize % 4096 == 0):
        return False
    return reach < INT32_MAX


cdef inline void lay_over(Window *m, const conv_walk *walk, const Tensor *x) noexcept nogil:
    """Set the pitches and the coordinates of a window that is the source itself, word by word if it holds pairs."""
    cdef int axis
    m.batch_pitch = x.batch // 2 if m.pairs else x.batch
    m.channel_pitch = x.channel
    for axis in range(3):
        m.pitch[axis] = x.axis[axis] // 2 if m.pairs else x.axis[axis]
        m.axis[axis].step, m.axis[axis].tap = walk.axis[axis].source_step, walk.axis[axis].source_tap
        m.axis[axis].begin = 0


cdef inline int64_t window_offset(const Box *box, const conv_walk *walk, const Tensor *x) noexcept nogil:
    """Where in the source the window of a box begins."""
    cdef int axis
    cdef int64_t offset = box.begin[0] * x.batch
    for axis in range(3):
        offset += conv_source(&walk.axis[axis], box.begin[1 + axis], 0) * x.axis[axis]
    return offset


cdef inline int64_t count_boxes(const Window *m, const conv_walk *walk, int64_t batch, int64_t *boxes) noexcept nogil:
    """Boxes on each of the four axes, and in all."""
    cdef int axis
    boxes[0] = (batch + m.images - 1) // m.images
    for axis in range(3):
        boxes[1 + axis] = (walk.axis[axis].positions + m.axis[axis].positions - 1) // m.axis[axis].positions
    return boxes[0] * boxes[1] * boxes[2] * boxes[3]


cdef inline int64_t find_box(
    Box *box, const Window *m, const conv_walk *walk, int64_t batch, const int64_t *boxes, int64_t index
) noexcept nogil:
    """Box number ``index``; how many positions it has, where walks share boxes perhaps none."""
    cdef int axis
    cdef int64_t whole, limit
    for axis in range(3, -1, -1):
        whole = m.images if axis == 0 else m.axis[axis - 1].positions
        limit = batch if axis == 0 else walk.axis[axis - 1].positions
        box.begin[axis] = index % boxes[axis] * whole
        box.count[axis] = max(<int64_t>0, min(whole, limit - box.begin[axis]))
        index = index // boxes[axis]
    return box.count[0] * box.count[1] * box.count[2] * box.count[3]


cdef inline void position_steps(const Window *m, int64_t *step) noexcept nogil:
    """Elements between neighbours of the table ``position`` on each axis."""
    cdef int axis
    step[0] = m.batch_pitch
    for axis in range(3):
        step[1 + axis] = m.axis[axis].step * m.pitch[axis]


cdef inline void column_offsets(
    const Window *m, const conv_walk *walk, int64_t channels, int64_t tap_rows, int64_t channel_rows, int32_t *offsets
) noexcept nogil:
    """The table ``tap`` with the channels: offsets[t * tap_rows + c * channel_rows]."""
    cdef int64_t t, c, offset
    cdef int64_t tap[3]
    cdef int axis
    for t in range(count_taps(walk)):
        find_tap(walk, t, tap)
        offset = 0
        for axis in range(3):
            offset += (tap[axis] * m.axis[axis].tap + m.axis[axis].begin) * m.pitch[axis]
        for c in range(channels):
            offsets[t * tap_rows + c * channel_rows] = <int32_t>(offset + c * m.channel_pitch)


cdef struct AxisSpan:  # coordinates of a window's axis that follow each other
    int64_t first, length
    int64_t source, source_step  # the source's coordinate at the first, and between neighbours


cdef inline void find_part(
    AxisSpan *part, const WindowAxis *m, const conv_axis *a, int64_t begin, int64_t count, int64_t tap
) noexcept nogil:
    """The part of a tap, or the only one."""
    if m.apart:
        part.first = tap * m.tap
        part.length = count
        part.source = conv_source(a, begin, tap)
        part.source_step = a.source_step
    else:
        part.first = 0
        part.length = (count - 1) * m.step + (a.taps - 1) * llabs(m.tap) + 1
        part.source = conv_source(a, begin, 0) - m.begin
        part.source_step = 1


cdef inline int64_t first_from(int64_t coordinate, int64_t limit, int64_t step) noexcept nogil:
    """The least i >= 0 with coordinate + i * step >= limit."""
    return 0 if coordinate >= limit else (limit - coordinate + step - 1) // step


cdef inline void fill_row(
    compute *row, const Window *m, const conv_walk *walk, const Box *box, const scalar *source, const Tensor *x,
    int64_t channels, bint outside,
) noexcept nogil:
    """One row of a window, from the row of the source, or all zeros."""
    cdef const conv_axis *a = &walk.axis[2]
    cdef int64_t tap, begin, end, pitch = m.pitch[2], words = words_of(channels, m.pairs)
    cdef AxisSpan part
    cdef compute *to
    for tap in range(a.taps if m.axis[2].apart else 1):
        find_part(&part, &m.axis[2], a, box.begin[3], box.count[3], tap)
        begin = part.length if outside else min(first_from(part.source, 0, part.source_step), part.length)
        end = max(begin, min(first_from(part.source, a.source_size, part.source_step), part.length))
        to = row + part.first * pitch
        zero_block(to, pitch, m.channel_pitch, begin, words)
        if end > begin and m.pairs:
            load_pairs(to + begin * pitch, NULL, pitch, source + (part.source + begin * part.source_step) * x.axis[2],
                       part.source_step * x.axis[2], x.channel, end - begin, channels)
        elif end > begin:
            load_block(to + begin * pitch, pitch, m.channel_pitch,
                       source + (part.source + begin * part.source_step) * x.axis[2], part.source_step * x.axis[2],
                       x.channel, end - begin, channels)
        zero_block(to + end * pitch, pitch, m.channel_pitch, part.length - end, words)


cdef inline bint joins_rows(const Window *m, const conv_walk *walk, const Box *box, const Tensor *x) noexcept nogil:
    """Whether rows of the source are copied together: whole short ones of pairs, which follow each other in memory."""
    cdef const conv_axis *a = &walk.axis[2]
    cdef AxisSpan part
    find_part(&part, &m.axis[2], a, box.begin[3], box.count[3], 0)
    return (m.pairs and not m.axis[1].apart and not m.axis[2].apart and a.source_size < PIECE and x.channel != 1
            and x.axis[2] == 1 and x.axis[1] == a.source_size
            and part.source <= 0 and part.source + part.length >= a.source_size)


cdef inline void fill_joined(
    compute *row, const Window *m, const conv_walk *walk, const Box *box, const scalar *source, const Tensor *x,
    int64_t channels, int64_t rows,
) noexcept nogil:
    """So many rows of a window, from rows of the source that are copied together: short ones alone take longer."""
    cdef int64_t width = walk.axis[2].source_size, pitch = m.pitch[2], words = words_of(channels, m.pairs)
    cdef int64_t r, w, i, end, first = 0, count
    cdef int32_t[PIECE] places
    cdef AxisSpan part
    find_part(&part, &m.axis[2], &walk.axis[2], box.begin[3], box.count[3], 0)
    end = width - part.source
    for r in range(rows):
        zero_block(row + r * m.pitch[1], pitch, m.channel_pitch, -part.source, words)
        zero_block(row + r * m.pitch[1] + end * pitch, pitch, m.channel_pitch, part.length - end, words)
    r = w = 0
    while first < rows * width:
        count = min(<int64_t>PIECE, rows * width - first)
        for i in range(count):
            places[i] = <int32_t>(r * m.pitch[1] + (w - part.source) * pitch)
            w += 1
            if w == width:
                r, w = r + 1, 0
        load_pairs(row, <int32_t *>places, 0, source + first, 1, x.channel, count, channels)
        first += count


cdef inline void fill_window(
    compute *window, const Window *m, const conv_walk *walk, const Box *box, const scalar *source, const Tensor *x,
    int64_t channels,
) noexcept nogil:
    """The window of a box; ``source`` points at the group's first channel of the chunk."""
    cdef int64_t n, td, th, d, h, depth, height, rows
    cdef const conv_axis *a = &walk.axis[0]
    cdef const conv_axis *b = &walk.axis[1]
    cdef AxisSpan of_d, of_h
    cdef bint joins = joins_rows(m, walk, box, x), outside
    cdef compute *row
    cdef const scalar *of
    for n in range(box.count[0]):
        for td in range(a.taps if m.axis[0].apart else 1):
            find_part(&of_d, &m.axis[0], a, box.begin[1], box.count[1], td)
            for d in range(of_d.length):
                depth = of_d.source + d * of_d.source_step
                for th in range(b.taps if m.axis[1].apart else 1):
                    find_part(&of_h, &m.axis[1], b, box.begin[2], box.count[2], th)
                    h = 0
                    while h < of_h.length:
                        height = of_h.source + h * of_h.source_step
                        outside = not conv_inside(a, depth) or not conv_inside(b, height)
                        row = window + n * m.batch_pitch + (of_d.first + d) * m.pitch[0] + (of_h.first + h) * m.pitch[1]
                        of = source + (box.begin[0] + n) * x.batch + depth * x.axis[0] + height * x.axis[1]
                        rows = 1
                        if joins and not outside:
                            rows = min(of_h.length - h, b.source_size - height)
                            fill_joined(row, m, walk, box, of, x, channels, rows)
                        else:
                            fill_row(row, m, walk, box, of, x, channels, outside)
                        h += rows
