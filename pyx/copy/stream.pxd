"""Non-temporal stores of whole cache lines."""

from libc.stdint cimport int64_t

from base.scalar cimport compute
from base.tensor cimport Tensor

cdef extern from "copy/stream.h" nogil:
    void stream_lines(void *to, const void *of, int64_t bytes)
    void end_stream()


cdef inline bint holds_lines(const Tensor *t, const compute *first, int64_t channels) noexcept nogil:
    """Whether ``channels`` adjacent channels of each position, from ``first`` on, are whole cache lines."""
    cdef int axis
    cdef int64_t line = 64 // <int64_t>sizeof(compute)
    for axis in range(3):
        if t.axis[axis] % line:
            return False
    return t.batch % line == 0 and channels % line == 0 and <int64_t>first % 64 == 0
