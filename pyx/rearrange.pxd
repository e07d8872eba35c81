"""Elements copied from one order of axes into another."""

from cython.parallel cimport prange
from libc.stdint cimport int64_t

from blocks cimport count_blocks
from copy cimport transpose_words
from tasks cimport team_size

ctypedef fused element:
    unsigned short
    unsigned int
    unsigned long long

cdef enum:
    ROWS = 32  # of a task
    PIECES = 32  # into which rows are cut at most
    COLUMNS = 2048  # of a piece, at least
    LINE = 16  # elements of 4 bytes
    MANY_LINES = 8  # of a row, for there to be tasks
    SHARING_PITCH = 4096  # bytes between rows that share their place in the cache


cdef inline void copy_part(
    const element *source, element *target, int64_t rows, int64_t columns, int64_t source_row, int64_t source_step,
    int64_t target_row, int64_t target_step,
) noexcept nogil:
    """target[i * target_row + j * target_step] = source[i * source_row + j * source_step]"""
    cdef int64_t i, j
    if element is uint:
        if source_row == target_step == 1 and source_step != 1:
            transpose_words(target, NULL, target_row, source, source_step, rows, columns)
            return
    for i in range(rows):
        if source_step == 1 and target_step == 1:
            for j in range(columns):
                target[i * target_row + j] = source[i * source_row + j]
        else:
            for j in range(columns):
                target[i * target_row + j * target_step] = source[i * source_row + j * source_step]


cdef inline void copy_task(
    const element[:, :, :, :, :, :, :] source, element[:, :, :, :, :, :, :] target, int64_t rows, int64_t columns,
    int64_t places, int64_t task,
) noexcept nogil:
    """A part of what the last two axes span, at one place or all of the axis before them, and at one of the others."""
    cdef const element *s = &source[0, 0, 0, 0, 0, 0, 0]
    cdef element *t = &target[0, 0, 0, 0, 0, 0, 0]
    cdef int64_t size = sizeof(element), parts = count_blocks(target.shape[5], rows)
    cdef int64_t pieces = count_blocks(target.shape[6], columns)
    cdef int64_t axis, i, first = task % parts * rows, column = task // parts % pieces * columns
    cdef int64_t block = task // parts // pieces
    for axis in range(4 if places == 1 else 3, -1, -1):
        i = block % target.shape[axis]
        block = block // target.shape[axis]
        s += i * (source.strides[axis] // size)
        t += i * (target.strides[axis] // size)
    s += first * (source.strides[5] // size) + column * (source.strides[6] // size)
    t += first * (target.strides[5] // size) + column * (target.strides[6] // size)
    for i in range(places):
        copy_part(s + i * (source.strides[4] // size), t + i * (target.strides[4] // size),
                  min(rows, target.shape[5] - first), min(columns, target.shape[6] - column),
                  source.strides[5] // size, source.strides[6] // size,
                  target.strides[5] // size, target.strides[6] // size)


cdef inline int rearrange_elements(
    const element[:, :, :, :, :, :, :] source, element[:, :, :, :, :, :, :] target, int threads
) except -1:
    """target = source, element by element; the two have one shape, without an extent of zero.

    Of rows of the target that share their place in the cache few are written at a time, at one place after the other,
    for what is written then continues where it ended. Long rows are cut, for there to be tasks.
    """
    cdef bint shares = (target.shape[4] > 1 and target.strides[5] % SHARING_PITCH == 0
                        and target.shape[5] >= MANY_LINES * LINE)
    cdef int64_t rows = LINE if shares else ROWS, places = target.shape[4] if shares else 1
    cdef int64_t columns = target.shape[6] if shares else max(<int64_t>COLUMNS, count_blocks(target.shape[6], PIECES))
    cdef int64_t axis, task, tasks = count_blocks(target.shape[5], rows) * count_blocks(target.shape[6], columns)
    for axis in range(4 if shares else 5):
        tasks *= target.shape[axis]
    threads = team_size(threads)
    if threads == 1:  # without an OpenMP region, which would cost a system call
        for task in range(tasks):
            copy_task(source, target, rows, columns, places, task)
    else:
        for task in prange(tasks, nogil=True, num_threads=threads, schedule="static"):
            copy_task(source, target, rows, columns, places, task)
    return 0
