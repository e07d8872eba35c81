"""Offsets of elements in the three tensors: source, filter and target."""

from libc.stdint cimport int64_t

from base.problem cimport conv_axis, conv_filter, conv_target, conv_walk

cdef struct Tensor:  # strides in elements
    int64_t batch, group, channel  # of the filter: output channel, group, input channel
    int64_t axis[3]


cdef inline void describe_tensor(Tensor *t, const Py_ssize_t *strides, int64_t itemsize) noexcept nogil:
    """A tensor of shape (batch, group, channel, depth, height, width)."""
    cdef int axis
    t.batch = strides[0] // itemsize
    t.group = strides[1] // itemsize
    t.channel = strides[2] // itemsize
    for axis in range(3):
        t.axis[axis] = strides[3 + axis] // itemsize


cdef inline void describe_filter(Tensor *t, const Py_ssize_t *strides, int64_t itemsize) noexcept nogil:
    """A tensor of shape (group, output channel, input channel, depth, height, width)."""
    describe_tensor(t, strides, itemsize)
    t.batch, t.group = t.group, t.batch


cdef inline int64_t count_taps(const conv_walk *walk) noexcept nogil:
    return walk.axis[0].taps * walk.axis[1].taps * walk.axis[2].taps


cdef inline void find_tap(const conv_walk *walk, int64_t t, int64_t *tap) noexcept nogil:
    """tap[axis] = the index of tap t on each axis."""
    cdef int axis
    for axis in range(2, -1, -1):
        tap[axis] = t % walk.axis[axis].taps
        t = t // walk.axis[axis].taps


cdef inline int64_t filter_offset(const Tensor *w, const conv_walk *walk, int64_t t) noexcept nogil:
    """Offset of tap t from the filter's first element."""
    cdef int64_t tap[3]
    cdef int axis
    cdef int64_t offset = 0
    find_tap(walk, t, tap)
    for axis in range(3):
        offset += conv_filter(&walk.axis[axis], tap[axis]) * w.axis[axis]
    return offset


cdef inline bint taps_are_adjacent(const Tensor *w, const conv_walk *walk) noexcept nogil:
    """Whether tap t lies t elements behind the first tap."""
    cdef int axis
    cdef int64_t taps = 1
    for axis in range(2, -1, -1):
        if walk.axis[axis].taps > 1 and walk.axis[axis].filter_step * w.axis[axis] != taps:
            return False
        taps *= walk.axis[axis].taps
    return True


cdef inline int64_t target_offset(
    const Tensor *y, const conv_walk *walk, int64_t n, int64_t d, int64_t h, int64_t w
) noexcept nogil:
    """Offset of position (d, h, w) of image n from the target's first element."""
    return (n * y.batch + conv_target(&walk.axis[0], d) * y.axis[0] + conv_target(&walk.axis[1], h) * y.axis[1]
            + conv_target(&walk.axis[2], w) * y.axis[2])
