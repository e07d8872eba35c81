"""Copies of whole arrays to another order of axes or another type."""

from libc.stdint cimport int64_t

from base.memory cimport count_blocks
from base.scalar cimport bf16, f16
from copy.load_store cimport load_block, store_block, transpose_words
from parallel.tasks cimport begin_listening, form_team, run, task_function, task_range, team

ctypedef fused element:
    unsigned short
    unsigned int
    unsigned long long

ctypedef fused half:
    f16
    bf16

cdef enum:
    ROWS = 32  # rows that a task copies
    PIECES = 32  # greatest number of pieces of a row
    COLUMNS = 2048  # least number of elements of a piece
    LINE = 16  # 4-byte elements of a cache line
    MANY_LINES = 8  # least number of LINE rows: with fewer there would be too few tasks
    SHARING_PITCH = 4096  # bytes between rows that fall into the same cache set
    MOST_THREADS = 64  # more threads do not make memory faster, and 64 task ranges fit on the stack

cdef struct CopyJob:  # parameters that all tasks of a copy share, in addition to the source
    int64_t rows, columns  # of a task
    int64_t places  # indices of axis 4 that a task copies: one or all
    void *target
    int64_t shape[7]
    int64_t source_step[7]  # elements
    int64_t target_step[7]


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


cdef struct CopyPart:  # a rectangle of the last two axes
    int64_t source, target  # offsets of its first element
    int64_t rows, columns


cdef inline CopyPart part_of(const CopyJob *c, int64_t task) noexcept nogil:
    """The rectangle that a task copies, at the task's first index of axis 4."""
    cdef CopyPart p
    cdef int64_t parts = count_blocks(c.shape[5], c.rows), pieces = count_blocks(c.shape[6], c.columns)
    cdef int64_t axis, i, row = task % parts * c.rows, column = task // parts % pieces * c.columns
    cdef int64_t block = task // parts // pieces
    p.rows, p.columns = min(c.rows, c.shape[5] - row), min(c.columns, c.shape[6] - column)
    p.source = row * c.source_step[5] + column * c.source_step[6]
    p.target = row * c.target_step[5] + column * c.target_step[6]
    for axis in range(4 if c.places == 1 else 3, -1, -1):
        i = block % c.shape[axis]
        block = block // c.shape[axis]
        p.source += i * c.source_step[axis]
        p.target += i * c.target_step[axis]
    return p


cdef inline void copy_task(const CopyJob *c, const element *source, void *scratch, int64_t task) noexcept nogil:
    """Copy a rectangle of the last two axes, for one or all indices of axis 4 and one index of axes 0 to 3."""
    cdef element *target = <element *>c.target
    cdef CopyPart p = part_of(c, task)
    cdef int64_t i
    for i in range(c.places):
        copy_part(source + p.source + i * c.source_step[4], target + p.target + i * c.target_step[4], p.rows, p.columns,
                  c.source_step[5], c.source_step[6], c.target_step[5], c.target_step[6])


cdef inline void widen_task(const CopyJob *c, const half *source, void *scratch, int64_t task) noexcept nogil:
    """Copy a rectangle of a 16-bit type to float."""
    cdef CopyPart p = part_of(c, task)
    load_block(<float *>c.target + p.target, c.target_step[5], c.target_step[6], source + p.source, c.source_step[5],
               c.source_step[6], p.rows, p.columns)


cdef inline void narrow_task(const CopyJob *c, const float *source, half *scratch, int64_t task) noexcept nogil:
    """Copy a rectangle of float to a 16-bit type, rounded to nearest even."""
    cdef CopyPart p = part_of(c, task)
    store_block(<half *>c.target + p.target, c.target_step[5], c.target_step[6], source + p.source,
                c.source_step[5], c.source_step[6], p.rows, p.columns)


cdef inline void describe_copy(
    CopyJob *c, bint shares, const Py_ssize_t *shape, const Py_ssize_t *of, int64_t of_size, const Py_ssize_t *to,
    int64_t to_size,
) noexcept nogil:
    """Set the sizes of tasks. The strides ``of`` and ``to`` are in bytes.

    ``shares``: rows of the target fall into the same cache set. A task then writes few rows, for all indices of axis 4,
    because the elements of one index follow the elements of the index before in memory. Otherwise long rows are cut, so
    that there are enough tasks.
    """
    cdef int64_t axis
    c.rows, c.places = LINE if shares else ROWS, shape[4] if shares else 1
    c.columns = shape[6] if shares else max(<int64_t>COLUMNS, count_blocks(shape[6], PIECES))
    for axis in range(7):
        c.shape[axis], c.source_step[axis], c.target_step[axis] = shape[axis], of[axis] // of_size, to[axis] // to_size


cdef inline int copy_all(CopyJob *c, task_function copy, const void *source, void *target, int threads) except -1:
    """Run all tasks of a copy.

    It allocates no memory, so it cannot fail after a caller has already stored results.
    """
    cdef team all
    cdef task_range ranges[MOST_THREADS]
    cdef int64_t axis, tasks = count_blocks(c.shape[5], c.rows) * count_blocks(c.shape[6], c.columns)
    for axis in range(5 if c.places == 1 else 4):
        tasks *= c.shape[axis]
    form_team(&all, threads)
    all.max_workers, all.ranges = min(all.threads, MOST_THREADS), ranges
    all.scratch, all.scratch_size = NULL, 0
    begin_listening(&all.signals)
    c.target = target
    return run(&all, copy, c, source, 0, tasks)


cdef inline int rearrange_elements(
    const element[:, :, :, :, :, :, :] source, element[:, :, :, :, :, :, :] target, int threads
) except -1:
    """target = source, element by element. Both have the same shape, and no extent is zero."""
    cdef CopyJob c
    cdef bint shares = (target.shape[4] > 1 and target.strides[5] % SHARING_PITCH == 0
                        and target.shape[5] >= MANY_LINES * LINE)
    describe_copy(&c, shares, target.shape, source.strides, sizeof(element), target.strides, sizeof(element))
    return copy_all(&c, <task_function>copy_task[element], &source[0, 0, 0, 0, 0, 0, 0], &target[0, 0, 0, 0, 0, 0, 0],
                    threads)


cdef inline int widen_elements(
    const half[:, :, :, :, :, :, :] source, float[:, :, :, :, :, :, :] target, int threads
) except -1:
    """target = source, a 16-bit type widened to float."""
    cdef CopyJob c
    describe_copy(&c, False, target.shape, source.strides, sizeof(half), target.strides, sizeof(float))
    return copy_all(&c, <task_function>widen_task[half], &source[0, 0, 0, 0, 0, 0, 0], &target[0, 0, 0, 0, 0, 0, 0],
                    threads)


cdef inline int narrow_elements(
    const float[:, :, :, :, :, :, :] source, half[:, :, :, :, :, :, :] target, int threads
) except -1:
    """target = source, float rounded to a 16-bit type."""
    cdef CopyJob c
    describe_copy(&c, False, target.shape, source.strides, sizeof(float), target.strides, sizeof(half))
    return copy_all(&c, <task_function>narrow_task[half], &source[0, 0, 0, 0, 0, 0, 0], &target[0, 0, 0, 0, 0, 0, 0],
                    threads)
