"""fprop and dgrad by Winograd's algorithm: a tile is transformed, multiplied point by point, and transformed back.

A task is a box of tiles and a block of outputs, of one group or a bundle of small ones (box.pxd). Chunk after
chunk of the channels it fills a window, transforms its tiles and adds, of each point and group, the product
(tiles x channels) * (channels x outputs) to its sums. Outputs whose filters would take too much memory at once are
computed group after group.
"""

from libc.stdint cimport int32_t, int64_t

from base.memory cimport count_blocks, in_lines, multiples
from copy.window cimport Box
from parallel.tasks cimport begin_call, end_call, form_team, run, task_function, team, workers_of
from winograd.box cimport correlate_tiles, transform_chunk
from winograd.correlate_tasks cimport TiledCorrelation, TiledJob, describe_tiled
from winograd.filter cimport FilterPart, transform_filters
from winograd.range cimport Extremes, clear_extremes, is_lost, stands
from winograd.tiling cimport TileBlocks, TileStep, find_tiles
from winograd.transform cimport stored


cdef inline void share_task(const TiledJob *job, const stored *source, Extremes *seen, int64_t task) noexcept nogil:
    """Transform one chunk of one box, for all blocks of outputs."""
    cdef const TiledCorrelation *c = job.c
    cdef float *window = <float *>(seen + 1)
    cdef int64_t chunks = c.added * c.chunks
    cdef Box tiles
    find_tiles(&c.tiling, task // chunks % c.tiling.box_count, &tiles)
    transform_chunk(c, &tiles, source + task // chunks // c.tiling.box_count * c.x.group, 1, task % chunks,
                    job.shared + task * c.values_size, window, window + c.window_size)


cdef inline void filters_task(const TiledJob *job, const stored *source, Extremes *seen, int64_t task) noexcept nogil:
    """Transform the filters of some strips and channels, for all boxes of tiles."""
    cdef const TiledCorrelation *c = job.c
    cdef const stored *filter = <const stored *>job.filter
    cdef int64_t width = c.filters.width, strips = count_blocks(job.outputs, width), some = c.blocks.filter_channels
    cdef int64_t together = c.blocks.filter_strips, parts = count_blocks(strips, together)
    cdef int64_t chunks = count_blocks(c.channels, some), c0 = task % chunks * some
    cdef int64_t g = task // chunks // parts, first = task // chunks % parts * together, o = first * width
    cdef FilterPart part
    part.steps, part.added, part.step_channels = c.tiling.steps, c.added, c.channels
    part.channels = min(some, c.channels - c0)
    part.outputs = min(together * width, job.outputs - o)
    filter += g * c.filters.w.group + (job.first_output + o) * c.filters.w.batch + c0 * c.filters.w.channel
    transform_filters(&c.filters, part, filter, job.filters + (g * strips + first) * c.filters.strip + c0 * width,
                      <float *>(seen + 1), &seen.operand)


cdef inline void products_task(const TiledJob *job, const stored *source, Extremes *seen, int64_t task) noexcept nogil:
    if not is_lost(seen, source):
        seen.result = max(seen.result, correlate_tiles(job, source, seen, task))


cdef inline int64_t share_tasks_of(const TiledCorrelation *c) noexcept nogil:
    """Tasks that transform tiles for all blocks of outputs; none if tasks of products transform their own."""
    return c.groups * c.tiling.box_count * c.added * c.chunks if c.blocks.shared else 0


cdef inline int64_t filter_tasks(const TiledCorrelation *c, int64_t outputs) noexcept nogil:
    """Tasks that transform the filters of ``outputs`` outputs; none if each task of products transforms its own."""
    cdef int64_t strips = count_blocks(outputs, c.filters.width)
    if not c.blocks.group:
        return 0
    return c.groups * count_blocks(strips, c.blocks.filter_strips) * count_blocks(c.channels, c.blocks.filter_channels)


cdef inline int64_t product_tasks(const TiledCorrelation *c, int64_t outputs) noexcept nogil:
    return c.bundles * c.tiling.box_count * count_blocks(outputs, c.blocks.outputs)


cdef inline int correlate_tiled(
    const stored[:, :, :, :, :, :] source, const stored[:, :, :, :, :, :] filter, stored[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array, before,
) except -1:
    """Whether the result stands; if not, operands or results were out of the algorithm's range."""
    cdef TiledCorrelation c
    cdef TiledJob job
    cdef team all
    cdef const TileBlocks *blocks = <const TileBlocks *>&block_array[0]
    cdef int64_t i = 0, o, outputs, group, shares, tasks = 0, most_filter = 0, most_scratch = 0, most_tiles = 0
    cdef int64_t most_shared = 0, tables_size, filters_size
    cdef int workers
    cdef int32_t *tables
    cdef const stored *x = &source[0, 0, 0, 0, 0, 0]
    group = blocks.group if blocks.group else filter.shape[1]
    form_team(&all, blocks.threads)
    while i < step_array.shape[0]:
        describe_tiled(&c, source, filter, target, <const TileStep *>&step_array[i, 0], blocks)
        outputs = min(group, c.outputs)
        shares = share_tasks_of(&c)
        tasks = max(tasks, max(shares, filter_tasks(&c, outputs), product_tasks(&c, outputs)))
        most_shared = max(most_shared, shares * c.values_size)
        if blocks.group:
            most_filter = max(most_filter, c.groups * count_blocks(outputs, c.filters.width) * c.filters.strip)
        most_scratch = max(most_scratch, c.scratch)
        most_tiles = max(most_tiles, c.tiling.box_tiles)
        i += c.added * c.tiling.steps.siblings
    tables_size = in_lines((2 * blocks.chunk + most_tiles) * sizeof(int32_t))
    filters_size = in_lines(most_filter * sizeof(float))
    try:
        if not begin_call(&all, tables_size + filters_size + most_shared * sizeof(float), tasks,
                          sizeof(Extremes) + most_scratch, before):
            return True
        workers = workers_of(all.threads, tasks)
        clear_extremes(&all, workers)
        tables = <int32_t *>all.shared
        multiples(tables, 1, blocks.chunk)
        multiples(tables + blocks.chunk, c.filters.width, blocks.chunk)
        multiples(tables + 2 * blocks.chunk, blocks.chunk, most_tiles)
        job.c, job.filter, job.target = &c, &filter[0, 0, 0, 0, 0, 0], &target[0, 0, 0, 0, 0, 0]
        job.filters = <float *>(all.shared + tables_size)
        job.shared = <float *>(all.shared + tables_size + filters_size)
        i = 0
        while i < step_array.shape[0]:
            describe_tiled(&c, source, filter, target, <const TileStep *>&step_array[i, 0], blocks)
            c.channel, c.filter_rows, c.tile_rows = tables, tables + blocks.chunk, tables + 2 * blocks.chunk
            c.workers = &all
            run(&all, <task_function>share_task[stored], &job, x, 0, share_tasks_of(&c))
            for o in range(0, c.outputs, group):
                job.first_output, job.outputs = o, min(group, c.outputs - o)
                run(&all, <task_function>filters_task[stored], &job, x, 0, filter_tasks(&c, job.outputs))
                run(&all, <task_function>products_task[stored], &job, x, 0, product_tasks(&c, job.outputs))
            i += c.added * c.tiling.steps.siblings
        return stands(&all, workers, source)
    finally:
        end_call(&all)
