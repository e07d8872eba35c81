"""wgrad of many small groups: filter(lane, t, i) = sum over positions p of source(p, t, i) * target(p, lane).

A task is a slice of the boxes and a block of lanes; the slices are added in order.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from blocks cimport Blocks, Step, allocate, first_line, in_lines
from lane_rows cimport LaneWalk, accumulate_rows, describe_walk, make_walk_tables, walk_tables_size
from lanes cimport (
    LaneBox, Lanes, describe_lanes, expansion_size, find_lane_box, load_part, load_result, make_expansion, origin_of,
)
from scalar cimport compute, narrow, scalar
from tasks cimport (
    begin_team, end_listening, enter_loop, is_stopped, leave_loop, next_task, share_tasks, take_task, task_range, team,
    team_size, workers_of,
)
from tensor cimport filter_offset
from ukernel cimport whole_vectors


cdef inline void accumulate_lane_box(
    const Lanes *c, const LaneWalk *walk, const scalar *source, const scalar *target, compute *sums, compute *scratch,
    int64_t index,
) noexcept nogil:
    cdef LaneBox box
    cdef compute *plain = scratch + c.part_size
    cdef compute *made = plain + c.plain_size
    cdef const compute *seen = scratch
    cdef const compute *grad = made
    find_lane_box(&box, c, index)
    source += box.image * c.x.batch
    target += box.image * c.y.batch
    if not c.x_in_place:
        load_part(c, &box, source, scratch, plain)
        seen = scratch - origin_of(&c.part, box.source)
    elif scalar is compute:
        seen = source + box.lane
    if not c.y_in_place:
        load_result(c, &box, target, made)
        grad = made - origin_of(&c.result, box.target)
    elif scalar is compute:
        grad = target + box.lane
    accumulate_rows(walk, &box, seen, grad, sums, whole_vectors(c.block, sums[0]))


cdef inline void lane_slice(
    const Lanes *c, const LaneWalk *walk, int64_t slices, const scalar *source, const scalar *target, compute *partial,
    compute *scratch, int64_t size, int64_t task,
) noexcept nogil:
    """partial[block][slice] = the sums of its boxes."""
    cdef int64_t block = task // slices, slice = task % slices, boxes = c.batch * c.box_count, box
    cdef compute *sums = partial + task * size
    memset(sums, 0, size * sizeof(compute))
    for box in range(boxes * slice // slices, boxes * (slice + 1) // slices):
        if is_stopped(c.workers):
            return
        accumulate_lane_box(c, walk, source, target, sums, scratch, box * c.blocks + block)


cdef inline void store_lanes(
    const Lanes *c, const LaneWalk *walk, int64_t slices, scalar *filter, compute *partial, int64_t size, int64_t block
) noexcept nogil:
    cdef int64_t i, slice, t, _channel, lane, l0 = block * c.block, pad = whole_vectors(c.block, partial[0])
    cdef compute *sums = partial + block * slices * size
    cdef scalar *to
    for slice in range(1, slices):
        for i in range(size):
            sums[i] += sums[slice * size + i]
    for t in range(walk.taps):
        to = filter + filter_offset(&c.w, &walk.walk, t)
        for _channel in range(c.channels):
            for lane in range(min(c.block, c.lanes - l0)):
                to[(l0 + lane) // c.outputs * c.w.group + (l0 + lane) % c.outputs * c.w.batch] = narrow(
                    sums[lane], to[0])
            sums += pad
            to += c.w.channel


cdef inline void wgrad_lane_tasks(
    const Lanes *c, const LaneWalk *walk, int64_t slices, const scalar *source, scalar *filter, const scalar *target,
    compute *partial, compute *scratch, int64_t size, bint finishing, int worker,
) noexcept nogil:
    cdef uint64_t state = enter_loop(c.workers)
    cdef int64_t task = take_task(c.workers, worker)
    while task >= 0:
        if finishing:
            store_lanes(c, walk, slices, filter, partial, size, task)
        else:
            lane_slice(c, walk, slices, source, target, partial, scratch, size, task)
        task = next_task(c.workers, worker)
    leave_loop(c.workers, state)


cdef inline int wgrad_lanes(
    const scalar[:, :, :, :, :, :] source, scalar[:, :, :, :, :, :] filter, const scalar[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array, before, compute kind,
) except -1:
    cdef Lanes c
    cdef LaneWalk walk
    cdef const Blocks *blocks = <const Blocks *>&block_array[0]
    cdef const Step *step = <const Step *>&step_array[0, 0]
    cdef int64_t slices = blocks.slices, expansion, tables_size, partial_size, scratch_size, size
    cdef int worker, workers, turn, threads = team_size(<int>blocks.threads)
    cdef team all
    cdef void *memory = NULL
    cdef compute *partial
    cdef compute *scratch
    cdef const scalar *x = &source[0, 0, 0, 0, 0, 0]
    cdef scalar *w = &filter[0, 0, 0, 0, 0, 0]
    cdef const scalar *y = &target[0, 0, 0, 0, 0, 0]
    describe_lanes(&c, source, filter, target, step, 1, blocks, kind)
    describe_walk(&walk, &c, step, kind)
    c.workers = &all
    size = walk.taps * c.channels * whole_vectors(c.block, kind)
    scratch_size = in_lines((c.part_size + c.plain_size + c.result_size) * sizeof(compute)) // sizeof(compute)
    expansion = in_lines(expansion_size(&c, kind) * sizeof(int32_t))
    tables_size = expansion + walk_tables_size(&walk, &c) + in_lines(threads * sizeof(task_range))
    partial_size = in_lines(c.blocks * slices * size * sizeof(compute))
    try:
        memory = allocate(
            tables_size, partial_size, workers_of(threads, c.blocks * slices) * scratch_size * sizeof(compute)
        )
        if before is not None and before():
            return 0
        make_expansion(&c, <int32_t *>first_line(memory), kind)
        make_walk_tables(&walk, &c, first_line(memory) + expansion, 1)
        begin_team(&all, threads, first_line(memory) + expansion + walk_tables_size(&walk, &c))
        partial = <compute *>(first_line(memory) + tables_size)
        scratch = <compute *>(first_line(memory) + tables_size + partial_size)
        for turn in range(2):
            workers = share_tasks(&all, 0, c.blocks * slices if turn == 0 else c.blocks)
            if threads == 1:  # a team of one would cost a system call
                with nogil:
                    wgrad_lane_tasks(&c, &walk, slices, x, w, y, partial, scratch, size, turn == 1, 0)
            else:
                for worker in prange(workers, schedule="static", num_threads=threads, nogil=True):
                    wgrad_lane_tasks(&c, &walk, slices, x, w, y, partial, scratch + worker * scratch_size, size,
                                     turn == 1, worker)
            end_listening(&all.ears)
    finally:
        free(memory)
    return 0
