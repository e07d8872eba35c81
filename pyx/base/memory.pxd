"""Scratch memory in whole cache lines, and tables of offsets in it."""

from libc.stdint cimport int32_t, int64_t

cdef extern from "base/kept_memory.h" nogil:
    void *take_memory(size_t bytes)
    void give_memory(void *memory, size_t most)


cdef inline void *allocate(int64_t one, int64_t two, int64_t three) except NULL:
    """Memory for three consecutive parts from ``first_line`` on. All sizes but the last must be whole cache lines.

    One malloc serves all three, because three calls take as long as the products of a small convolution.
    ``give_memory`` frees it.
    """
    cdef void *memory = NULL
    if max(one, two, three) < <int64_t>1 << 60:  # so that their sum fits into an int64
        memory = take_memory(<size_t>(one + two + three + 64))
    if memory == NULL:
        raise MemoryError(f"no {one}, {two} and {three} bytes of scratch memory for the convolution")
    return memory


cdef inline char *first_line(void *memory) noexcept nogil:
    """The first address in ``memory`` that is a multiple of 64."""
    return <char *>in_lines(<int64_t>memory)


cdef inline int64_t in_lines(int64_t size) noexcept nogil:
    """size bytes, rounded up to whole cache lines."""
    return (size + 63) // 64 * 64


cdef inline int64_t count_blocks(int64_t length, int64_t block) noexcept nogil:
    return (length + block - 1) // block


cdef inline void multiples(int32_t *table, int64_t step, int64_t count) noexcept nogil:
    """table[i] = i * step."""
    cdef int64_t i
    for i in range(count):
        table[i] = <int32_t>(i * step)


cdef inline void transposed_multiples(int32_t *table, int64_t step, int64_t rows, int64_t columns) noexcept nogil:
    """table[r * columns + j] = (j * rows + r) * step."""
    cdef int64_t r, j
    for r in range(rows):
        for j in range(columns):
            table[r * columns + j] = <int32_t>((j * rows + r) * step)
