"""Sums that came out as NaN, formed again from the terms that exist.

A window holds zero where a tap lies in padding, and zero times infinity is NaN, but by the definition there is no such
term. A NaN in a block of sums that padding took part in is therefore formed again, one term after the other; a NaN that
belongs there comes back at its first term that is NaN. In fprop and dgrad there is none where the filter is finite.
"""

from libc.stdint cimport int64_t

from problem cimport conv_inside, conv_source, conv_walk
from scalar cimport compute, real, scalar, widen
from tensor cimport Tensor, count_taps, filter_offset, find_tap, target_offset


cdef inline bint is_padded(const conv_walk *walk) noexcept nogil:
    """Whether some tap of some position lies outside the source; the extremes are at the ends of both."""
    cdef int axis, p, t
    cdef int64_t source
    for axis in range(3):
        for p in range(2):
            for t in range(2):
                source = conv_source(&walk.axis[axis], p * (walk.axis[axis].positions - 1),
                                     t * (walk.axis[axis].taps - 1))
                if not conv_inside(&walk.axis[axis], source):
                    return True
    return False


cdef inline bint any_nan(const real *sums, int64_t rows, int64_t columns, int64_t row_stride) noexcept nogil:
    cdef int64_t r, j
    cdef int found = 0
    for r in range(rows):
        for j in range(columns):
            found |= sums[r * row_stride + j] != sums[r * row_stride + j]
    return found


cdef inline bint is_finite(const compute *values, int64_t count) noexcept nogil:
    cdef int64_t i
    cdef int found = 0
    for i in range(count):
        found |= values[i] - values[i] != 0
    return not found


cdef inline bint find_source(
    const conv_walk *walk, const Tensor *x, const int64_t *position, const int64_t *tap, int64_t *offset
) noexcept nogil:
    """Whether the source has an element under a tap of a position (batch, depth, height, width), and where."""
    cdef int axis
    cdef int64_t source
    offset[0] = position[0] * x.batch
    for axis in range(3):
        source = conv_source(&walk.axis[axis], position[1 + axis], tap[axis])
        if not conv_inside(&walk.axis[axis], source):
            return False
        offset[0] += source * x.axis[axis]
    return True


cdef inline real filter_sum(
    const conv_walk *walk, const scalar *source, const Tensor *x, const int64_t *position,
    const scalar *filter, const Tensor *w, int64_t channels, real kind,
) noexcept nogil:
    """target(position, o), where ``source`` points at the group and ``filter`` at output channel o."""
    cdef int64_t t, c, offset, tap_offset
    cdef int64_t tap[3]
    cdef real total = 0
    for t in range(count_taps(walk)):
        find_tap(walk, t, tap)
        if not find_source(walk, x, position, tap, &offset):
            continue
        tap_offset = filter_offset(w, walk, t)
        for c in range(channels):
            total += widen(source[offset + c * x.channel], kind) * widen(filter[tap_offset + c * w.channel], kind)
        if total != total:
            break
    return total


cdef inline real position_sum(
    const conv_walk *walk, const scalar *source, const Tensor *x, int64_t t, const scalar *target, const Tensor *y,
    int64_t batch, real kind,
) noexcept nogil:
    """filter(o, t, c), where ``source`` points at channel c and ``target`` at channel o."""
    cdef int64_t n, d, h, w, offset
    cdef int64_t tap[3]
    cdef int64_t position[4]
    cdef real total = 0
    find_tap(walk, t, tap)
    for n in range(batch):
        for d in range(walk.axis[0].positions):
            for h in range(walk.axis[1].positions):
                for w in range(walk.axis[2].positions):
                    position[0], position[1], position[2], position[3] = n, d, h, w
                    if find_source(walk, x, position, tap, &offset):
                        total += (widen(source[offset], kind)
                                  * widen(target[target_offset(y, walk, n, d, h, w)], kind))
                if total != total:
                    return total
    return total
