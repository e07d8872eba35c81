"""The rate of the register tile alone, on panels in the cache: what the kernels can reach at most."""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from blocks cimport allocate, first_line, in_lines, multiples
from scalar cimport compute
from tasks cimport team_size
from ukernel cimport PAIRS, TILE_ROWS, multiply_strip, strip_width


cdef inline void repeat_tile(char *scratch, int way, int64_t depth, int64_t count, compute kind) noexcept nogil:
    cdef int64_t i, _repetition, width = strip_width(kind)
    cdef compute *a = <compute *>scratch
    cdef compute *b = a + TILE_ROWS * depth
    cdef compute *c = b + width * depth
    cdef int32_t *row = <int32_t *>(c + TILE_ROWS * width)
    cdef int32_t *a_depth = row + TILE_ROWS
    cdef int32_t *b_depth = a_depth + depth
    multiples(row, depth, TILE_ROWS)
    multiples(a_depth, 1, depth)
    multiples(b_depth, width, depth)
    for i in range((TILE_ROWS + width) * depth):
        a[i] = <compute>(1 + i % 3)
    memset(c, 0, TILE_ROWS * width * sizeof(compute))
    for _repetition in range(count):
        multiply_strip(way, False, TILE_ROWS, width, depth, depth, a, row, a_depth, b, b_depth, c, NULL, width, False)


cdef inline int64_t repeat_tiles(int way, int64_t depth, int64_t count, int threads, compute kind) except -1:
    cdef int64_t elements = TILE_ROWS * depth + strip_width(kind) * depth + TILE_ROWS * strip_width(kind)
    cdef int64_t size = in_lines(elements * sizeof(compute) + (TILE_ROWS + 2 * depth) * sizeof(int32_t))
    cdef int _thread
    cdef void *memory
    cdef char *scratch
    threads = team_size(threads)
    memory = allocate(threads * size, 0, 0)
    scratch = first_line(memory)
    for _thread in prange(threads, schedule="static", num_threads=threads, use_threads_if=threads > 1, nogil=True):
        repeat_tile(scratch + threadid() * size, way, depth, count, kind)
    free(memory)
    return (4 if way == PAIRS else 2) * threads * count * depth * TILE_ROWS * strip_width(kind)
