"""The range in which results of Winograd's algorithm are valid. Outside of it they are recomputed directly.

Above the range: NaN, infinity and overflow reach every result of a tile. A result that is infinite only in float16 is
also above the range, because it may be so great that errors relative to it are useless.

Below the range: transforms and products round to multiples of 2^-149, the least subnormal number. Each rounding error
reaches a result multiplied by the other operand::

    error  <=  A * 2^-149 * max(1, greatest source, greatest filter)

A bounds the number of terms of a sum times their growth by the transforms. It is less than 2^49 for any problem. So the
error is below 2^-20 of the greatest result, if that is at least 2^-80 of the maximum above. The transform of an operand
rounds nothing if its least nonzero magnitude is far above the subnormal numbers. In this case the greatest magnitude of
the source is not needed.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy, memset

from base.scalar cimport f16, widen
from parallel.tasks cimport team
from winograd.transform cimport magnitudes, stored

cdef enum:
    INFINITE_BITS = 255 << 23
    F16_INFINITE_BITS = 0x477ff000  # the least float that float16 rounds to infinity
    FAR_BITS = 27 << 23  # 2^-100: differences are multiples of 2^-123, and their quotients are exact enough

# Magnitudes that a worker has met, as bits of floats, at the head of its scratch memory. The struct fills two cache
# lines, because processors fetch lines in pairs.
cdef struct Extremes:
    magnitudes operand  # the filter, or the target in wgrad
    uint32_t result
    char rest_of_lines[116]


cdef inline Extremes *seen_by(const team *t, int worker) noexcept nogil:
    return <Extremes *>(t.scratch + worker * t.scratch_size)


cdef inline void clear_extremes(const team *t, int workers) noexcept nogil:
    cdef int i
    for i in range(workers):
        memset(seen_by(t, i), 0, sizeof(Extremes))
        seen_by(t, i).operand.least = <uint32_t>-1


cdef inline bint are_infinite(uint32_t operand, uint32_t result, const stored *kind) noexcept nogil:
    """Whether an operand's greatest magnitude is infinite, or a result's after rounding to the type of ``kind``."""
    if stored is f16:
        return operand >= INFINITE_BITS or result >= F16_INFINITE_BITS
    else:
        return operand >= INFINITE_BITS or result >= INFINITE_BITS


cdef inline bint is_lost(const Extremes *seen, const stored *kind) noexcept nogil:
    """Whether a worker has met a nonfinite value, which makes the result invalid. Further tasks are skipped then."""
    return are_infinite(seen.operand.most, seen.result, kind)


cdef inline float float_of(uint32_t bits) noexcept nogil:
    cdef float value
    memcpy(&value, &bits, sizeof(value))
    return value


cdef inline float least_result(float greatest) noexcept nogil:
    """The least valid magnitude of the greatest result, for operands with this greatest magnitude."""
    return max(<float>1, greatest) * <float>2.0**-80


cdef inline float greatest_of(const stored[:, :, :, :, :, :] tensor) noexcept nogil:
    """The greatest magnitude in a tensor that has no NaN."""
    cdef const stored *first = &tensor[0, 0, 0, 0, 0, 0]
    cdef int64_t i, row, rest, axis, place, rows = 1, size = sizeof(stored)
    cdef float value, greatest = 0
    for axis in range(5):
        rows *= tensor.shape[axis]
    for row in range(rows):
        rest, place = row, 0
        for axis in range(4, -1, -1):
            place += rest % tensor.shape[axis] * (tensor.strides[axis] // size)
            rest = rest // tensor.shape[axis]
        for i in range(tensor.shape[5]):
            value = widen(first[place + i * (tensor.strides[5] // size)], greatest)
            greatest = max(greatest, max(value, -value))
    return greatest


cdef inline bint stands(const team *t, int workers, const stored[:, :, :, :, :, :] other) noexcept nogil:
    """Whether the result is in the algorithm's range. ``other`` is the operand whose magnitudes were not collected."""
    cdef int i
    cdef const Extremes *seen
    cdef uint32_t most = 0, least = <uint32_t>-1, result = 0
    for i in range(workers):
        seen = seen_by(t, i)
        most, least = max(most, seen.operand.most), min(least, seen.operand.least)
        result = max(result, seen.result)
    if are_infinite(most, result, &other[0, 0, 0, 0, 0, 0]):
        return False
    if most == 0:  # the operand is zero everywhere
        return True
    if result == 0:
        return greatest_of(other) == 0
    if float_of(result) < least_result(float_of(most)):
        return False
    return least >= FAR_BITS or float_of(result) >= least_result(greatest_of(other))
