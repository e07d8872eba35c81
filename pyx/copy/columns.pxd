"""Columns added into a tensor: what each position has for each tap, where that tap of the position lies (col2im).

    target[n, g, c, p * stride + t * dilation - pad] += columns[n, p, g, (c, t)]    for each p after the other

An element of a column is (channel, tap), or (tap, channel), as the filter has them in memory: the nearer ones are
added side by side. A task has some channels of a group of an image. It sums in memory of its own, which stays in the
cache, and then stores: so each element of the target is written once, in any layout.
"""

from libc.stdint cimport int64_t
from libc.string cimport memset

from base.memory cimport count_blocks
from base.scalar cimport compute
from base.tensor cimport Tensor, describe_tensor
from copy.load_store cimport store_block
from parallel.tasks cimport begin_call, end_call, form_team, run, task_function, team

cdef extern from "copy/add.h" nogil:
    void add_float_rows(float *to, int64_t to_row, const float *of, int64_t of_row, int64_t rows, int64_t count)
    void add_double_rows(double *to, int64_t to_row, const double *of, int64_t of_row, int64_t rows, int64_t count)
    void add_int_rows(int *to, int64_t to_row, const int *of, int64_t of_row, int64_t rows, int64_t count)

cdef struct ColumnsAxis:  # a row of Columns.axes of cpu/rewrites/columns.py, field for field
    int64_t x, positions, taps, stride, dilation, pad

cdef struct ColumnsJob:  # what all tasks share, beside the columns
    void *target
    Tensor y
    const ColumnsAxis *axis  # three
    int64_t groups, channels
    int64_t block  # channels of a task
    int64_t taps, positions, extent  # of all axes
    bint channels_last  # the elements of a column are (tap, channel)
    bint is_one_axis  # the spatial axes of the target

cdef struct Reach:  # on one axis, of a position
    int64_t first, end  # taps that lie in the target
    int64_t begin  # where the first of them lies


cdef inline void add_rows(
    compute *to, int64_t to_row, const compute *of, int64_t of_row, int64_t rows, int64_t count
) noexcept nogil:
    if compute is float:
        add_float_rows(to, to_row, of, of_row, rows, count)
    elif compute is double:
        add_double_rows(to, to_row, of, of_row, rows, count)
    else:
        add_int_rows(to, to_row, of, of_row, rows, count)


cdef inline Reach reach_of(const ColumnsAxis *a, int64_t position) noexcept nogil:
    cdef Reach r
    cdef int64_t begin = position * a.stride - a.pad
    r.first = 0 if begin >= 0 else min(a.taps, count_blocks(-begin, a.dilation))
    r.end = max(r.first, min(a.taps, 0 if begin >= a.x else count_blocks(a.x - begin, a.dilation)))
    r.begin = begin + r.first * a.dilation
    return r


cdef inline void add_column(
    const ColumnsJob *c, const Reach *reach, const compute *column, int64_t channels, compute *sums
) noexcept nogil:
    """Add what a position has for some channels: row by row of taps, or tap by tap where these are not adjacent.

    Then along the axis that has more of them.
    """
    cdef const ColumnsAxis *a = c.axis
    cdef int64_t last = channels if c.channels_last else 1, of_last = c.channels if c.channels_last else 1
    cdef int64_t step_w = a[2].dilation * last, step_h = a[1].dilation * a[2].x * last
    cdef int64_t step_d = a[0].dilation * a[1].x * a[2].x * last
    cdef int64_t of_h = a[2].taps * of_last, of_d = a[1].taps * of_h
    cdef int64_t i, d, h, w, rows = reach[1].end - reach[1].first, taps = reach[2].end - reach[2].first
    cdef compute *to
    cdef const compute *of
    sums += ((reach[0].begin * a[1].x + reach[1].begin) * a[2].x + reach[2].begin) * last
    column += reach[0].first * of_d + reach[1].first * of_h + reach[2].first * of_last
    for i in range(1 if c.channels_last else channels):
        for d in range(reach[0].end - reach[0].first):
            to, of = sums + i * c.extent + d * step_d, column + i * c.taps + d * of_d
            if step_w == of_last == last:
                add_rows(to, step_h, of, of_h, rows, taps * last)
                continue
            if taps > rows:
                for h in range(rows):
                    add_rows(to + h * step_h, step_w, of + h * of_h, of_last, taps, last)
                continue
            for w in range(taps):
                add_rows(to + w * step_w, step_h, of + w * of_last, of_h, rows, last)


cdef inline void store_sums(
    const ColumnsJob *c, compute *target, const compute *sums, int64_t channels
) noexcept nogil:
    cdef const ColumnsAxis *a = c.axis
    cdef int64_t d, h, first = 0, step_p = channels if c.channels_last else 1
    cdef int64_t step_c = 1 if c.channels_last else c.extent
    if c.is_one_axis:
        store_block(target, c.y.axis[2], c.y.channel, sums, step_p, step_c, c.extent, channels)
        return
    for d in range(a[0].x):
        for h in range(a[1].x):
            store_block(target + d * c.y.axis[0] + h * c.y.axis[1], c.y.axis[2], c.y.channel, sums + first * step_p,
                        step_p, step_c, a[2].x, channels)
            first += a[2].x


cdef inline void add_task(const ColumnsJob *c, const compute *columns, compute *sums, int64_t task) noexcept nogil:
    """The sums of a block of channels of a group of an image."""
    cdef int64_t blocks = count_blocks(c.channels, c.block), begin = task % blocks * c.block, image = task // blocks
    cdef int64_t channels = min(c.block, c.channels - begin), d, h, w
    cdef Reach[3] reach
    cdef int64_t group = image % c.groups, step = c.groups * c.channels * c.taps
    cdef const compute *column = columns + image // c.groups * c.positions * step + group * c.channels * c.taps
    column += begin if c.channels_last else begin * c.taps
    memset(sums, 0, channels * c.extent * sizeof(compute))
    for d in range(c.axis[0].positions):
        reach[0] = reach_of(c.axis, d)
        for h in range(c.axis[1].positions):
            reach[1] = reach_of(c.axis + 1, h)
            for w in range(c.axis[2].positions):
                reach[2] = reach_of(c.axis + 2, w)
                add_column(c, reach, column, channels, sums)
                column += step
    store_sums(c, <compute *>c.target + image // c.groups * c.y.batch + group * c.y.group
               + begin * c.y.channel, sums, channels)


cdef inline int add_all_columns(
    const compute[::1] columns, compute[:, :, :, :, :, :] target, const int64_t[:, ::1] axes, int64_t block,
    bint channels_last, int threads, before,
) except -1:
    cdef ColumnsJob c
    cdef team all
    cdef int axis
    c.target, c.axis = &target[0, 0, 0, 0, 0, 0], <const ColumnsAxis *>&axes[0, 0]
    describe_tensor(&c.y, target.strides, sizeof(compute))
    c.groups, c.channels, c.block, c.channels_last = target.shape[1], target.shape[2], block, channels_last
    c.taps = c.positions = c.extent = 1
    for axis in range(3):
        c.taps *= c.axis[axis].taps
        c.positions *= c.axis[axis].positions
        c.extent *= c.axis[axis].x
    c.is_one_axis = (c.y.axis[1] == c.y.axis[2] * target.shape[5] and c.y.axis[0] == c.y.axis[1] * target.shape[4])
    cdef int64_t tasks = target.shape[0] * c.groups * count_blocks(c.channels, block)
    form_team(&all, threads)
    try:
        if begin_call(&all, 0, tasks, min(block, c.channels) * c.extent * sizeof(compute), before):
            run(&all, <task_function>add_task[compute], &c, &columns[0], 0, tasks)
    finally:
        end_call(&all)
    return 0
