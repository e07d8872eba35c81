"""fprop and dgrad: target(p, o) = sum over taps t and channels c of source(p, t, c) * filter(o, t, c).

The filter is packed once for all boxes of positions. If it is large and boxes are few, each task packs its own part
instead. A task is a box and a block of output channels. For each chunk of channels it fills the box's window and adds
the products to its sums. At the end it stores them.

                        rows of a tile      columns of a tile
    channels across     positions           output channels
    positions across    output channels     positions of a row
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from base.memory cimport allocate, first_line, give_memory, in_lines
from base.scalar cimport compute, scalar
from base.tensor cimport target_offset
from copy.load_store cimport store_block
from copy.pairs cimport words_of
from copy.stream cimport end_stream
from copy.window cimport Box, fill_window, find_box, position_steps, window_offset
from direct.blocks cimport Blocks, Step
from direct.correlate_tasks cimport (
    Correlation, describe_correlation, filter_tables_size, make_filter_tables, stores_lines, takes_places, takes_sums,
)
from direct.exact cimport any_nan
from direct.packing cimport count_packs, pack_filter, pack_steps, packs_together
from direct.phases cimport correlate_phases, join_boxes, phases_scratch
from direct.products cimport CorrelateTask, add_products, begin_chunk
from direct.repair cimport SumSteps, repair
from direct.walk cimport Convolution, adjacent_rows, row_steps, tables_size as box_tables_size, target_steps
from direct.zones cimport WORTH, Zone, find_zones, list_places
from parallel.tasks cimport begin_call, end_call, form_team, is_stopped, run, task_function, team
from tile.matrix cimport release_matrices
from tile.multiply cimport Sums
from tile.ukernel cimport FRESH, whole_vectors

cdef struct CorrelateJob:  # parameters that all tasks of a call share, in addition to the source
    const Correlation *steps
    int64_t count  # number of steps
    bint together  # the filters of all steps are packed together
    const void *filter
    void *target
    void *packed


cdef inline void locate_block(
    CorrelateTask *t, const Correlation *c, compute *tables, int64_t number
) noexcept nogil:
    """Set the block of task ``number`` and its tables.

    Bundles vary faster than boxes, because groups are neighbours in channels-last layouts.
    """
    cdef const Convolution *conv = &c.conv
    t.c, t.channels = c, 0
    t.g0 = number // conv.output_blocks % conv.bundles * conv.blocks.groups
    t.groups = min(conv.blocks.groups, conv.groups - t.g0)
    t.o0 = number % conv.output_blocks * conv.blocks.outputs
    t.outputs = min(conv.blocks.outputs, conv.outputs - t.o0)
    t.positions = find_box(&t.box, &conv.window, &conv.walk, conv.batch, conv.boxes,
                           number // (conv.output_blocks * conv.bundles))
    t.position = <int32_t *>tables
    t.column = t.position + conv.box_positions
    t.places = <int64_t *>(<char *>tables + box_tables_size(conv))
    find_zones(&t.zones, &conv.walk, &t.box, False, not conv.blocks.positions_across,
               words_of(min(conv.blocks.chunk, conv.channels), conv.blocks.pairs), t.outputs, WORTH)


cdef inline SumSteps sum_steps(const CorrelateTask *t, compute kind) noexcept nogil:
    """Strides of the sums."""
    if t.c.conv.blocks.positions_across:
        return SumSteps(1, whole_vectors(t.box.count[3], kind), t.sums.pitch)
    return SumSteps(t.sums.pitch, t.sums.pitch * t.box.count[3], 1)


cdef inline compute *locate_sums(CorrelateTask *t, scalar *target, compute *sums) noexcept nogil:
    """Make the tables of positions. Returns the first sum: in the target if it can hold the sums, else in ``sums``."""
    cdef const Correlation *c = t.c
    cdef const Convolution *conv = &c.conv
    cdef int64_t i
    cdef int64_t position_step[4]
    cdef int64_t place_step[4]
    cdef const Zone *zone
    cdef bint placed = False
    t.in_target = t.streamed = False
    t.sums = Sums(0, NULL, c.row, FRESH)
    if scalar is compute:
        t.in_target = takes_sums(c, &t.box, t.outputs, sums[0])
        # The search for NaN needs evenly spaced sums, so a filter with a nonfinite value excludes ``placed``.
        placed = not t.in_target and takes_places(c, t.outputs, sums[0]) and not (conv.padded and c.nonfinite[0])
        if t.in_target or placed:
            t.in_target = True
            sums = target + target_offset(&conv.y, &conv.walk, t.box.begin[0], t.box.begin[1], t.box.begin[2],
                                          t.box.begin[3])
            t.sums.pitch = conv.walk.axis[2].target_step * conv.y.axis[2]
            if conv.blocks.positions_across:
                t.sums.pitch = conv.y.channel
            t.streamed = conv.blocks.nontemporal and stores_lines(c, &t.box, t.outputs, sums)
    if placed:
        target_steps(conv, place_step)
    elif t.zones.count > 1 and not conv.blocks.positions_across:
        placed = True
        row_steps(&t.box, t.sums.pitch, place_step)
    if placed:
        t.sums.place = t.places
    position_steps(&conv.window, position_step)
    for i in range(t.zones.count):
        zone = &t.zones.zone[i]
        list_places(zone, &t.box, 0, position_step, t.position + zone.begin)
        if placed:
            list_places(zone, &t.box, 0, place_step, t.places + zone.begin)
    t.group_sums = conv.y.group if t.in_target else t.outputs * sum_steps(t, sums[0]).o
    return sums


cdef inline void zero_sums(const CorrelateTask *t, compute *sums) noexcept nogil:
    """Set sums that have no terms to zero."""
    cdef int64_t rows = t.positions
    if t.c.conv.blocks.positions_across:
        rows = t.outputs * t.groups
    memset(sums, 0, rows * t.sums.pitch * sizeof(compute))


cdef inline const compute *fill_chunk(const CorrelateTask *t, const scalar *source, compute *window) noexcept nogil:
    """Fill the window of the chunk and return it, or return its place in the source if that serves as window."""
    cdef const Convolution *conv = &t.c.conv
    source += t.c0 * conv.x.channel
    if conv.in_place:
        return <const compute *>(source + window_offset(&t.box, &conv.walk, &conv.x))
    fill_window(window, &conv.window, &conv.walk, &t.box, source, &conv.x, t.groups * t.channels)
    return window


cdef inline void repair_block(
    const CorrelateTask *t, const scalar *source, const scalar *filter, compute *sums
) noexcept nogil:
    """Recompute sums that are NaN but should not be. ``filter`` points at its first element."""
    cdef const Convolution *conv = &t.c.conv
    cdef SumSteps step = sum_steps(t, sums[0])
    cdef int64_t g, rows = t.positions, columns = t.outputs
    if conv.blocks.positions_across:
        rows, columns = t.outputs, t.positions // t.box.count[3] * step.h
    if compute is not int:
        for g in range(t.groups if conv.padded and t.c.nonfinite[0] else 0):
            if any_nan(sums + g * t.group_sums, rows, columns, t.sums.pitch):
                repair(conv, &t.box, t.outputs, source + g * conv.x.group,
                       filter + (t.g0 + g) * conv.w.group + t.o0 * conv.w.batch, sums + g * t.group_sums, step)


cdef inline void store_sums(const CorrelateTask *t, const compute *sums, scalar *target) noexcept nogil:
    """Store the sums row by row, or a whole plane at once if all its positions are evenly spaced in the target."""
    cdef const Convolution *conv = &t.c.conv
    cdef const Box *box = &t.box
    cdef SumSteps step = sum_steps(t, sums[0])
    cdef int64_t together = 1 if conv.blocks.positions_across else adjacent_rows(conv, box)
    cdef int64_t n, d, h, place, row = 0
    for n in range(box.count[0]):
        for d in range(box.count[1]):
            for h in range(box.count[2] // together):
                place = target_offset(&conv.y, &conv.walk, box.begin[0] + n, box.begin[1] + d,
                                      box.begin[2] + h * together, box.begin[3])
                store_block(target + place, conv.walk.axis[2].target_step * conv.y.axis[2], conv.y.channel,
                            sums + row * step.h, step.w, step.o, together * box.count[3], t.groups * t.outputs)
                row += together


cdef inline void correlate_block(
    const Correlation *c, const scalar *source, const scalar *filter, scalar *target, const compute *packed,
    char *scratch, int64_t task,
) noexcept nogil:
    cdef const Convolution *conv = &c.conv
    cdef CorrelateTask t
    cdef compute *window = <compute *>scratch
    cdef compute *sums = window + conv.window_size
    cdef compute *bank = sums + c.sums_size
    locate_block(&t, c, bank + c.bank_size, task)
    source += t.g0 * conv.x.group
    target += t.g0 * conv.y.group + t.o0 * conv.y.channel
    sums = locate_sums(&t, target, sums)
    if conv.channels == 0 or conv.taps == 0:
        zero_sums(&t, sums)
    t.c0 = 0
    while t.c0 < conv.channels and conv.taps:
        begin_chunk(&t)
        add_products(&t, fill_chunk(&t, source, window), filter, packed, bank, sums)
        t.c0 += t.channels
        if t.c0 < conv.channels and is_stopped(c.workers):
            return
    repair_block(&t, source, filter, sums)
    if t.streamed:
        end_stream()
    if not t.in_target:
        store_sums(&t, sums, target)


cdef inline const Correlation *step_of(
    const Correlation *steps, int64_t count, bint packing, int64_t task
) noexcept nogil:
    """The step of a task: the last step whose first task is not after it."""
    cdef int64_t low = 0, high = count, middle
    while high - low > 1:
        middle = (low + high) // 2
        if (steps[middle].first_pack if packing else steps[middle].first_task) <= task:
            low = middle
        else:
            high = middle
    return steps + low


cdef inline void pack_task(
    const CorrelateJob *job, const scalar *source, compute *scratch, int64_t task
) noexcept nogil:
    """Pack a part of the filter, of one step or of all steps together."""
    cdef const Correlation *c
    if job.together:
        pack_steps(job.steps, job.count, <const scalar *>job.filter, <compute *>job.packed, task)
        return
    c = step_of(job.steps, job.count, True, task)
    pack_filter(c, <const scalar *>job.filter, <compute *>job.packed, task - c.first_pack)


cdef inline void correlate_task(
    const CorrelateJob *job, const scalar *source, compute *scratch, int64_t task
) noexcept nogil:
    cdef const Correlation *c = step_of(job.steps, job.count, False, task)
    cdef const scalar *filter = <const scalar *>job.filter
    cdef scalar *target = <scalar *>job.target
    cdef const compute *packed = <const compute *>job.packed
    if c.conv.blocks.phases > 1:
        correlate_phases(c, source, filter, target, packed, <char *>scratch, task)
    else:
        correlate_block(c, source, filter, target, packed, <char *>scratch, task - c.first_task)
    release_matrices()


cdef inline int correlate_steps(
    const scalar[:, :, :, :, :, :] source, const scalar[:, :, :, :, :, :] filter, scalar[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array, before, compute kind,
) except -1:
    cdef const Blocks *blocks = <const Blocks *>&block_array[0]
    cdef int64_t i, count = step_array.shape[0], packed_size = 0, scratch_size = 0, tables_size = 0
    cdef int64_t zeros, packs = 0, tasks = 0
    cdef team all
    cdef CorrelateJob job
    cdef void *steps = NULL
    # Packing tasks set the flag if they meet a nonfinite value. If tasks pack for themselves, the values are not
    # checked, so the flag is set from the beginning.
    cdef int32_t nonfinite = blocks.packs
    cdef Correlation *c
    cdef char *tables
    cdef const scalar *x = &source[0, 0, 0, 0, 0, 0]
    form_team(&all, blocks.threads)
    try:
        steps = allocate(count * sizeof(Correlation), 0, 0)
        c = <Correlation *>first_line(steps)
        for i in range(count):
            describe_correlation(c + i, source, filter, target, <const Step *>&step_array[i, 0], blocks, kind)
            c[i].workers, c[i].nonfinite = &all, &nonfinite
            c[i].packing = c + (i if c[i].packs_only else (<const Step *>&step_array[i, 0]).packed)
            c[i].first_pack, c[i].packed = packs, packed_size
            if c[i].packing == c + i and not blocks.packs:
                packs += count_packs(c + i)
                packed_size += in_lines(c[i].conv.groups * c[i].filter_size * sizeof(compute)) // sizeof(compute)
            scratch_size = max(scratch_size, c[i].scratch)
            tables_size += filter_tables_size(c + i)
        if blocks.phases > 1:
            join_boxes(c)
            scratch_size = phases_scratch(c, kind)
        job.steps, job.count, job.together = c, count, packs_together(c, count, packed_size)
        if job.together:
            packs = count_packs(c)
        for i in range(count):
            c[i].first_task = tasks
            if i % blocks.phases == 0 and not c[i].packs_only:
                tasks += c[i].conv.bundles * c[i].conv.box_count * c[i].conv.output_blocks
        if not begin_call(&all, tables_size + packed_size * sizeof(compute), tasks, scratch_size, before):
            return 0
        tables = all.shared
        for i in range(count):
            make_filter_tables(c + i, tables, kind)
            tables += filter_tables_size(c + i)
        job.filter, job.target, job.packed = &filter[0, 0, 0, 0, 0, 0], &target[0, 0, 0, 0, 0, 0], tables
        # The filter is packed first. A first step without taps then stores zeros everywhere, before other steps run.
        zeros = c[1].first_task if count > 1 and c.conv.taps == 0 else 0
        run(&all, <task_function>pack_task[scalar, compute], &job, x, 0, packs)
        run(&all, <task_function>correlate_task[scalar, compute], &job, x, 0, zeros)
        run(&all, <task_function>correlate_task[scalar, compute], &job, x, zeros, tasks)
    finally:
        give_memory(steps, 0)
        end_call(&all)
    return 0
