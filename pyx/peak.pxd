"""The rate of the register tile alone, on panels in the cache: what the kernels can reach at most."""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from blocks cimport allocate, in_lines
from scalar cimport compute
from ukernel cimport TILE_ROWS, multiply, strip_width


cdef inline void repeat_tile(char *scratch, int64_t depth, int64_t count, compute kind) noexcept nogil:
    cdef int64_t i, _repetition
    cdef compute *a = <compute *>scratch
    cdef compute *b = a + TILE_ROWS * depth
    cdef compute *c = b + strip_width(kind) * depth
    for i in range((TILE_ROWS + strip_width(kind)) * depth):
        a[i] = <compute>(1 + i % 3)
    memset(c, 0, TILE_ROWS * strip_width(kind) * sizeof(compute))
    for _repetition in range(count):
        multiply(TILE_ROWS, strip_width(kind), depth, a, depth, 1, b, 0, depth, c, strip_width(kind))


cdef inline int64_t repeat_tiles(int64_t depth, int64_t count, int threads, compute kind) except -1:
    cdef int64_t size = in_lines((TILE_ROWS + strip_width(kind)) * depth * sizeof(compute)
                                 + TILE_ROWS * strip_width(kind) * sizeof(compute))
    cdef char *scratch = <char *>allocate(threads * size)
    cdef int _thread
    for _thread in prange(threads, schedule="static", num_threads=threads, use_threads_if=threads > 1, nogil=True):
        repeat_tile(scratch + threadid() * size, depth, count, kind)
    free(scratch)
    return 2 * threads * count * depth * TILE_ROWS * strip_width(kind)
