"""Elements copied from one order of axes into another."""

from libc.stdint cimport int64_t

from base.memory cimport count_blocks
from copy.load_store cimport transpose_words
from parallel.tasks cimport begin_listening, form_team, run, task_function, task_range, team

ctypedef fused element:
    unsigned short
    unsigned int
    unsigned long long

cdef enum:
    ROWS = 32  # rows that a task copies
    PIECES = 32  # pieces that a row is cut into, at most
    COLUMNS = 2048  # elements of a piece, at least
    LINE = 16  # elements of a cache line, if they have 4 bytes
    MANY_LINES = 8  # lines of rows: with fewer there would be too few tasks
    SHARING_PITCH = 4096  # bytes between rows that share their place in the cache
    MOST_THREADS = 64  # threads that copy: more make memory no faster, and the ranges of so many fit on the stack

cdef struct CopyJob:  # what all tasks of a copy share, beside the source
    int64_t rows, columns  # of a task
    int64_t places  # of the axis before the last two, that a task copies: one or all
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


cdef inline void copy_task(const CopyJob *c, const element *source, void *scratch, int64_t task) noexcept nogil:
    """Copy some rows and columns of the last two axes, at one place or all of axis 4, and at one of the axes before."""
    cdef element *target = <element *>c.target
    cdef int64_t parts = count_blocks(c.shape[5], c.rows), pieces = count_blocks(c.shape[6], c.columns)
    cdef int64_t axis, i, row = task % parts * c.rows, column = task // parts % pieces * c.columns
    cdef int64_t block = task // parts // pieces
    for axis in range(4 if c.places == 1 else 3, -1, -1):
        i = block % c.shape[axis]
        block = block // c.shape[axis]
        source += i * c.source_step[axis]
        target += i * c.target_step[axis]
    source += row * c.source_step[5] + column * c.source_step[6]
    target += row * c.target_step[5] + column * c.target_step[6]
    for i in range(c.places):
        copy_part(source + i * c.source_step[4], target + i * c.target_step[4],
                  min(c.rows, c.shape[5] - row), min(c.columns, c.shape[6] - column),
                  c.source_step[5], c.source_step[6], c.target_step[5], c.target_step[6])


cdef inline int rearrange_elements(
    const element[:, :, :, :, :, :, :] source, element[:, :, :, :, :, :, :] target, int threads
) except -1:
    """target = source, element by element; the two have one shape, without an extent of zero.

    Rows of the target may share their place in the cache. A task then writes few of them, at all places of axis 4: what
    it writes at one place continues what it wrote at the place before. Long rows are cut, so that there are enough
    tasks. A copy takes no memory, so that it cannot fail where other results are written already.
    """
    cdef CopyJob c
    cdef team all
    cdef task_range ranges[MOST_THREADS]
    cdef int64_t axis, tasks, size = sizeof(element)
    cdef bint shares = (target.shape[4] > 1 and target.strides[5] % SHARING_PITCH == 0
                        and target.shape[5] >= MANY_LINES * LINE)
    form_team(&all, threads)
    all.most, all.ranges, all.scratch, all.scratch_size = min(all.threads, MOST_THREADS), ranges, NULL, 0
    begin_listening(&all.ears)
    c.rows, c.places = LINE if shares else ROWS, target.shape[4] if shares else 1
    c.columns = target.shape[6] if shares else max(<int64_t>COLUMNS, count_blocks(target.shape[6], PIECES))
    c.target = &target[0, 0, 0, 0, 0, 0, 0]
    for axis in range(7):
        c.shape[axis] = target.shape[axis]
        c.source_step[axis], c.target_step[axis] = source.strides[axis] // size, target.strides[axis] // size
    tasks = count_blocks(c.shape[5], c.rows) * count_blocks(c.shape[6], c.columns)
    for axis in range(4 if shares else 5):
        tasks *= c.shape[axis]
    return run(&all, <task_function>copy_task[element], &c, &source[0, 0, 0, 0, 0, 0, 0], 0, tasks)
