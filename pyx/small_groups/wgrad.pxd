"""wgrad of many small groups: filter(lane, t, i) = sum over positions p of source(p, t, i) * target(p, lane).

A task is a slice of the boxes and a block of lanes; the slices are added in order.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.string cimport memset

from base.memory cimport in_lines
from base.scalar cimport compute, narrow, scalar
from base.tensor cimport filter_offset
from direct.blocks cimport Blocks, Step
from parallel.tasks cimport begin_call, end_call, form_team, is_stopped, run, task_function, team
from small_groups.copies cimport keep_rows, load_part, load_result
from small_groups.lanes cimport (
    LaneBox, Lanes, describe_lanes, expansion_size, find_lane_box, first_band, make_expansion, origin_of, whole_count,
)
from small_groups.rows cimport LaneWalk, accumulate_rows, describe_walk, make_walk_tables, walk_tables_size

cdef struct LaneSumsJob:  # parameters that all tasks of a call share, in addition to the source
    const Lanes *c
    const LaneWalk *walk
    int64_t slices
    int64_t size  # elements of the sums of a block of lanes
    void *filter
    const void *target
    void *partial  # [block][slice] of sums


cdef inline void accumulate_lane_box(
    const Lanes *c, const LaneWalk *walk, const LaneBox *box, const LaneBox *before, const scalar *source,
    const scalar *target, compute *sums, compute *scratch,
) noexcept nogil:
    cdef compute *plain = scratch + c.part_size
    cdef compute *made = plain + c.plain_size
    cdef const compute *seen = scratch
    cdef const compute *grad = made
    source += box.image * c.x.batch
    target += box.image * c.y.batch
    if not c.x_in_place:
        load_part(c, box, source, scratch, plain, keep_rows(c, box, before, scratch))
        seen = scratch - origin_of(&c.part, box.source)
    elif scalar is compute:
        seen = source + box.lane
    if not c.y_in_place:
        load_result(c, box, target, made)
        grad = made - origin_of(&c.result, box.target)
    elif scalar is compute:
        grad = target + box.lane
    accumulate_rows(walk, box, seen, grad, sums)


cdef inline void sum_lanes_task(
    const LaneSumsJob *job, const scalar *source, compute *scratch, int64_t task
) noexcept nogil:
    """partial[block][slice] = the sums of the slice's boxes."""
    cdef const Lanes *c = job.c
    cdef int64_t slices = job.slices, size = job.size
    cdef int64_t block = task // slices, slice = task % slices, boxes = whole_count(c), i
    cdef compute *sums = <compute *>job.partial + task * size
    cdef LaneBox box, before
    memset(sums, 0, size * sizeof(compute))
    memset(&before, 0, sizeof(before))
    before.source[1] = INT64_MAX  # no box lies below this one, so the first box keeps no rows
    for i in range(first_band(c, boxes * slice // slices), first_band(c, boxes * (slice + 1) // slices)):
        if is_stopped(c.workers):
            return
        find_lane_box(&box, c, i * c.blocks + block)
        accumulate_lane_box(c, job.walk, &box, &before, source, <const scalar *>job.target, sums, scratch)
        before = box


cdef inline void store_lanes(
    const Lanes *c, const LaneWalk *walk, int64_t first, int64_t lanes, const compute *sums, scalar *filter
) noexcept nogil:
    """Store sums[t][i][lane] of ``lanes`` lanes in the filter."""
    cdef int64_t t, _channel, lane
    cdef scalar *to
    for t in range(walk.taps):
        to = filter + filter_offset(&c.w, &walk.walk, t)
        for _channel in range(c.channels):
            for lane in range(lanes):
                to[(first + lane) // c.outputs * c.w.group + (first + lane) % c.outputs * c.w.batch] = narrow(
                    sums[lane], to[0])
            sums += walk.width
            to += c.w.channel


cdef inline void store_lanes_task(
    const LaneSumsJob *job, const scalar *source, compute *scratch, int64_t block
) noexcept nogil:
    """Add the slices of a block in order and store it."""
    cdef const Lanes *c = job.c
    cdef const LaneWalk *walk = job.walk
    cdef int64_t size = job.size
    cdef int64_t i, slice, v, lanes, l0 = block * c.block
    cdef compute *sums = <compute *>job.partial + block * job.slices * size
    for slice in range(1, job.slices):
        for i in range(size):
            sums[i] += sums[slice * size + i]
    # The sums of the spreading tile are [vector][t][i][lane].
    lanes = c.y_vector if c.spreads else c.block
    for v in range(c.vectors if c.spreads else 1):
        store_lanes(c, walk, l0 + v * lanes, min(lanes, min(l0 + c.block, c.lanes) - l0 - v * lanes),
                    sums + v * walk.taps * c.channels * walk.width, <scalar *>job.filter)


cdef inline int wgrad_lanes(
    const scalar[:, :, :, :, :, :] source, scalar[:, :, :, :, :, :] filter, const scalar[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array, before, compute kind,
) except -1:
    cdef Lanes c
    cdef LaneWalk walk
    cdef LaneSumsJob job
    cdef team all
    cdef const Blocks *blocks = <const Blocks *>&block_array[0]
    cdef const Step *step = <const Step *>&step_array[0, 0]
    cdef int64_t slices = blocks.slices, expansion, tables_size, partial_size, scratch_size
    cdef const scalar *x = &source[0, 0, 0, 0, 0, 0]
    form_team(&all, blocks.threads)
    describe_lanes(&c, source, filter, target, step, 1, blocks, kind)
    describe_walk(&walk, &c, step, kind)
    c.workers = &all
    job.c, job.walk, job.slices = &c, &walk, slices
    job.size = walk.taps * c.channels * walk.line
    job.filter, job.target = &filter[0, 0, 0, 0, 0, 0], &target[0, 0, 0, 0, 0, 0]
    scratch_size = (c.part_size + c.plain_size + c.result_size) * sizeof(compute)
    expansion = in_lines(expansion_size(&c, kind) * sizeof(int32_t))
    tables_size = expansion + walk_tables_size(&walk, &c)
    partial_size = c.blocks * slices * job.size * sizeof(compute)
    try:
        if not begin_call(&all, tables_size + partial_size, c.blocks * slices, scratch_size, before):
            return 0
        make_expansion(&c, <int32_t *>all.shared, kind)
        make_walk_tables(&walk, &c, all.shared + expansion, 1)
        job.partial = all.shared + tables_size
        run(&all, <task_function>sum_lanes_task[scalar, compute], &job, x, 0, c.blocks * slices)
        run(&all, <task_function>store_lanes_task[scalar, compute], &job, x, 0, c.blocks)
    finally:
        end_call(&all)
    return 0
