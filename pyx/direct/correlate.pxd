"""fprop and dgrad: target(p, o) = sum over taps t and channels c of source(p, t, c) * filter(o, t, c).

The filter is packed once, for all boxes of positions, or, where it is large and the boxes are few, by each task. A task
is a box and a block of output channels; chunk after chunk of the channels it fills the box's window and adds the
products to its sums, and in the end it stores them.

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
from copy.window cimport Box, column_offsets, fill_window, find_box, position_steps, window_offset
from direct.blocks cimport Blocks, Step
from direct.correlate_tasks cimport (
    Correlation, describe_correlation, filter_tables_size, make_filter_tables, stores_lines, takes_places, takes_sums,
)
from direct.exact cimport any_nan
from direct.packing cimport count_packs, pack_filter, pack_steps, packs_together
from direct.phases cimport correlate_phases, join_boxes, phases_scratch
from direct.products cimport Bundle, DepthChunk, add_products
from direct.repair cimport repair
from direct.walk cimport Convolution, adjacent_rows, row_steps, tables_size as box_tables_size, target_steps
from direct.zones cimport WORTH, Zone, Zones, find_zones, list_places
from parallel.tasks cimport begin_call, end_call, form_team, is_stopped, run, task_function, team
from tile.ukernel cimport whole_vectors

cdef struct CorrelateJob:  # what all tasks of a call share, beside the source
    const Correlation *steps
    int64_t count  # of the steps
    bint together  # the filters of all steps are packed together
    const void *filter
    void *target
    void *packed


cdef inline void correlate_block(
    const Correlation *c, const scalar *source, const scalar *filter, scalar *target, const compute *packed,
    char *scratch, int64_t task,
) noexcept nogil:
    cdef const Convolution *conv = &c.conv
    # Groups inside boxes: of channels last, groups are neighbours in memory.
    cdef int64_t g0 = task // conv.output_blocks % conv.bundles * conv.blocks.groups, g
    cdef int64_t groups = min(conv.blocks.groups, conv.groups - g0)
    cdef int64_t o0 = task % conv.output_blocks * conv.blocks.outputs
    cdef int64_t outputs = min(conv.blocks.outputs, conv.outputs - o0), channels, words
    cdef int64_t n, d, h, place, row = 0, together
    cdef int64_t i, positions, rows, columns, sums_w, sums_h, sums_o, sums_g, sums_row = c.row
    cdef int64_t position_step[4]
    cdef int64_t place_step[4]
    cdef bint direct = False, streamed = False
    cdef Box box
    cdef Zones zones
    cdef const Zone *zone
    cdef DepthChunk part
    cdef Bundle bundle
    cdef compute *window = <compute *>scratch
    cdef const compute *seen = window
    cdef compute *sums = window + conv.window_size
    cdef compute *bank = sums + c.sums_size
    cdef int32_t *position = <int32_t *>(bank + c.bank_size)
    cdef int32_t *column = position + conv.box_positions
    cdef int64_t *places = NULL
    positions = find_box(&box, &conv.window, &conv.walk, conv.batch, conv.boxes,
                         task // (conv.output_blocks * conv.bundles))
    source += g0 * conv.x.group
    filter += g0 * conv.w.group
    target += g0 * conv.y.group + o0 * conv.y.channel
    packed += g0 * c.packing.filter_size
    find_zones(&zones, &conv.walk, &box, False, not conv.blocks.positions_across,
               words_of(min(conv.blocks.chunk, conv.channels), conv.blocks.pairs), outputs, WORTH)
    if scalar is compute:
        direct = takes_sums(c, &box, outputs, sums[0])
        # NaN is sought among sums that are evenly spaced.
        if not direct and takes_places(c, outputs, sums[0]) and not (conv.padded and c.nonfinite[0]):
            direct = True
            places = <int64_t *>(<char *>position + box_tables_size(conv))
            target_steps(conv, place_step)
        if direct:
            sums = target + target_offset(&conv.y, &conv.walk, box.begin[0], box.begin[1], box.begin[2], box.begin[3])
            sums_row = conv.walk.axis[2].target_step * conv.y.axis[2]
            if conv.blocks.positions_across:
                sums_row = conv.y.channel
            streamed = conv.blocks.streams and stores_lines(c, &box, outputs, sums)
    if places == NULL and zones.count > 1 and not conv.blocks.positions_across:
        places = <int64_t *>(<char *>position + box_tables_size(conv))
        row_steps(&box, sums_row, place_step)
    position_steps(&conv.window, position_step)
    for i in range(zones.count):
        zone = &zones.zone[i]
        list_places(zone, &box, 0, position_step, position + zone.begin)
        if places != NULL:
            list_places(zone, &box, 0, place_step, places + zone.begin)
    if conv.blocks.positions_across:
        sums_w, sums_h, sums_o = 1, whole_vectors(box.count[3], sums[0]), sums_row
        rows, columns = outputs, positions // box.count[3] * sums_h
    else:
        sums_w, sums_h, sums_o = sums_row, sums_row * box.count[3], 1
        rows, columns = positions, outputs
    sums_g = conv.y.group if direct else outputs * sums_o
    if conv.channels == 0 or conv.taps == 0:
        memset(sums, 0, (rows * groups if conv.blocks.positions_across else rows) * sums_row * sizeof(compute))
    bundle.groups, bundle.filter, bundle.packed, bundle.sums = groups, conv.w.group, c.packing.filter_size, sums_g
    part.begin, part.channels = 0, 0
    while part.begin < conv.channels and conv.taps:
        channels = min(conv.blocks.chunk, conv.channels - part.begin)
        if channels != part.channels:
            words = words_of(channels, conv.blocks.pairs)
            column_offsets(&conv.window, &conv.walk, words, words, 1, column)
            part.channels = channels
        if not conv.in_place:
            fill_window(window, &conv.window, &conv.walk, &box, source + part.begin * conv.x.channel, &conv.x,
                        groups * channels)
        else:
            seen = <const compute *>(source + window_offset(&box, &conv.walk, &conv.x) + part.begin * conv.x.channel)
        bundle.window = channels * conv.window.channel_pitch
        add_products(c, &box, &zones, outputs, &part, &bundle, seen,
                     filter + o0 * conv.w.batch + part.begin * conv.w.channel,
                     packed + (part.begin * c.filter_outputs + o0 * part.channels) * c.packing.conv.taps,
                     bank, position, column, sums, places, sums_row, streamed)
        part.begin += part.channels
        if part.begin < conv.channels and is_stopped(c.workers):
            return
    if compute is not int:
        for g in range(groups if conv.padded and c.nonfinite[0] else 0):
            if any_nan(sums + g * sums_g, rows, columns, sums_row):
                repair(conv, &box, o0, outputs, source + g * conv.x.group, filter + g * conv.w.group, sums + g * sums_g,
                       sums_w, sums_h, sums_o)
    if streamed:
        end_stream()
    if direct:
        return
    together = 1 if conv.blocks.positions_across else adjacent_rows(conv, &box)
    for n in range(box.count[0]):
        for d in range(box.count[1]):
            for h in range(box.count[2] // together):
                place = target_offset(&conv.y, &conv.walk, box.begin[0] + n, box.begin[1] + d,
                                      box.begin[2] + h * together, box.begin[3])
                store_block(target + place, conv.walk.axis[2].target_step * conv.y.axis[2], conv.y.channel,
                            sums + row * sums_h, sums_w, sums_o, together * box.count[3], groups * outputs)
                row += together


cdef inline const Correlation *step_of(
    const Correlation *steps, int64_t count, bint packing, int64_t task
) noexcept nogil:
    """The step that a task belongs to: the last one that begins at it or before it."""
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
    """Pack strips of the filter, of one step or of all together."""
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
        correlate_block(c, source, filter, target, packed + c.packing.packed, <char *>scratch, task - c.first_task)


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
    cdef int32_t nonfinite = blocks.packs or blocks.pairs  # or seen when the filter is packed
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
        # The filter is packed first. Then a first step without taps leaves zeros everywhere, before any sum.
        zeros = c[1].first_task if count > 1 and c.conv.taps == 0 else 0
        run(&all, <task_function>pack_task[scalar, compute], &job, x, 0, packs)
        run(&all, <task_function>correlate_task[scalar, compute], &job, x, 0, zeros)
        run(&all, <task_function>correlate_task[scalar, compute], &job, x, zeros, tasks)
    finally:
        give_memory(steps, 0)
        end_call(&all)
    return 0
