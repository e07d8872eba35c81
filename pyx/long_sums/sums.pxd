"""Long sums of few outputs at few positions: vectors lie along the sum itself, so each operand is read where it is.

    target[n, g, o, p] = sum over c, t of  source[n, g, c, p * stride + t * dilation - pad] * filter[g, o, c, t]

A sum has four axes, channels and taps on three axes. On the last one of a given order, elements of source and
filter are adjacent: those are a *run*. A task has a *slice* of the sum for all positions and outputs of a group; the
slices of a sum are added in order. No tap outside the source is met, so no padding is.
"""

from libc.stdint cimport int64_t

from base.memory cimport count_blocks
from base.problem cimport conv_axis, conv_source, conv_walk
from base.scalar cimport compute
from base.tensor cimport Tensor, describe_filter, describe_tensor, target_offset
from parallel.tasks cimport begin_call, end_call, form_team, run, task_function, team

cdef extern from "long_sums/dots.h" nogil:
    ctypedef struct dot_run:
        int64_t x, w, count
    ctypedef unsigned int uint32_t
    void dots_f32(const dot_run *runs, int64_t run_count, const float *x, const int64_t *rows, int64_t row_count,
                  const float *w, int64_t w_output, int64_t outputs, float *sums)
    void dots_f64(const dot_run *runs, int64_t run_count, const double *x, const int64_t *rows, int64_t row_count,
                  const double *w, int64_t w_output, int64_t outputs, double *sums)
    void dots_u32(const dot_run *runs, int64_t run_count, const uint32_t *x, const int64_t *rows, int64_t row_count,
                  const uint32_t *w, int64_t w_output, int64_t outputs, uint32_t *sums)

cdef enum:
    MOST_ROWS_AT_A_TIME = 64

cdef struct LongBlocks:  # the fields of Blocks of cpu/long_sums/__init__.py, and their order
    int64_t order[4]  # of the axes of a sum: 0 is that of channels, 1 to 3 are those of taps
    int64_t piece  # elements of a run, at most
    int64_t slices, threads

cdef struct SumAxis:
    int64_t axis, size  # the second: of the filter
    int64_t x_step, w_step  # from one element to the next

cdef struct Ends:
    int64_t first, end

cdef struct SumsJob:  # what all tasks share
    const void *filter
    void *target
    void *sums  # of all slices: (group, slice, position, image, output)
    const conv_walk *walk
    Tensor x, w, y
    SumAxis axis[4]
    int64_t batch, groups, channels, outputs, positions
    int64_t piece, pieces, slices, units  # of a slice: each is one run, at most

cdef struct Rows:  # of positions and images that meet the same taps
    int64_t count, first
    int64_t offsets[MOST_ROWS_AT_A_TIME]


cdef inline Ends reached(const conv_axis *a, int64_t position) noexcept nogil:
    """The taps that a position meets inside the source."""
    cdef Ends e
    cdef int64_t begin = conv_source(a, position, 0)
    e.first = 0 if begin >= 0 else min(a.taps, count_blocks(-begin, a.source_tap))
    e.end = 0 if begin >= a.source_size else min(a.taps, count_blocks(a.source_size - begin, a.source_tap))
    e.end = max(e.first, e.end)
    return e


cdef inline int64_t find_runs(const SumsJob *j, int64_t slice, const Ends *ends, dot_run *runs) noexcept nogil:
    """The runs of a slice whose taps lie within ``ends``; returns how many there are."""
    cdef int64_t unit = slice * j.units, left = unit // j.pieces, count = 0, begin, end
    cdef int64_t last = min(unit + j.units, j.axis[0].size * j.axis[1].size * j.axis[2].size * j.pieces)
    cdef int64_t at[3]
    cdef int i
    cdef bint inside
    while unit < last:
        left, inside = unit // j.pieces, True
        for i in range(2, -1, -1):
            at[i] = left % j.axis[i].size
            left //= j.axis[i].size
            inside = inside and ends[j.axis[i].axis].first <= at[i] < ends[j.axis[i].axis].end
        begin = max(unit % j.pieces * j.piece, ends[j.axis[3].axis].first)
        end = min((unit % j.pieces + 1) * j.piece, ends[j.axis[3].axis].end)
        unit += 1
        if inside and begin < end:
            runs[count].x, runs[count].w, runs[count].count = begin * j.axis[3].x_step, begin, end - begin
            for i in range(3):
                runs[count].x += at[i] * j.axis[i].x_step
                runs[count].w += at[i] * j.axis[i].w_step
            count += 1
    return count


cdef inline void multiply_rows(
    const SumsJob *j, const dot_run *runs, int64_t count, const compute *x, const compute *w, Rows *rows, compute *sums
) noexcept nogil:
    """The sums of the rows that were noted, which are none afterwards."""
    sums += rows.first * j.outputs
    if compute is float:
        dots_f32(runs, count, x, rows.offsets, rows.count, w, j.w.batch, j.outputs, sums)
    elif compute is double:
        dots_f64(runs, count, x, rows.offsets, rows.count, w, j.w.batch, j.outputs, sums)
    else:
        dots_u32(runs, count, <const uint32_t *>x, rows.offsets, rows.count, <const uint32_t *>w, j.w.batch, j.outputs,
                 <uint32_t *>sums)
    rows.first += rows.count
    rows.count = 0


cdef inline void slice_task(const SumsJob *j, const compute *x, void *scratch, int64_t task) noexcept nogil:
    """A slice of the sums of a group."""
    cdef int64_t group = task // j.slices, slice = task % j.slices, count = -1, d, h, w, n
    cdef dot_run *runs = <dot_run *>scratch
    cdef const compute *filter = <const compute *>j.filter + group * j.w.group
    cdef compute *sums = <compute *>j.sums + task * j.positions * j.batch * j.outputs
    cdef const conv_axis *axis = j.walk.axis
    cdef int64_t offset
    cdef Ends[4] ends
    cdef Ends[4] own
    cdef Rows rows
    rows.count = rows.first = 0
    x += group * j.x.group
    own[0].first, own[0].end = 0, j.channels
    for d in range(axis[0].positions):
        own[1] = reached(axis, d)
        for h in range(axis[1].positions):
            own[2] = reached(axis + 1, h)
            for w in range(axis[2].positions):
                own[3] = reached(axis + 2, w)
                if count < 0 or are_others(own, ends):
                    if rows.count > 0:
                        multiply_rows(j, runs, count, x, filter, &rows, sums)
                    ends = own
                    count = find_runs(j, slice, ends, runs)
                offset = (conv_source(axis, d, 0) * j.x.axis[0] + conv_source(axis + 1, h, 0) * j.x.axis[1]
                          + conv_source(axis + 2, w, 0) * j.x.axis[2])
                for n in range(j.batch):
                    rows.offsets[rows.count] = offset + n * j.x.batch
                    rows.count += 1
                    if rows.count == MOST_ROWS_AT_A_TIME:
                        multiply_rows(j, runs, count, x, filter, &rows, sums)
    if rows.count > 0:
        multiply_rows(j, runs, count, x, filter, &rows, sums)


cdef inline bint are_others(const Ends *own, const Ends *before) noexcept nogil:
    cdef int i
    for i in range(1, 4):
        if own[i].first != before[i].first or own[i].end != before[i].end:
            return True
    return False


cdef inline void add_slices(const SumsJob *j, const compute *x, void *scratch, int64_t task) noexcept nogil:
    """The result of a group of an image."""
    cdef int64_t group = task // j.batch, n = task % j.batch, d, h, w, o, s, position = 0
    cdef int64_t step = j.positions * j.batch * j.outputs
    cdef const conv_axis *axis = j.walk.axis
    cdef const compute *sums = <const compute *>j.sums + group * j.slices * step
    cdef compute *target
    cdef compute sum
    for d in range(axis[0].positions):
        for h in range(axis[1].positions):
            for w in range(axis[2].positions):
                target = <compute *>j.target + group * j.y.group + target_offset(&j.y, j.walk, n, d, h, w)
                for o in range(j.outputs):
                    sum = 0
                    for s in range(j.slices):
                        sum += sums[s * step + (position * j.batch + n) * j.outputs + o]
                    target[o * j.y.channel] = sum
                position += 1


cdef inline int sum_all_long(
    const compute[:, :, :, :, :, :] source, const compute[:, :, :, :, :, :] filter,
    compute[:, :, :, :, :, :] target, const int64_t[:, ::1] walk, const int64_t[::1] blocks, before,
) except -1:
    cdef const LongBlocks *b = <const LongBlocks *>&blocks[0]
    cdef SumsJob j
    cdef team all
    cdef int i
    cdef SumAxis *a
    j.walk, j.target = <const conv_walk *>&walk[0, 0], &target[0, 0, 0, 0, 0, 0]
    j.filter = &filter[0, 0, 0, 0, 0, 0]
    describe_tensor(&j.x, source.strides, sizeof(compute))
    describe_tensor(&j.y, target.strides, sizeof(compute))
    describe_filter(&j.w, filter.strides, sizeof(compute))
    j.batch, j.groups, j.channels, j.outputs = source.shape[0], filter.shape[0], filter.shape[2], filter.shape[1]
    j.positions = target.shape[3] * target.shape[4] * target.shape[5]
    for i in range(4):
        a = &j.axis[i]
        a.axis = b.order[i]
        a.size = filter.shape[2 + a.axis]
        if a.axis == 0:
            a.x_step, a.w_step = j.x.channel, j.w.channel
        else:
            a.x_step = j.x.axis[a.axis - 1] * j.walk.axis[a.axis - 1].source_tap
            a.w_step = j.w.axis[a.axis - 1]
    j.piece, j.pieces, j.slices = b.piece, count_blocks(j.axis[3].size, b.piece), b.slices
    j.units = count_blocks(j.axis[0].size * j.axis[1].size * j.axis[2].size * j.pieces, j.slices)
    cdef int64_t tasks = j.groups * j.slices
    form_team(&all, b.threads)
    try:
        if begin_call(&all, tasks * j.positions * j.batch * j.outputs * sizeof(compute), tasks,
                      j.units * sizeof(dot_run), before):
            j.sums = all.shared
            run(&all, <task_function>slice_task[compute], &j, &source[0, 0, 0, 0, 0, 0], 0, tasks)
            run(&all, <task_function>add_slices[compute], &j, &source[0, 0, 0, 0, 0, 0], 0, j.groups * j.batch)
    finally:
        end_call(&all)
    return 0
