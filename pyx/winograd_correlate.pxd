"""fprop and dgrad by Winograd's algorithm: a tile is transformed, multiplied point by point, and transformed back.

A task is a box of tiles and a block of outputs, of one group or a bundle of small ones (winograd_box.pxd). Chunk after
chunk of the channels it fills a window, transforms its tiles and adds, of each point and group, the product
(tiles x channels) * (channels x outputs) to its sums. Outputs whose filters would take too much memory at once are
computed group after group.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free

from blocks cimport allocate_lines, count_blocks, multiples
from tasks cimport (
    begin_team, end_listening, enter_loop, leave_loop, next_task, share_tasks, take_task, task_range, team, team_size,
    workers_of,
)
from window cimport Box
from winograd cimport magnitudes, stored
from winograd_box cimport correlate_tiles, transform_chunk
from winograd_correlation cimport TiledCorrelation, describe_tiled
from winograd_filter cimport transform_filters
from winograd_range cimport Extremes, clear_extremes, is_lost, stands
from winograd_tiling cimport TileBlocks, TileStep, find_tiles


cdef enum:
    MOST_STRIPS = 4  # of filters, transformed by one task,
    FILTER_CHANNELS = 32  # and channels: one strip is all there is of 64 outputs
    FILTER_TASKS = 8  # that are wanted for all threads

    # Stages of a call:
    SHARE = 0  # tiles are transformed for all blocks of outputs,
    FILTERS = 1  # and filters for all boxes of tiles
    PRODUCTS = 2


cdef inline void share_chunk(
    const TiledCorrelation *c, const stored *source, float *shared, char *scratch, int64_t task
) noexcept nogil:
    """One chunk of one box, for all blocks of outputs."""
    cdef float *window = <float *>scratch
    cdef int64_t chunks = c.added * c.chunks
    cdef Box tiles
    find_tiles(&c.tiling, task // chunks % c.tiling.box_count, &tiles)
    transform_chunk(c, &tiles, source, task // chunks // c.tiling.box_count, 1, task % chunks,
                    shared + task * c.values_size, window, window + c.window_size)


cdef inline int64_t strips_of_task(const TiledCorrelation *c, int64_t strips) noexcept nogil:
    """Strips whose filters are transformed together, of so many of a group: few enough for there to be tasks."""
    return max(<int64_t>1, min(<int64_t>MOST_STRIPS, c.groups * strips // FILTER_TASKS))


cdef inline void transform_strips(
    const TiledCorrelation *c, const stored *filter, float *filters, int64_t first_output, int64_t group_outputs,
    char *scratch, magnitudes *seen, int64_t task,
) noexcept nogil:
    cdef int64_t width = c.filters.width, strips = count_blocks(group_outputs, width)
    cdef int64_t together = strips_of_task(c, strips), parts = count_blocks(strips, together)
    cdef int64_t chunks = count_blocks(c.channels, FILTER_CHANNELS), c0 = task % chunks * FILTER_CHANNELS
    cdef int64_t g = task // chunks // parts, first = task // chunks % parts * together, o = first * width
    filter += g * c.filters.w.group + (first_output + o) * c.filters.w.batch + c0 * c.filters.w.channel
    transform_filters(
        &c.filters, c.tiling.steps, c.added, filter, filters + (g * strips + first) * c.filters.strip + c0 * width,
        c.channels, min(<int64_t>FILTER_CHANNELS, c.channels - c0), min(together * width, group_outputs - o),
        <float *>scratch, seen)


cdef inline int64_t filter_tasks(const TiledCorrelation *c, int64_t outputs) noexcept nogil:
    """Tasks that transform the filters of so many outputs; none if tasks of products transform their own."""
    cdef int64_t strips = count_blocks(outputs, c.filters.width)
    if not c.blocks.group:
        return 0
    return c.groups * count_blocks(strips, strips_of_task(c, strips)) * count_blocks(c.channels, FILTER_CHANNELS)


cdef inline int64_t product_tasks(const TiledCorrelation *c, int64_t outputs) noexcept nogil:
    return c.bundles * c.tiling.box_count * count_blocks(outputs, c.blocks.outputs)


cdef inline void tile_tasks(
    const TiledCorrelation *c, int stage, const stored *source, const stored *filter, stored *target, float *filters,
    float *shared, int64_t first_output, int64_t outputs, char *scratch, Extremes *seen, int worker,
) noexcept nogil:
    """Tasks of a stage, until none is left."""
    cdef uint64_t state = enter_loop(c.workers)
    cdef int64_t task = take_task(c.workers, worker)
    while task >= 0:
        if stage == SHARE:
            share_chunk(c, source, shared, scratch, task)
        elif stage == FILTERS:
            transform_strips(c, filter, filters, first_output, outputs, scratch, &seen.operand, task)
        elif not is_lost(seen):
            seen.result = max(seen.result, correlate_tiles(
                c, source, filter, filters, shared, target, first_output, outputs, scratch, &seen.operand, task))
        task = next_task(c.workers, worker)
    leave_loop(c.workers, state)


cdef inline int run_stage(
    const TiledCorrelation *c, int stage, int64_t tasks, const stored *source, const stored *filter, stored *target,
    float *filters, float *shared, int64_t first_output, int64_t outputs, char *scratch, Extremes *seen,
) except -1:
    cdef int worker, threads = c.workers.threads, workers = share_tasks(c.workers, 0, tasks)
    if threads == 1:  # a team of one would cost a system call
        with nogil:
            tile_tasks(c, stage, source, filter, target, filters, shared, first_output, outputs, scratch, seen, 0)
    elif workers > 0:
        for worker in prange(workers, schedule="static", num_threads=threads, nogil=True):
            tile_tasks(c, stage, source, filter, target, filters, shared, first_output, outputs,
                       scratch + worker * c.scratch, seen + worker, worker)
    return end_listening(&c.workers.ears)


cdef inline int correlate_tiled(
    const stored[:, :, :, :, :, :] source, const stored[:, :, :, :, :, :] filter, stored[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array, before,
) except -1:
    """Whether the result stands; if not, operands or results were out of the algorithm's range."""
    cdef TiledCorrelation c
    cdef team all
    cdef const TileBlocks *blocks = <const TileBlocks *>&block_array[0]
    cdef int64_t i = 0, o, outputs, group, shares, tasks, most_filter = 0, most_scratch = 0, most_tiles = 0
    cdef int64_t most_shared = 0
    cdef int workers = 0, threads = team_size(<int>blocks.threads)
    cdef int32_t *tables = NULL
    cdef float *filters = NULL
    cdef float *shared = NULL
    cdef char *scratch = NULL
    cdef void *ranges = NULL
    cdef Extremes *seen = NULL
    cdef const stored *x = &source[0, 0, 0, 0, 0, 0]
    cdef const stored *w = &filter[0, 0, 0, 0, 0, 0]
    cdef stored *y = &target[0, 0, 0, 0, 0, 0]
    group = blocks.group if blocks.group else filter.shape[1]
    try:
        # All memory comes first: where there is too little, nothing has been written.
        while i < step_array.shape[0]:
            describe_tiled(&c, source, filter, target, <const TileStep *>&step_array[i, 0], blocks)
            outputs = min(group, c.outputs)
            shares = c.groups * c.tiling.box_count * c.added * c.chunks if blocks.shared else 0
            tasks = max(shares, filter_tasks(&c, outputs), product_tasks(&c, outputs))
            most_shared = max(most_shared, shares * c.values_size)
            if blocks.group:
                most_filter = max(most_filter, c.groups * count_blocks(outputs, c.filters.width) * c.filters.strip)
            workers = max(workers, workers_of(threads, tasks))
            most_scratch = max(most_scratch, c.scratch)
            most_tiles = max(most_tiles, c.tiling.box_tiles)
            i += c.added * c.tiling.steps.siblings
        tables = <int32_t *>allocate_lines((2 * blocks.chunk + most_tiles) * sizeof(int32_t))
        filters = <float *>allocate_lines(most_filter * sizeof(float))
        shared = <float *>allocate_lines(most_shared * sizeof(float))
        scratch = <char *>allocate_lines(workers * most_scratch)
        ranges = allocate_lines(threads * sizeof(task_range))
        seen = <Extremes *>allocate_lines(threads * sizeof(Extremes))
        if before is not None:
            before()
        begin_team(&all, threads, ranges)
        all.most = workers
        clear_extremes(seen, threads)
        multiples(tables, 1, blocks.chunk)
        multiples(tables + blocks.chunk, c.filters.width, blocks.chunk)
        multiples(tables + 2 * blocks.chunk, blocks.chunk, most_tiles)
        i = 0
        while i < step_array.shape[0]:
            describe_tiled(&c, source, filter, target, <const TileStep *>&step_array[i, 0], blocks)
            c.channel, c.filter_rows, c.tile_rows = tables, tables + blocks.chunk, tables + 2 * blocks.chunk
            c.workers = &all
            shares = c.groups * c.tiling.box_count * c.added * c.chunks if blocks.shared else 0
            run_stage(&c, SHARE, shares, x, w, y, filters, shared, 0, 0, scratch, seen)
            for o in range(0, c.outputs, group):
                outputs = min(group, c.outputs - o)
                run_stage(&c, FILTERS, filter_tasks(&c, outputs), x, w, y, filters, shared, o, outputs, scratch,
                          seen)
                run_stage(&c, PRODUCTS, product_tasks(&c, outputs), x, w, y, filters, shared, o, outputs, scratch,
                          seen)
            i += c.added * c.tiling.steps.siblings
        return stands(seen, threads, source)
    finally:
        free(tables)
        free(filters)
        free(shared)
        free(scratch)
        free(ranges)
        free(seen)
