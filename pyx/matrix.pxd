"""Every operand of a convolution as one matrix: positions by (tap, channel) columns.

A column q is a tap t and a channel c; which of the two runs faster follows the tensors' memory::

    q = t * channels + c        or, where ``taps_fastest``,        q = c * taps + t

    source    m(p, (t, c)) = x or dy of the walk, at position p and tap t; zero where that is padding  ("im2col")
    target    m(p, c)      = y, or one stride phase of dx, at position p
    filter    m(o, (t, c)) = w of output channel o; its "positions" are output channels

    fprop, dgrad:  target(p, o)  =  sum over q of source(p, q) * filter(o, q)
    wgrad:         filter(o, q)  =  sum over p of target(p, o) * source(p, q)

No such matrix exists in memory: it is strides, gathered panel by panel (pack.pxd) and scattered back (store.pxd).
"""

from libc.stdint cimport int64_t

from problem cimport conv_axis, conv_filter, conv_source, conv_target, conv_walk

cdef struct Tap:
    int64_t offset  # in elements
    int64_t coordinate[3]  # what the tap adds to a position's coordinate

cdef struct Matrix:
    int64_t batch, batch_stride, group_stride
    int64_t positions[3]  # m(p, ·): p = ((n * positions[0] + d) * positions[1] + h) * positions[2] + w
    int64_t begin[3]  # coordinate of position zero
    int64_t step[3]  # between coordinates of neighbours
    int64_t stride[3]  # in elements, of one coordinate
    int64_t size[3]
    int64_t taps, channels, channel_stride
    bint taps_fastest
    Tap *tap
    bint padded  # whether a tap may lie outside the tensor

cdef struct Run:
    # positions begin .. begin + length - 1 of a block, evenly spaced in memory and in the last coordinate
    int64_t begin, length
    int64_t offset  # in elements, of the first position under a tap of offset zero
    int64_t coordinate[3]


cdef inline int64_t columns_of(const Matrix *m) noexcept nogil:
    return m.taps * m.channels


cdef inline int64_t positions_of(const Matrix *m) noexcept nogil:
    return m.batch * m.positions[0] * m.positions[1] * m.positions[2]


cdef inline int64_t tap_of(const Matrix *m, int64_t q) noexcept nogil:
    return q % m.taps if m.taps_fastest else q // m.channels


cdef inline int64_t channel_of(const Matrix *m, int64_t q) noexcept nogil:
    return q // m.taps if m.taps_fastest else q % m.channels


cdef inline int64_t column_of(const Matrix *m, int64_t t, int64_t c) noexcept nogil:
    return c * m.taps + t if m.taps_fastest else t * m.channels + c


cdef inline int64_t column_offset(const Matrix *m, int64_t q) noexcept nogil:
    """In elements."""
    return m.tap[tap_of(m, q)].offset + channel_of(m, q) * m.channel_stride


cdef inline int64_t channels_between(const Matrix *m, int64_t t, int64_t q0, int64_t q1, int64_t *first) noexcept nogil:
    """How many columns of q0 .. q1 - 1 belong to tap t; their channels are first, first + 1, ..."""
    cdef int64_t end
    if m.taps_fastest:
        first[0] = (q0 - t + m.taps - 1) // m.taps if q0 > t else 0
        end = (q1 - t + m.taps - 1) // m.taps if q1 > t else 0
    else:
        first[0] = max(<int64_t>0, q0 - t * m.channels)
        end = min(m.channels, q1 - t * m.channels)
    return end - first[0]


cdef inline int64_t position_stride(const Matrix *m) noexcept nogil:
    """Elements between neighbouring positions of a run."""
    return m.step[2] * m.stride[2]


cdef inline bint exists(const Matrix *m, const Run *run, const Tap *tap) noexcept nogil:
    """Whether the tap of the run's first position lies inside the tensor."""
    cdef int axis
    cdef int64_t coordinate
    for axis in range(3):
        coordinate = run.coordinate[axis] + tap.coordinate[axis]
        if coordinate < 0 or coordinate >= m.size[axis]:
            return False
    return True


cdef inline int64_t find_runs(const Matrix *m, int64_t begin, int64_t end, Run *runs) noexcept nogil:
    """The runs of positions begin .. end - 1; their number. ``runs`` has room for end - begin of them."""
    cdef int64_t count = 0, p = begin, rest, offset, length
    cdef int64_t at[3]
    cdef int64_t coordinate[3]
    cdef int axis
    cdef Run *last
    while p < end:
        rest = p
        for axis in range(2, -1, -1):
            at[axis] = rest % m.positions[axis]
            rest = rest // m.positions[axis]
        offset = rest * m.batch_stride
        for axis in range(3):
            coordinate[axis] = at[axis] * m.step[axis] + m.begin[axis]
            offset += coordinate[axis] * m.stride[axis]
        length = min(m.positions[2] - at[2], end - p)
        last = runs + count - 1
        if not m.padded and count and offset == last.offset + last.length * position_stride(m):
            last.length += length
        else:
            runs[count].begin = p - begin
            runs[count].length = length
            runs[count].offset = offset
            for axis in range(3):
                runs[count].coordinate[axis] = coordinate[axis]
            count += 1
        p += length
    return count


cdef inline int64_t count_taps(const conv_walk *walk) noexcept nogil:
    return walk.axis[0].taps * walk.axis[1].taps * walk.axis[2].taps


cdef inline void find_taps(Matrix *m, const conv_walk *walk, bint of_filter) noexcept nogil:
    """Fill m.tap, which has room for count_taps(walk), with the offsets and coordinates of a walk's taps."""
    cdef int64_t t, rest, index
    cdef int axis
    cdef const conv_axis *a
    m.taps = count_taps(walk)
    for t in range(m.taps):
        rest = t
        m.tap[t].offset = 0
        for axis in range(2, -1, -1):
            a = &walk.axis[axis]
            index = rest % a.taps
            rest = rest // a.taps
            m.tap[t].coordinate[axis] = 0 if of_filter else index * a.source_tap
            m.tap[t].offset += (conv_filter(a, index) if of_filter else index * a.source_tap) * m.stride[axis]


cdef inline void describe(
    Matrix *m, const Py_ssize_t *shape, const Py_ssize_t *strides, int64_t itemsize, bint taps_fastest, Tap *tap
) noexcept nogil:
    """What all have in common: strides of a tensor of shape (batch, group, channel, depth, height, width)."""
    cdef int axis
    m.batch = shape[0]
    m.batch_stride = strides[0] // itemsize
    m.group_stride = strides[1] // itemsize
    m.channels = shape[2]
    m.channel_stride = strides[2] // itemsize
    for axis in range(3):
        m.stride[axis] = strides[3 + axis] // itemsize
    m.padded = False
    m.taps_fastest = taps_fastest
    m.tap = tap


cdef inline void describe_source(
    Matrix *m, const Py_ssize_t *shape, const Py_ssize_t *strides, int64_t itemsize, bint taps_fastest, Tap *tap,
    const conv_walk *walk,
) noexcept nogil:
    cdef int axis
    cdef const conv_axis *a
    cdef int64_t first, last
    describe(m, shape, strides, itemsize, taps_fastest, tap)
    for axis in range(3):
        a = &walk.axis[axis]
        m.positions[axis] = a.positions
        m.begin[axis] = a.source_begin
        m.step[axis] = a.source_step
        m.size[axis] = a.source_size
        # source_step is positive, so the extremes are at the two ends, under the first or the last tap.
        first = a.source_begin + min(<int64_t>0, (a.taps - 1) * a.source_tap)
        last = conv_source(a, a.positions - 1, 0) + max(<int64_t>0, (a.taps - 1) * a.source_tap)
        if first < 0 or last >= a.source_size:
            m.padded = True
    find_taps(m, walk, False)


cdef inline void describe_target(
    Matrix *m, const Py_ssize_t *shape, const Py_ssize_t *strides, int64_t itemsize, bint taps_fastest, Tap *tap,
    const conv_walk *walk,
) noexcept nogil:
    cdef int axis
    describe(m, shape, strides, itemsize, taps_fastest, tap)
    for axis in range(3):
        m.positions[axis] = walk.axis[axis].positions
        m.begin[axis] = conv_target(&walk.axis[axis], 0)
        m.step[axis] = walk.axis[axis].target_step
        m.size[axis] = shape[3 + axis]
        tap.coordinate[axis] = 0
    tap.offset = 0
    m.taps = 1


cdef inline void describe_filter(
    Matrix *m, const Py_ssize_t *shape, const Py_ssize_t *strides, int64_t itemsize, bint taps_fastest, Tap *tap,
    const conv_walk *walk,
) noexcept nogil:
    """A tensor of shape (group, output channel, input channel, depth, height, width)."""
    cdef int axis
    describe(m, shape, strides, itemsize, taps_fastest, tap)
    find_taps(m, walk, True)
    if taps_fastest:
        merge_taps(m)
    # The taps were found with the strides of the spatial axes; from here on the positions are the output channels.
    m.batch = 1
    m.batch_stride = 0
    m.group_stride = strides[0] // itemsize
    for axis in range(3):
        m.positions[axis] = 1
        m.begin[axis] = 0
        m.step[axis] = 1
        m.stride[axis] = 0
        m.size[axis] = 1
    m.positions[2] = shape[1]
    m.stride[2] = strides[1] // itemsize
    m.size[2] = shape[1]


cdef inline void merge_taps(Matrix *m) noexcept nogil:
    """Where a row of the matrix is evenly spaced in memory, taps are channels too: the same columns, one tap."""
    cdef int64_t t, unit
    if m.taps == 0 or m.channel_stride % m.taps != 0:
        return
    unit = m.channel_stride // m.taps
    for t in range(m.taps):
        if m.tap[t].offset != t * unit:
            return
    m.channels *= m.taps
    m.channel_stride = unit
    m.taps = 1


cdef inline int64_t taps_of_operands(const conv_walk *walk) noexcept nogil:
    """Room that describe_operands needs for taps."""
    return 2 * count_taps(walk) + 1


cdef inline void describe_operands(
    Matrix *x, Matrix *w, Matrix *y, const Py_ssize_t *x_shape, const Py_ssize_t *x_strides, const Py_ssize_t *w_shape,
    const Py_ssize_t *w_strides, const Py_ssize_t *y_shape, const Py_ssize_t *y_strides, int64_t itemsize,
    bint taps_fastest, Tap *taps, const conv_walk *walk,
) noexcept nogil:
    """The source x, the filter w and the target y of a walk."""
    describe_source(x, x_shape, x_strides, itemsize, taps_fastest, taps, walk)
    describe_filter(w, w_shape, w_strides, itemsize, taps_fastest, taps + count_taps(walk), walk)
    describe_target(y, y_shape, y_strides, itemsize, taps_fastest, taps + 2 * count_taps(walk), walk)
