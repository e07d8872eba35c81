"""The speed of the register tile alone, on panels in the cache: an upper bound of the kernels' speed."""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from base.memory cimport multiples
from base.scalar cimport compute
from parallel.tasks cimport begin_call, end_call, form_team, run, task_function, team
from tile.matrix cimport release_matrices
from tile.multiply cimport Columns, Depth, Rows, Sums, multiply_rows
from tile.ukernel cimport CARRIED, MATRICES, SCALARS, TILE_ROWS, strip_width

cdef enum:
    MATRIX_ROWS = 32  # of two tile registers

cdef struct PeakJob:
    int way
    int64_t rows, depth
    int64_t count  # of tiles


cdef inline void repeat_tile(const PeakJob *job, const void *source, compute *a, int64_t task) noexcept nogil:
    """Compute all tiles of one thread, with panels in its scratch memory."""
    cdef int way = job.way
    cdef int64_t i, _repetition, rows = job.rows, depth = job.depth, width = strip_width(a[0])
    cdef compute *b = a + rows * depth
    cdef compute *c = b + width * depth
    cdef int32_t *row = <int32_t *>(c + rows * width)
    cdef int32_t *a_depth = row + rows
    cdef int32_t *b_depth = a_depth + depth
    multiples(row, depth, rows)
    multiples(a_depth, 1, depth)
    multiples(b_depth, width, depth)
    for i in range((rows + width) * depth):
        a[i] = <compute>(1 + i % 3)
    memset(c, 0, rows * width * sizeof(compute))
    for _repetition in range(job.count):
        multiply_rows(Depth(way, depth, depth), a, Rows(row, a_depth, rows, 0, False), b, Columns(b_depth, width), c,
                      Sums(0, NULL, width, CARRIED))
    release_matrices()


cdef inline int64_t repeat_tiles(int way, int64_t depth, int64_t count, int threads, compute kind) except -1:
    cdef int64_t rows = MATRIX_ROWS if way == MATRICES else TILE_ROWS
    cdef int64_t elements = rows * depth + strip_width(kind) * depth + rows * strip_width(kind)
    cdef int64_t size = elements * sizeof(compute) + (rows + 2 * depth) * sizeof(int32_t)
    cdef PeakJob job
    cdef team all
    job.way, job.rows, job.depth, job.count = way, rows, depth, count
    form_team(&all, threads)
    try:
        begin_call(&all, 0, all.threads, size, None)
        run(&all, <task_function>repeat_tile[compute], &job, NULL, 0, all.threads)
    finally:
        end_call(&all)
    return (2 if way == SCALARS else 4) * all.threads * count * depth * rows * strip_width(kind)
