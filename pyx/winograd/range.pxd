"""The range in which results of Winograd's algorithm stand; outside of it, each is formed from its own terms alone.

Above, NaN, infinity and overflow reach every result of a tile. Below, what the transforms and products give is rounded
to multiples of 2^-149, the least subnormal number. Each rounding reaches a result through the other operand::

    error  <=  A * 2^-149 * max(1, greatest source, greatest filter)

A counts the terms of a sum and what the transforms make of them: 2^49 is more than any problem has. So this error is
below 2^-20 of the greatest result where that is at least 2^-80 of the maximum. Transforms of an operand round nothing
where its least magnitude that is not zero is far from the subnormal numbers; so the source need not be looked at then.

A result that only float16 makes infinite is above, too: it may be so great that errors relative to it are of no use.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy, memset

from base.scalar cimport f16, widen
from parallel.tasks cimport team
from winograd.transform cimport magnitudes, stored

cdef enum:
    INFINITE_BITS = 255 << 23
    F16_INFINITE_BITS = 0x477ff000  # of the least float that is rounded to infinity
    FAR_BITS = 27 << 23  # of 2^-100: differences are multiples of 2^-123, and their quotients exact enough

# What a worker has seen, as bits of floats, at the head of its scratch memory: whole cache lines, the one that is
# fetched with the first included.
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
    """Whether the greatest magnitude of an operand, or of sums that are stored in the type of ``kind``, is."""
    if stored is f16:
        return operand >= INFINITE_BITS or result >= F16_INFINITE_BITS
    else:
        return operand >= INFINITE_BITS or result >= INFINITE_BITS


cdef inline bint is_lost(const Extremes *seen, const stored *kind) noexcept nogil:
    """Whether what a worker has seen is not finite: no result will stand, so the rest of its tasks is left out."""
    return are_infinite(seen.operand.most, seen.result, kind)


cdef inline float float_of(uint32_t bits) noexcept nogil:
    cdef float value
    memcpy(&value, &bits, sizeof(value))
    return value


cdef inline float least_result(float greatest) noexcept nogil:
    """The least that the greatest result may be, beside operands of this magnitude."""
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
    """Whether the result is in the algorithm's range; ``other`` is the operand that nobody has looked at."""
    cdef int i
    cdef const Extremes *seen
    cdef uint32_t most = 0, least = <uint32_t>-1, result = 0
    for i in range(workers):
        seen = seen_by(t, i)
        most, least = max(most, seen.operand.most), min(least, seen.operand.least)
        result = max(result, seen.result)
    if are_infinite(most, result, &other[0, 0, 0, 0, 0, 0]):
        return False
    if most == 0:  # of zeros alone
        return True
    if result == 0:
        return greatest_of(other) == 0
    if float_of(result) < least_result(float_of(most)):
        return False
    return least >= FAR_BITS or float_of(result) >= least_result(greatest_of(other))
