"""wgrad: filter(o, t, c) = sum over positions p of source(p, t, c) * target(p, o).

A block of the filter has all taps of a chunk of input channels and a block of output channels. The rows of a tile are
(t, c), its columns o, and its depth the positions, box after box. If there are few blocks, the boxes are cut into
slices (split-K). Each slice is a task, and the slices are added in order.
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from base.memory cimport in_lines
from base.problem cimport conv_axis
from base.scalar cimport compute, scalar
from base.tensor cimport filter_offset, target_offset
from copy.load_store cimport store_block
from copy.window cimport Box, column_offsets, fill_window, find_box, window_offset
from direct.blocks cimport Blocks, Step
from direct.exact cimport any_nan
from direct.repair_filter cimport repair_filter
from direct.walk cimport Convolution
from direct.wgrad_tasks cimport (
    Accumulation, FilterBlock, describe_accumulation, list_tables, pack_target, pair_window, part_of, row_lines,
)
from direct.zones cimport WORTH, WORTH_TAPS, Range, Zone, Zones, find_zones
from parallel.tasks cimport begin_call, end_call, form_team, is_stopped, run, task_function, team
from tile.matrix cimport release_matrices
from tile.multiply cimport Columns, Depth, Rows, Sums, count_pitched, multiply_rows
from tile.ukernel cimport CARRIED, FRESH, LINE_BYTES, MATRICES, VECTOR_BYTES, way_of

cdef struct WgradJob:  # parameters that all tasks share, in addition to the source
    const Accumulation *c  # one for each step
    int64_t tasks  # of a step
    void *filter
    const void *target
    void *partial  # [block][slice] of sums, if there are several slices


cdef inline int64_t list_rows(
    const Accumulation *c, const FilterBlock *part, const Zone *zone, const int32_t *column, int32_t *zone_column,
    int64_t *place,
) noexcept nogil:
    """List the rows of a zone in the order of all rows: their offsets in the window and in the sums.

    Returns the number of rows.
    """
    cdef int64_t i = 0, k, t, d, h, w, row, repeats = part.channels if c.taps_inside else 1
    cdef const conv_axis *axis = c.conv.walk.axis
    cdef const Range *r = zone.axis
    for k in range(repeats):
        for d in range(r[0].tap, r[0].tap + r[0].taps):
            for h in range(r[1].tap, r[1].tap + r[1].taps):
                for w in range(r[2].tap, r[2].tap + r[2].taps):
                    t = (d * axis[1].taps + h) * axis[2].taps + w
                    for row in range(t * part.tap_rows, t * part.tap_rows + (1 if c.taps_inside else part.channels)):
                        zone_column[i] = column[row + k * part.channel_rows]
                        place[i] = (row + k * part.channel_rows) * c.row
                        i += 1
    return i


cdef inline void add_rows(
    const Accumulation *c, const FilterBlock *part, const Zone *zone, int64_t rows, const compute *window,
    const int32_t *column, const int32_t *position, const compute *panel, const int32_t *line, compute *sums,
    const int64_t *place, bint begins,
) noexcept nogil:
    """sums += the products of the rows of a zone with a panel, at the zone's positions.

    ``place`` has the offsets of the rows' sums; it is NULL if the zone has all rows.
    """
    cdef int64_t j = 0, pitched = 0, columns, steps = min(zone.axis[2].count, zone.positions)
    cdef int way = way_of(c.conv.blocks.pairs), how = FRESH if begins else CARRIED
    if way == MATRICES:  # the lines of the panel are evenly spaced, also from one row of positions to the next
        steps = zone.positions
    if not c.taps_inside or c.conv.taps == 1:  # otherwise neighbouring rows are taps, not channels
        pitched = count_pitched(column, part.channels, rows)
    while j < part.outputs:
        columns = min(c.strip, part.outputs - j)
        multiply_rows(
            Depth(way, zone.positions, steps), window, Rows(column, position, rows, pitched, c.conv.in_place),
            panel + j // c.strip * c.panel_strip, Columns(line, columns), sums, Sums(j, place, c.row, how),
        )
        j += c.strip


cdef inline void accumulate(
    const Accumulation *c, const FilterBlock *part, int64_t groups, const scalar *source, const scalar *target,
    compute *sums, int64_t sums_g, char *scratch, int64_t slice,
) noexcept nogil:
    """sums = the products of a part over one slice of the boxes. The next group's sums lie ``sums_g`` elements on."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t g, i, box_index, first_box, rows
    cdef int64_t cut_outputs = 0 if conv.blocks.pairs else part.outputs  # 0: no cut, which would separate pairs
    cdef bint cut
    cdef Zones zones
    cdef Box box
    cdef Box lines  # the box in lines of the panel: positions, or pairs of positions
    cdef Box seen_box  # the box with the padding positions that complete pairs
    cdef compute *window = <compute *>scratch
    cdef const compute *seen
    cdef compute *panel = window + conv.window_size
    cdef int32_t *position = <int32_t *>(panel + c.panel_size + conv.blocks.groups * c.sums_size)
    cdef int32_t *column = position + conv.box_positions
    cdef int32_t *line = column + conv.taps * conv.blocks.chunk
    cdef int32_t *zone_column = line + conv.box_positions
    cdef int64_t *place = <int64_t *>in_lines(<int64_t>(zone_column + conv.taps * conv.blocks.chunk))
    cdef const compute *taken = panel
    source += part.g * conv.x.group + part.c0 * conv.x.channel
    target += part.g * conv.y.group + part.o0 * conv.y.channel
    column_offsets(&conv.window, &conv.walk, part.channels, part.tap_rows, part.channel_rows, column)
    first_box = conv.box_count * slice // conv.blocks.slices
    if conv.box_count == 0:
        for g in range(groups):
            memset(sums + g * sums_g, 0, conv.taps * part.channels * c.row * sizeof(compute))
    for box_index in range(first_box, conv.box_count * (slice + 1) // conv.blocks.slices):
        if box_index > first_box and is_stopped(c.workers):
            return
        find_box(&box, &conv.window, &conv.walk, conv.batch, conv.boxes, box_index)
        lines = seen_box = box
        lines.count[3] = row_lines(c, &box)
        seen_box.count[3] = 2 * lines.count[3] if conv.blocks.pairs else lines.count[3]
        find_zones(&zones, &conv.walk, &lines, True, True, part.channels, cut_outputs,
                   WORTH_TAPS if c.taps_inside and VECTOR_BYTES < LINE_BYTES else WORTH)
        cut, rows = zones.count > 1, conv.taps * part.channels
        if not conv.in_place:
            fill_window(window, &conv.window, &conv.walk, &seen_box, source, &conv.x, groups * part.channels)
        if conv.blocks.pairs:
            pair_window(c, window)
        for g in range(groups):
            seen = window + g * part.channels * conv.window.channel_pitch
            if not c.panel_in_place:
                pack_target(c, &box, target + g * conv.y.group, part.outputs, panel)
            if scalar is compute:
                if conv.in_place:
                    seen = source + g * conv.x.group + window_offset(&box, &conv.walk, &conv.x)
                if c.panel_in_place:
                    taken = target + g * conv.y.group + target_offset(
                        &conv.y, &conv.walk, box.begin[0], box.begin[1], box.begin[2], box.begin[3])
            for i in range(zones.count):
                if cut or g == 0:
                    list_tables(c, &zones.zone[i], &lines, position, line)
                if cut:
                    rows = list_rows(c, part, &zones.zone[i], column, zone_column, place)
                add_rows(c, part, &zones.zone[i], rows, seen, zone_column if cut else column, position, taken,
                         line, sums + g * sums_g, place if cut else NULL, box_index == first_box)


cdef inline void finish(
    const Accumulation *c, const FilterBlock *part, const scalar *source, scalar *filter, const scalar *target,
    compute *sums,
) noexcept nogil:
    """Add the slices of a part in order and store it."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t slice, i, t, runs = 1 if c.taps_inside else conv.taps  # runs of consecutive rows
    cdef int64_t rows = conv.taps * part.channels // runs, pitch = part.tap_rows * c.row, together
    cdef bint repairs = False
    source += part.g * conv.x.group + part.c0 * conv.x.channel
    target += part.g * conv.y.group + part.o0 * conv.y.channel
    filter += part.g * conv.w.group + part.o0 * conv.w.batch + part.c0 * conv.w.channel
    for t in range(runs):
        for slice in range(1, conv.blocks.slices):
            for i in range(t * pitch, t * pitch + rows * c.row):
                sums[i] += sums[slice * c.sums_size + i]
        if compute is not int:
            repairs = repairs or (conv.padded and any_nan(sums + t * pitch, rows, part.outputs, c.row))
    if compute is not int:
        if repairs:
            repair_filter(conv, source, target, part.channels, part.outputs, sums, pitch, part.channel_rows * c.row)
    if c.taps_adjacent:
        together = part.channels if c.taps_inside and conv.w.channel == conv.taps else 1
        for i in range(part.channels // together):
            store_block(filter + filter_offset(&conv.w, &conv.walk, 0) + i * conv.w.channel, conv.w.batch, 1,
                        sums + i * part.channel_rows * c.row, 1, pitch, part.outputs, together * conv.taps)
        return
    for t in range(conv.taps):
        store_block(filter + filter_offset(&conv.w, &conv.walk, t), conv.w.batch, conv.w.channel,
                    sums + t * pitch, 1, part.channel_rows * c.row, part.outputs, part.channels)


cdef inline void wgrad_task(
    const WgradJob *job, const scalar *source, compute *scratch, int64_t number
) noexcept nogil:
    """Sum one slice of a part, for each group of a bundle. If there is only one slice, also store the result.

    Blocks of outputs vary fastest, because they read the same part of the source, which the first one leaves in the
    cache.
    """
    cdef const Accumulation *c = job.c + number // job.tasks
    cdef const Convolution *conv = &c.conv
    cdef const scalar *target = <const scalar *>job.target
    cdef int64_t blocks = conv.output_blocks, slices = conv.blocks.slices, task = number % job.tasks
    cdef int64_t slice = task // blocks % slices
    cdef int64_t first = (task // (blocks * slices) * blocks + task % blocks) * conv.blocks.groups, g
    cdef int64_t groups = min(conv.blocks.groups, c.block_count - first)
    cdef compute *sums = <compute *>job.partial + (first * slices + slice) * c.sums_size
    cdef FilterBlock part
    if slices == 1:
        sums = scratch + conv.window_size + c.panel_size
    part_of(c, first, &part)
    accumulate(c, &part, groups, source, target, sums, slices * c.sums_size, <char *>scratch, slice)
    release_matrices()
    for g in range(groups if slices == 1 else 0):
        part_of(c, first + g, &part)
        finish(c, &part, source, <scalar *>job.filter, target, sums + g * c.sums_size)


cdef inline void finish_task(
    const WgradJob *job, const scalar *source, compute *scratch, int64_t number
) noexcept nogil:
    """Add the slices of some channels of a block of the filter."""
    cdef const Accumulation *c = job.c
    cdef int64_t block = number // c.pieces, first = number % c.pieces * c.piece_channels
    cdef FilterBlock part
    part_of(c, block, &part)
    if first >= part.channels:
        return
    part.c0, part.channels = part.c0 + first, min(c.piece_channels, part.channels - first)
    finish(c, &part, source, <scalar *>job.filter, <const scalar *>job.target,
           <compute *>job.partial + block * c.conv.blocks.slices * c.sums_size + first * part.channel_rows * c.row)


cdef inline int wgrad_steps(
    const scalar[:, :, :, :, :, :] source, scalar[:, :, :, :, :, :] filter, const scalar[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array, before, compute kind,
) except -1:
    """Run steps with different taps: all in one parallel loop or, if slices have to be added, one after the other."""
    cdef Accumulation one
    cdef Accumulation *c = &one
    cdef WgradJob job
    cdef team all
    cdef const Blocks *blocks = <const Blocks *>&block_array[0]
    cdef int64_t i, k, steps = step_array.shape[0], together = steps if blocks.slices == 1 else 1
    cdef int64_t shared_size = 0, scratch_size = 0
    cdef const scalar *x = &source[0, 0, 0, 0, 0, 0]
    form_team(&all, blocks.threads)
    for i in range(steps):
        describe_accumulation(c, source, filter, target, <const Step *>&step_array[i, 0], blocks, kind)
        scratch_size = max(scratch_size, c.scratch)
        if blocks.slices > 1:
            shared_size = max(shared_size, c.block_count * blocks.slices * c.sums_size * <int64_t>sizeof(compute))
    if together > 1:
        shared_size = steps * <int64_t>sizeof(Accumulation)
    job.tasks = c.bundle_count * blocks.slices
    try:
        if not begin_call(&all, shared_size, together * job.tasks, scratch_size, before):
            return 0
        if together > 1:
            c = <Accumulation *>all.shared
        job.c, job.filter, job.target = c, &filter[0, 0, 0, 0, 0, 0], &target[0, 0, 0, 0, 0, 0]
        job.partial = all.shared
        i = 0
        while i < steps:  # Cython makes a range with a variable step an object, whose allocation may fail
            for k in range(together):
                if steps > 1:  # a single step is described already
                    describe_accumulation(
                        c + k, source, filter, target, <const Step *>&step_array[i + k, 0], blocks, kind)
                c[k].workers = &all
            run(&all, <task_function>wgrad_task[scalar, compute], &job, x, 0, together * job.tasks)
            if blocks.slices > 1:
                run(&all, <task_function>finish_task[scalar, compute], &job, x, 0, c.block_count * c.pieces)
            i += together
    finally:
        end_call(&all)
    return 0
