"""Blocks of sums: their sizes, which ``plan.py`` chooses, and their memory."""

from libc.stdint cimport int64_t

from scalar cimport compute
from ukernel cimport VECTOR_BYTES, whole_vectors

cdef extern from "<stdlib.h>" nogil:
    void *aligned_alloc(size_t alignment, size_t size)

cdef struct Blocks:  # plan.Plan, field for field
    int64_t threads
    int64_t columns_follow_memory  # columns_are_channels or columns_are_taps of the table above
    int64_t depth  # of a panel
    int64_t rows, columns  # of a block of sums
    int64_t slices  # of the depth of wgrad, summed in order


cdef inline void *allocate(int64_t size) except NULL:
    """size bytes at the start of a cache line."""
    cdef inline void *memory = aligned_alloc(64, <size_t>in_lines(max(size, 64)))
    if memory == NULL:
        raise MemoryError(f"no {size} bytes of scratch memory for the convolution")
    return memory


cdef inline int64_t in_lines(int64_t size) noexcept nogil:
    """size bytes, rounded up to whole cache lines."""
    return (size + 63) // 64 * 64


cdef inline int64_t count_blocks(int64_t length, int64_t block) noexcept nogil:
    return (length + block - 1) // block


cdef inline int64_t padded_row(int64_t columns, compute kind) noexcept nogil:
    """Elements between rows of a block: whole vectors, and never a power of two, whose rows would share cache sets."""
    return whole_vectors(columns, kind) + VECTOR_BYTES // <int64_t>sizeof(compute)
