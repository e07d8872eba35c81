"""Sums that came out as NaN, formed again from the terms that exist.

A window holds zero where a tap lies in padding, and zero times infinity is NaN, but by the definition there is no such
term. A NaN among sums that padding took part in is therefore formed again, one term after the other, unless it belongs
there: a term that exists is NaN. That is found out once for all sums that have the term, since a training run that has
diverged has NaN everywhere. In fprop and dgrad there is none to form again where the filter is finite.
"""

from libc.stdint cimport int64_t, uint64_t

from problem cimport conv_axis, conv_inside, conv_source, conv_target, conv_walk
from scalar cimport compute, real, scalar, widen
from tensor cimport Tensor, count_taps, filter_offset, find_tap


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


cdef inline bint sees_padding(const conv_walk *walk, const int64_t *position) noexcept nogil:
    """Whether some tap of a position (batch, depth, height, width) lies outside the source."""
    cdef int axis
    cdef const conv_axis *a
    for axis in range(3):
        a = &walk.axis[axis]
        if not conv_inside(a, conv_source(a, position[1 + axis], 0)):
            return True
        if not conv_inside(a, conv_source(a, position[1 + axis], a.taps - 1)):
            return True
    return False


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


cdef inline bint position_has_nan(
    const conv_walk *walk, const scalar *source, const Tensor *x, const int64_t *position, int64_t channels, real kind
) noexcept nogil:
    """Whether a position sees NaN in the source, so that its sums are NaN for all outputs."""
    cdef int64_t t, c, offset
    cdef int64_t tap[3]
    for t in range(count_taps(walk)):
        find_tap(walk, t, tap)
        if find_source(walk, x, position, tap, &offset):
            for c in range(channels):
                if widen(source[offset + c * x.channel], kind) != widen(source[offset + c * x.channel], kind):
                    return True
    return False


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
                return total
    return total


cdef struct Meeting:  # of one tap with the positions at which it lies in the source: a range on each axis
    int64_t count[3]
    int64_t source, target  # elements to the first of them
    int64_t source_step[3]
    int64_t target_step[3]
    bint everywhere  # at all positions


cdef inline void find_meeting(
    Meeting *m, const conv_walk *walk, const Tensor *x, const Tensor *y, int64_t t
) noexcept nogil:
    cdef int axis
    cdef int64_t begin, end
    cdef int64_t tap[3]
    cdef const conv_axis *a
    find_tap(walk, t, tap)
    m.source, m.target, m.everywhere = 0, 0, True
    for axis in range(3):
        a = &walk.axis[axis]
        begin, end = 0, a.positions
        while begin < end and not conv_inside(a, conv_source(a, begin, tap[axis])):
            begin += 1
        while end > begin and not conv_inside(a, conv_source(a, end - 1, tap[axis])):
            end -= 1
        m.count[axis] = end - begin
        m.everywhere = m.everywhere and end - begin == a.positions
        m.source += conv_source(a, begin, tap[axis]) * x.axis[axis]
        m.target += conv_target(a, begin) * y.axis[axis]
        m.source_step[axis], m.target_step[axis] = a.source_step * x.axis[axis], a.target_step * y.axis[axis]


cdef inline bint meeting_has_nan(
    const Meeting *m, const scalar *values, int64_t image, const int64_t *step, int64_t batch, real kind
) noexcept nogil:
    """Whether there is NaN among a tensor's elements that meet, ``values`` being the first of them."""
    cdef int64_t n, d, h, w
    cdef const scalar *row
    for n in range(batch):
        for d in range(m.count[0]):
            for h in range(m.count[1]):
                row = values + n * image + d * step[0] + h * step[1]
                for w in range(m.count[2]):
                    if widen(row[w * step[2]], kind) != widen(row[w * step[2]], kind):
                        return True
    return False


cdef inline real meeting_sum(
    const Meeting *m, const scalar *source, const Tensor *x, const scalar *target, const Tensor *y, int64_t batch,
    real kind,
) noexcept nogil:
    """filter(o, t, c), where ``source`` and ``target`` point at the first elements of channels c and o that meet."""
    cdef int64_t n, d, h, w
    cdef const scalar *of
    cdef const scalar *by
    cdef real total = 0
    for n in range(batch):
        for d in range(m.count[0]):
            for h in range(m.count[1]):
                of = source + n * x.batch + d * m.source_step[0] + h * m.source_step[1]
                by = target + n * y.batch + d * m.target_step[0] + h * m.target_step[1]
                for w in range(m.count[2]):
                    total += widen(of[w * m.source_step[2]], kind) * widen(by[w * m.target_step[2]], kind)
                    if total != total:
                        return total
    return total


cdef enum:
    MASKED = 64  # outputs of which one word says whether they have NaN


cdef inline void repair_tap(
    const Meeting *m, const scalar *source, const Tensor *x, const scalar *target, const Tensor *y, int64_t batch,
    int64_t channels, int64_t outputs, real *sums, int64_t sums_channel,
) noexcept nogil:
    """Form the sums of a tap again that are NaN, sums[c * sums_channel + o]; pointers as those of ``meeting_sum``."""
    cdef int64_t block, first, c, o
    cdef uint64_t asked, nan, bit
    cdef int source_nan
    cdef const scalar *of
    cdef const scalar *by
    cdef real *sum
    for block in range((outputs + MASKED - 1) // MASKED):
        first = block * MASKED
        asked = nan = 0  # of the outputs from there on
        for c in range(channels):
            of = source + c * x.channel
            source_nan = -1
            for o in range(first, min(outputs, first + MASKED)):
                sum = sums + c * sums_channel + o
                if sum[0] == sum[0]:
                    continue
                by = target + o * y.channel
                bit = <uint64_t>1 << (o - first)
                if not asked & bit:
                    asked |= bit
                    if meeting_has_nan(m, by, y.batch, m.target_step, batch, sum[0]):
                        nan |= bit
                if nan & bit:
                    continue
                if source_nan < 0:
                    source_nan = meeting_has_nan(m, of, x.batch, m.source_step, batch, sum[0])
                if source_nan:
                    break
                sum[0] = meeting_sum(m, of, x, by, y, batch, sum[0])
