"""fprop and dgrad by Winograd's algorithm: a tile is transformed, multiplied point by point, and transformed back.

A task is a box of tiles and a block of outputs, of one group or a bundle of small ones (box.pxd). Chunk after
chunk of the channels it fills a window, transforms its tiles and adds, of each point and group, the product
(tiles x channels) * (channels x outputs) to its sums. Outputs whose filters would take too much memory at once are
computed group after group.

The result has parts: the stride phases of dgrad. Some of them together are a round, whose tasks are those of three
loops: all parts' tiles that are kept, then their filters, then their products.
"""

from libc.stdint cimport int32_t, int64_t

from base.memory cimport allocate, count_blocks, first_line, give_memory, in_lines, multiples
from copy.window cimport Box
from parallel.tasks cimport begin_call, end_call, form_team, run, task_function, team, workers_of
from winograd.box cimport correlate_tiles, transform_chunk
from winograd.correlate_tasks cimport (
    FILTERS, LOOPS, PRODUCTS, TILES, TiledCorrelation, TiledJob, describe_tiled,
)
from winograd.filter cimport FilterPart, transform_filters
from winograd.range cimport Extremes, clear_extremes, is_lost, stands
from winograd.tiling cimport TileBlocks, TileStep, find_tiles
from winograd.transform cimport stored


cdef inline const TiledCorrelation *part_of(const TiledJob *job, int64_t *task) noexcept nogil:
    """The part that a task of the loop belongs to; which of its tasks it is."""
    cdef const TiledCorrelation *c = job.parts
    while task[0] >= c.tasks[job.loop]:
        task[0] -= c.tasks[job.loop]
        c += 1
    return c


cdef inline void share_task(const TiledJob *job, const stored *source, Extremes *seen, int64_t task) noexcept nogil:
    """Transform one chunk of one box, for all blocks of outputs."""
    cdef const TiledCorrelation *c = part_of(job, &task)
    cdef float *window = <float *>(seen + 1)
    cdef int64_t chunks = c.added * c.chunks
    cdef Box tiles
    find_tiles(&c.tiling, task // chunks % c.tiling.box_count, &tiles)
    transform_chunk(c, &tiles, source + task // chunks // c.tiling.box_count * c.x.group, 1, task % chunks,
                    job.shared + c.first_value + task * c.values_size, window, window + c.window_size)


cdef inline void filters_task(const TiledJob *job, const stored *source, Extremes *seen, int64_t task) noexcept nogil:
    """Transform the filters of some strips and channels, for all boxes of tiles."""
    cdef const TiledCorrelation *c = part_of(job, &task)
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
    transform_filters(
        &c.filters, part, filter, job.filters + c.first_filter + (g * strips + first) * c.filters.strip + c0 * width,
        <float *>(seen + 1), &seen.operand)


cdef inline void products_task(const TiledJob *job, const stored *source, Extremes *seen, int64_t task) noexcept nogil:
    cdef const TiledCorrelation *c = part_of(job, &task)
    if not is_lost(seen, source):
        seen.result = max(seen.result, correlate_tiles(job, c, source, seen, task))


cdef struct Round:  # parts whose tasks are those of the same loops
    TiledCorrelation *parts
    int64_t count
    int64_t[LOOPS] tasks
    int64_t filters_size, values_size  # elements that all tasks share
    int64_t scratch, box_tiles  # of the part that needs most


cdef inline int64_t describe_round(
    Round *r, const stored[:, :, :, :, :, :] source, const stored[:, :, :, :, :, :] filter,
    const stored[:, :, :, :, :, :] target, const int64_t[:, ::1] step_array, int64_t first, const TileBlocks *blocks,
) noexcept nogil:
    """The parts from step number ``first`` on; the first step after them."""
    cdef TiledCorrelation *c = r.parts
    cdef int64_t strips
    r.count = r.filters_size = r.values_size = r.scratch = r.box_tiles = 0
    while r.count < blocks.together and first < step_array.shape[0]:
        describe_tiled(c, source, filter, target, <const TileStep *>&step_array[first, 0], blocks)
        c.first_filter, c.first_value = r.filters_size, r.values_size
        if blocks.filters_kept:
            strips = count_blocks(min(blocks.filters_kept, c.outputs), c.filters.width)
            r.filters_size += c.groups * strips * c.filters.strip
        if blocks.tiles_kept:
            r.values_size += c.groups * c.tiling.box_count * c.added * c.chunks * c.values_size
        r.scratch, r.box_tiles = max(r.scratch, c.scratch), max(r.box_tiles, c.tiling.box_tiles)
        first += c.added * c.tiling.steps.siblings
        r.count += 1
        c += 1
    return first


cdef inline int64_t count_tasks(Round *r, int64_t outputs) noexcept nogil:
    """Of each part and loop, where so many outputs are computed now; those of the longest loop.

    Tiles are kept for all blocks of outputs, or transformed by the tasks that multiply; so are filters.
    """
    cdef int64_t i, strips, boxes, most = 0
    cdef int loop
    cdef TiledCorrelation *c
    for loop in range(LOOPS):
        r.tasks[loop] = 0
    for i in range(r.count):
        c = r.parts + i
        strips, boxes = count_blocks(outputs, c.filters.width), c.tiling.box_count
        c.tasks[TILES] = c.groups * boxes * c.added * c.chunks if c.blocks.tiles_kept else 0
        c.tasks[FILTERS] = 0
        if c.blocks.filters_kept:
            c.tasks[FILTERS] = c.groups * count_blocks(strips, c.blocks.filter_strips)
            c.tasks[FILTERS] *= count_blocks(c.channels, c.blocks.filter_channels)
        c.tasks[PRODUCTS] = c.bundles * boxes * count_blocks(outputs, c.blocks.outputs)
        for loop in range(LOOPS):
            r.tasks[loop] += c.tasks[loop]
            most = max(most, r.tasks[loop])
    return most


cdef inline int run_round(
    Round *r, team *workers, TiledJob *job, const stored *source, int32_t *tables, const TileBlocks *blocks
) except -1:
    """All outputs of its parts, group after group."""
    cdef int64_t i, o, outputs = r.parts.outputs, kept = blocks.filters_kept if blocks.filters_kept else outputs
    for i in range(r.count):
        r.parts[i].workers = workers
        r.parts[i].channel, r.parts[i].filter_rows = tables, tables + blocks.chunk
        r.parts[i].tile_rows = tables + 2 * blocks.chunk
    for o in range(0, outputs, kept):
        job.first_output, job.outputs = o, min(kept, outputs - o)
        count_tasks(r, job.outputs)
        if o == 0:
            job.loop = TILES
            run(workers, <task_function>share_task[stored], job, source, 0, r.tasks[TILES])
        job.loop = FILTERS
        run(workers, <task_function>filters_task[stored], job, source, 0, r.tasks[FILTERS])
        job.loop = PRODUCTS
        run(workers, <task_function>products_task[stored], job, source, 0, r.tasks[PRODUCTS])
    return 0


cdef inline int correlate_tiled(
    const stored[:, :, :, :, :, :] source, const stored[:, :, :, :, :, :] filter, stored[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array, before,
) except -1:
    """Whether the result stands; if not, operands or results were out of the algorithm's range."""
    cdef TiledJob job
    cdef Round r
    cdef team all
    cdef const TileBlocks *blocks = <const TileBlocks *>&block_array[0]
    cdef int64_t i = 0, tasks = 0, most_filter = 0, most_shared = 0, most_scratch = 0, most_tiles = 0
    cdef int64_t tables_size, filters_size, kept = blocks.filters_kept if blocks.filters_kept else filter.shape[1]
    cdef int workers
    cdef int32_t *tables
    cdef void *parts = NULL
    cdef const stored *x = &source[0, 0, 0, 0, 0, 0]
    form_team(&all, blocks.threads)
    try:
        parts = allocate(min(blocks.together, step_array.shape[0]) * sizeof(TiledCorrelation), 0, 0)
        r.parts = <TiledCorrelation *>first_line(parts)
        while i < step_array.shape[0]:
            i = describe_round(&r, source, filter, target, step_array, i, blocks)
            tasks = max(tasks, count_tasks(&r, min(kept, r.parts.outputs)))
            most_filter, most_shared = max(most_filter, r.filters_size), max(most_shared, r.values_size)
            most_scratch, most_tiles = max(most_scratch, r.scratch), max(most_tiles, r.box_tiles)
        tables_size = in_lines((2 * blocks.chunk + most_tiles) * sizeof(int32_t))
        filters_size = in_lines(most_filter * sizeof(float))
        if not begin_call(&all, tables_size + filters_size + most_shared * sizeof(float), tasks,
                          sizeof(Extremes) + most_scratch, before):
            return True
        workers = workers_of(all.threads, tasks)
        clear_extremes(&all, workers)
        tables = <int32_t *>all.shared
        multiples(tables, 1, blocks.chunk)
        multiples(tables + blocks.chunk, r.parts.filters.width, blocks.chunk)
        multiples(tables + 2 * blocks.chunk, blocks.chunk, most_tiles)
        job.parts, job.filter, job.target = r.parts, &filter[0, 0, 0, 0, 0, 0], &target[0, 0, 0, 0, 0, 0]
        job.filters = <float *>(all.shared + tables_size)
        job.shared = <float *>(all.shared + tables_size + filters_size)
        i = 0
        while i < step_array.shape[0]:
            i = describe_round(&r, source, filter, target, step_array, i, blocks)
            run_round(&r, &all, &job, x, tables, blocks)
        return stands(&all, workers, source)
    finally:
        give_memory(parts, 0)
        end_call(&all)
