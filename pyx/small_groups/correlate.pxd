"""fprop and dgrad of many small groups: target(p, lane) = sum over taps t, channels i of source(p, t, i) filter(t, i).

The filter is packed once. A task is a box of positions and a block of lanes, with all steps. So all phases of a strided
dgrad share one copy of their part of the source.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memset

from base.memory cimport allocate, first_line, give_memory, in_lines
from base.scalar cimport bf16, compute, scalar, widen
from base.tensor cimport filter_offset
from copy.stream cimport holds_lines
from direct.blocks cimport Blocks, Step
from parallel.tasks cimport begin_call, end_call, form_team, run, task_function, team
from small_groups.copies cimport load_part, store_result
from small_groups.lanes cimport (
    LaneBox, Lanes, describe_lanes, expansion_size, find_lane_box, make_expansion, origin_of,
)
from small_groups.rows cimport LaneWalk, correlate_rows, describe_walk, make_walk_tables, walk_tables_size

cdef struct LanesJob:  # parameters that all tasks of a call share, in addition to the source
    const Lanes *c
    const LaneWalk *walks
    int64_t count  # of the walks
    const void *filter
    void *target
    void *packed


cdef inline void pack_block(
    const Lanes *c, const LaneWalk *walk, const scalar *filter, compute *packed, int64_t block
) noexcept nogil:
    """Pack packed[t][i][lane], with zeros in the lanes beyond the last."""
    cdef int64_t width = walk.line, lane, t, _channel, l0 = block * c.block, lanes = min(c.block, c.lanes - l0)
    cdef const scalar *of
    if lanes < width:
        memset(packed, 0, walk.taps * c.channels * width * sizeof(compute))
    for t in range(walk.taps):
        of = filter + filter_offset(&c.w, &walk.walk, t)
        for _channel in range(c.channels):
            if c.outputs == 1:
                for lane in range(lanes):
                    packed[lane] = widen(of[(l0 + lane) * c.w.group], packed[0])
            else:
                for lane in range(lanes):
                    packed[lane] = widen(
                        of[(l0 + lane) // c.outputs * c.w.group + (l0 + lane) % c.outputs * c.w.batch], packed[0])
            packed += width
            of += c.w.channel


cdef inline void pack_factors(
    const Lanes *c, const scalar *filter, compute *packed, int64_t width
) noexcept nogil:
    """packed[i * width] = the filter of one output channel for its channel, or pair of channels, i."""
    cdef int64_t i
    for i in range(c.words):
        if not c.pairs:
            packed[i * width] = widen(filter[i * c.w.channel], packed[0])
        elif scalar is bf16:
            (<uint32_t *>(packed + i * width))[0] = (
                filter[2 * i * c.w.channel].bits | <uint32_t>filter[(2 * i + 1) * c.w.channel].bits << 16)


cdef inline void pack_vectors(
    const Lanes *c, const LaneWalk *walk, const scalar *filter, compute *packed, int64_t block
) noexcept nogil:
    """Pack packed[vector][t][i][lane] for the spreading tile, with zeros in the lanes that belong to no group."""
    cdef int64_t groups = c.y_vector // c.outputs, v, t, g, o, first
    cdef const scalar *of
    memset(packed, 0, walk.line * walk.taps * c.words * sizeof(compute))
    for v in range(c.vectors):
        first = block * (c.block // c.outputs) + v * groups
        for t in range(walk.taps):
            for g in range(min(groups, c.groups - first)):
                for o in range(c.outputs):
                    of = filter + filter_offset(&c.w, &walk.walk, t) + (first + g) * c.w.group + o * c.w.batch
                    pack_factors(c, of, packed + g * c.outputs + o, walk.width)
            packed += c.words * walk.width


cdef inline void zero_target(
    const Lanes *c, const LaneBox *box, compute *target
) noexcept nogil:
    """Set a box of the target to zero, in place. ``target`` points at position 0 of the image."""
    cdef int64_t d, h, w
    target += origin_of(&c.y, box.target)
    for d in range(box.target_count[0]):
        for h in range(box.target_count[1]):
            for w in range(box.target_count[2]):
                memset(target + d * c.y.axis[0] + h * c.y.axis[1] + w * c.y.axis[2], 0, box.lanes * sizeof(compute))


cdef inline void correlate_lane_box(
    const Lanes *c, const LaneWalk *walks, int64_t count, const scalar *source, scalar *target, const compute *packed,
    compute *scratch, int64_t task,
) noexcept nogil:
    cdef LaneBox box
    cdef int64_t i, line = c.words * walks.line
    cdef compute *plain = scratch + c.part_size
    cdef compute *result = plain + c.plain_size
    cdef const compute *seen = scratch
    cdef compute *made = result
    find_lane_box(&box, c, task)
    source += box.image * c.x.batch
    target += box.image * c.y.batch
    if not c.x_in_place:
        load_part(c, &box, source, scratch, plain, 0)
        seen = scratch - origin_of(&c.part, box.source)
    elif scalar is compute:
        seen = source + box.lane
    if not c.y_in_place:
        made = result - origin_of(&c.result, box.target)
        if c.incomplete:
            memset(result, 0, c.result_size * sizeof(compute))
    elif scalar is compute:
        made = target + box.lane
        if c.incomplete:
            zero_target(c, &box, made)
    for i in range(count):
        correlate_rows(&walks[i], &box, seen,
                       packed + walks[i].packed + box.lane // c.block * line * walks[i].taps, made, result,
                       c.streamed and holds_lines(&c.y, made, box.lanes))
    if not c.y_in_place:
        store_result(c, &box, result, target)


cdef inline void pack_lanes_task(
    const LanesJob *job, const scalar *source, compute *scratch, int64_t task
) noexcept nogil:
    """Pack the filter of one walk for a block of lanes."""
    cdef const Lanes *c = job.c
    cdef const LaneWalk *walk = job.walks + task // c.blocks
    cdef int64_t block = task % c.blocks
    cdef compute *packed = <compute *>job.packed + walk.packed + block * walk.line * walk.taps * c.words
    if c.spreads:
        pack_vectors(c, walk, <const scalar *>job.filter, packed, block)
    else:
        pack_block(c, walk, <const scalar *>job.filter, packed, block)


cdef inline void correlate_lanes_task(
    const LanesJob *job, const scalar *source, compute *scratch, int64_t task
) noexcept nogil:
    correlate_lane_box(job.c, job.walks, job.count, source, <scalar *>job.target, <const compute *>job.packed, scratch,
                       task)


cdef inline int correlate_lanes(
    const scalar[:, :, :, :, :, :] source, const scalar[:, :, :, :, :, :] filter, scalar[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array, before, compute kind,
) except -1:
    cdef Lanes c
    cdef LanesJob job
    cdef team all
    cdef const Blocks *blocks = <const Blocks *>&block_array[0]
    cdef const Step *steps = <const Step *>&step_array[0, 0]
    cdef int64_t i, count = step_array.shape[0], packed_size = 0, tables_size, scratch_size, tasks
    cdef bint incomplete = count > 1 and steps[0].walk.axis[2].taps == 0
    cdef void *memory = NULL
    cdef LaneWalk *walks
    cdef char *tables
    cdef const scalar *x = &source[0, 0, 0, 0, 0, 0]
    form_team(&all, blocks.threads)
    if incomplete:  # the first step only stores zeros everywhere; instead, each task stores zeros in its own box
        steps += 1
        count -= 1
    describe_lanes(&c, source, filter, target, steps, count, blocks, kind)
    c.incomplete, c.workers = incomplete, &all
    tasks = c.batch * c.box_count * c.blocks
    scratch_size = (c.part_size + c.plain_size + c.result_size) * sizeof(compute)
    tables_size = in_lines(expansion_size(&c, kind) * sizeof(int32_t))
    try:
        memory = allocate(count * sizeof(LaneWalk), 0, 0)
        walks = <LaneWalk *>first_line(memory)
        for i in range(count):
            describe_walk(walks + i, &c, steps + i, kind)
            walks[i].packed = packed_size
            packed_size += c.blocks * walks[i].line * walks[i].taps * c.words
            tables_size += walk_tables_size(walks + i, &c)
        if not begin_call(&all, tables_size + packed_size * sizeof(compute), tasks, scratch_size, before):
            return 0
        tables = all.shared
        make_expansion(&c, <int32_t *>tables, kind)
        tables += in_lines(expansion_size(&c, kind) * sizeof(int32_t))
        for i in range(count):
            make_walk_tables(walks + i, &c, tables, walks[i].line)
            tables += walk_tables_size(walks + i, &c)
        job.c, job.walks, job.count = &c, walks, count
        job.filter, job.target, job.packed = &filter[0, 0, 0, 0, 0, 0], &target[0, 0, 0, 0, 0, 0], tables
        run(&all, <task_function>pack_lanes_task[scalar, compute], &job, x, 0, count * c.blocks)
        run(&all, <task_function>correlate_lanes_task[scalar, compute], &job, x, 0, tasks)
    finally:
        give_memory(memory, 0)
        end_call(&all)
    return 0
