"""Elements copied from one order of axes into another."""

from cython.parallel cimport prange
from libc.stdint cimport int64_t

ctypedef fused element:
    unsigned short
    unsigned int
    unsigned long long


cdef inline void copy_row(
    const element *source, element *target, int64_t count, int64_t source_step, int64_t target_step
) noexcept nogil:
    cdef int64_t i
    if source_step == 1 and target_step == 1:
        for i in range(count):
            target[i] = source[i]
    else:
        for i in range(count):
            target[i * target_step] = source[i * source_step]


cdef inline void copy_rows(
    const element[:, :, :, :, :, :, :] source, element[:, :, :, :, :, :, :] target, int64_t block
) noexcept nogil:
    """What the last two axes span, at place ``block`` of the others."""
    cdef const element *s = &source[0, 0, 0, 0, 0, 0, 0]
    cdef element *t = &target[0, 0, 0, 0, 0, 0, 0]
    cdef int64_t size = sizeof(element)
    cdef int64_t axis, i
    for axis in range(4, -1, -1):
        i = block % target.shape[axis]
        block = block // target.shape[axis]
        s += i * (source.strides[axis] // size)
        t += i * (target.strides[axis] // size)
    for i in range(target.shape[5]):
        copy_row(
            s + i * (source.strides[5] // size), t + i * (target.strides[5] // size), target.shape[6],
            source.strides[6] // size, target.strides[6] // size,
        )


cdef inline int rearrange_elements(
    const element[:, :, :, :, :, :, :] source, element[:, :, :, :, :, :, :] target, int threads
) except -1:
    """target = source, element by element; the two have one shape, without an extent of zero."""
    cdef int64_t blocks = 1
    cdef int64_t axis, block
    for axis in range(5):
        blocks *= target.shape[axis]
    if threads == 1:  # without an OpenMP region, which would cost a system call
        for block in range(blocks):
            copy_rows(source, target, block)
    else:
        for block in prange(blocks, nogil=True, num_threads=threads, schedule="static"):
            copy_rows(source, target, block)
    return 0
