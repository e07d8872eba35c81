"""Checks of padding and of values, so that NaN reaches exactly the results that the definition says.

A window holds zero under taps in padding, and zero times infinity is NaN. The definition has no such term. So a sum
with padding that comes out as NaN is recomputed term by term (repair.pxd, repair_filter.pxd), unless a term of the
definition makes it NaN. The evidence for such a term is looked up once for all sums that share it, because a training
run that has diverged has NaN everywhere.
"""

from libc.stdint cimport int64_t, uint32_t

from base.problem cimport conv_inside, conv_source, conv_walk
from base.scalar cimport compute, real


cdef inline bint is_padded(const conv_walk *walk) noexcept nogil:
    """Whether some tap of some position lies outside the source.

    The coordinate is linear in both, so first and last positions and taps suffice.
    """
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


cdef inline bint are_finite_pairs(const compute *words, int64_t count) noexcept nogil:
    """Whether pairs of bfloat16 are finite: adding one to an exponent of all ones carries into the sign bit."""
    cdef int64_t i
    cdef uint32_t found = 0
    for i in range(count):
        found |= ((<const uint32_t *>words)[i] & <uint32_t>0x7f807f80) + <uint32_t>0x00800080
    return not found & <uint32_t>0x80008000
