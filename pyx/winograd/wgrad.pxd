"""wgrad by Winograd's algorithm: F(taps, outputs of a tile), with the tiles of the target in the place of the filter.

    filter(o, t, c) = result transform of [sum over tiles of  source(point, tile, c) * target(point, tile, o)]

A task is a chunk of input channels, a block of output channels and a slice of the boxes of tiles, of one group or a
bundle of small ones; the products of each point are summed over the tiles, and the sums transformed back. Where there
are several slices, these are added in order then: a filter has fewer taps than a tile has points. Where the filter has
several blocks, the transformed tiles are kept for all of them.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t

from base.memory cimport count_blocks, in_lines, multiples
from base.tensor cimport filter_offset
from copy.load_store cimport store_block
from copy.window cimport Box
from parallel.tasks cimport begin_call, end_call, form_team, is_stopped, run, task_function, team, workers_of
from tile.multiply cimport Columns, Depth, Rows, Sums, multiply_rows
from tile.ukernel cimport ADDED, FRESH, SCALARS, strip_width, whole_vectors
from winograd.range cimport Extremes, clear_extremes, is_lost, stands
from winograd.tiling cimport TileBlocks, TileOperand, TileStep, elements_of, fill_tiles, find_tiles, is_held
from winograd.transform cimport (
    LINE_LANES, WINOGRAD_LANES, ValuePitches, magnitudes, stored, transform_box, winograd_add_slices, winograd_largest,
)
from winograd.wgrad_tasks cimport (
    FINISHED_CHANNELS, FilterRows, TiledAccumulation, TileFilterBlock, describe_tiled_sums, find_piece, note_window,
    part_of_tiles, transform_piece,
)

cdef struct TiledSumsJob:  # what all tasks of a loop share, beside the source
    const TiledAccumulation *c
    void *filter
    const void *target
    float *values  # transformed tiles of the source and of the target, for all blocks of the filter
    float *gradients
    float *partial  # [part][slice][piece] of the filter, where there are several slices
    bint again  # the gradients are there already


cdef inline void transform_source(
    const TiledAccumulation *c, const Box *tiles, const stored *source, int64_t g, int64_t groups, int64_t chunk,
    float *values, float *window, float *buffer,
) noexcept nogil:
    """The values of a box and a chunk of input channels."""
    cdef int64_t c0 = chunk * c.blocks.chunk, channels = groups * min(c.blocks.chunk, c.channels - c0)
    fill_tiles(window, TileOperand(&c.x, &c.window, &c.source, False), &c.tiling, 0, tiles,
               source + g * c.x.group + c0 * c.x.channel, channels)
    transform_box(&c.source, tiles, window, &c.window, channels, values,
                  ValuePitches(c.source_point, c.source_line, LINE_LANES), buffer)


cdef inline void transform_target(
    const TiledAccumulation *c, const Box *tiles, const stored *target, int64_t g, int64_t groups, int64_t block,
    float *gradients, float *window, float *buffer, magnitudes *seen,
) noexcept nogil:
    """Those of a block of output channels, and the magnitudes of what they are made of."""
    cdef int64_t o0 = block * c.blocks.outputs, outputs = groups * min(c.blocks.outputs, c.outputs - o0)
    cdef Box elements
    fill_tiles(window, TileOperand(&c.y, &c.target_window, &c.target, True), &c.tiling, 0, tiles,
               target + g * c.y.group + o0 * c.y.channel, outputs)
    elements_of(tiles, &c.target, &elements)
    transform_box(&c.target, tiles, window, &c.target_window, outputs, gradients,
                  ValuePitches(c.target_point, c.target_strip, c.target_width), buffer)
    note_window(seen, &c.target_window, &elements, window, outputs)


cdef inline void share_task(const TiledSumsJob *job, const stored *source, Extremes *seen, int64_t task) noexcept nogil:
    """Transform a box of a group and one chunk or block of its channels, for all parts."""
    cdef const TiledAccumulation *c = job.c
    cdef float *window = <float *>(seen + 1)
    cdef int64_t kinds = c.chunk_blocks + c.output_blocks, box = task // kinds, kind = task % kinds
    cdef int64_t g = box // c.tiling.box_count
    cdef float *buffer = window + c.window_size
    cdef Box tiles
    find_tiles(&c.tiling, box % c.tiling.box_count, &tiles)
    if kind < c.chunk_blocks:
        transform_source(c, &tiles, source, g, 1, kind, job.values + (box * c.chunk_blocks + kind) * c.values_size,
                         window, buffer)
    elif not job.again:
        kind -= c.chunk_blocks
        transform_target(c, &tiles, <const stored *>job.target, g, 1, kind,
                         job.gradients + (box * c.output_blocks + kind) * c.target_size, window, buffer, &seen.operand)


cdef inline void accumulate_tiles(
    const TiledSumsJob *job, const TileFilterBlock *part, const stored *source, float *sums, float *window,
    magnitudes *seen, int64_t slice,
) noexcept nogil:
    """The products of one slice of a part, and the magnitudes of the target where its tiles are not shared."""
    cdef const TiledAccumulation *c = job.c
    cdef int how
    cdef int64_t p, g, strip, j, column, columns, count, pitched, box, index, width = strip_width(sums[0])
    cdef int64_t boxes = c.tiling.box_count, first_box = boxes * slice // c.blocks.slices
    cdef float *values = window + c.window_size
    cdef float *gradients = values + c.values_size
    cdef float *buffer = gradients + c.target_size
    cdef Box tiles
    for box in range(first_box, boxes * (slice + 1) // c.blocks.slices):
        if box > first_box and is_stopped(c.workers):
            break
        count = find_tiles(&c.tiling, box, &tiles)
        if c.blocks.tiles_kept:
            index = part.g * boxes + box
            values = job.values + (index * c.chunk_blocks + part.c0 // c.blocks.chunk) * c.values_size
            gradients = job.gradients + (index * c.output_blocks + part.o0 // c.blocks.outputs) * c.target_size
        else:
            transform_source(c, &tiles, source, part.g, part.groups, part.c0 // c.blocks.chunk, values, window, buffer)
            transform_target(c, &tiles, <const stored *>job.target, part.g, part.groups, part.o0 // c.blocks.outputs,
                             gradients, window, buffer, seen)
        how = FRESH if box == first_box else ADDED
        for p in range(c.tiling.point_count):
            for g in range(part.groups):
                pitched = LINE_LANES if g * part.channels % LINE_LANES == 0 else 0  # channels of a line of values
                for strip in range(count_blocks(part.outputs, width)):
                    j = strip * width
                    column = g * part.outputs + j
                    columns = min(width, part.outputs - j)
                    multiply_rows(
                        Depth(SCALARS, count, count), values + p * c.source_point,
                        Rows(c.channel + g * part.channels, c.source_tiles, part.channels, pitched, False),
                        gradients + p * c.target_point + column // c.target_width * c.target_strip
                        + column % c.target_width,
                        Columns(c.target_tiles, columns), sums + p * c.sum_point,
                        Sums(g * part.channels * c.target_row + j, NULL, c.target_row, how),
                    )


cdef inline uint32_t store_piece(
    const TiledAccumulation *c, const TileFilterBlock *part, const FilterRows *piece, const float *block, stored *filter
) noexcept nogil:
    """Store that; its largest magnitude."""
    cdef int64_t i, t
    cdef uint32_t largest = 0
    if piece.channels <= 0:
        return 0
    filter += (part.g + piece.g) * c.w.group + part.o0 * c.w.batch + (part.c0 + piece.c0) * c.w.channel
    for i in range(piece.channels * c.taps):
        largest = winograd_largest(block + i * c.target_row, part.outputs, largest)
    if c.natural:
        store_block(filter + filter_offset(&c.w, &c.tiling.steps.walk, 0), c.w.batch, 1, block, 1, c.target_row,
                    part.outputs, piece.channels * c.taps)
        return largest
    for t in range(c.taps):
        if is_held(c.tiling.steps, t):
            store_block(filter + filter_offset(&c.w, &c.tiling.steps.walk, t), c.w.batch, c.w.channel,
                        block + t * c.target_row, 1, c.taps * c.target_row, part.outputs, piece.channels)
    return largest


cdef inline void sum_task(const TiledSumsJob *job, const stored *source, Extremes *seen, int64_t task) noexcept nogil:
    """One slice of a part, transformed back; stored as well, where it is the only one."""
    cdef const TiledAccumulation *c = job.c
    cdef int64_t i
    cdef float *sums = <float *>(seen + 1)
    cdef float *rest = sums + c.sums_size
    cdef float *block = rest
    cdef TileFilterBlock part
    cdef FilterRows piece
    if is_lost(seen, source):
        return
    part_of_tiles(c, task // c.blocks.slices, &part)
    accumulate_tiles(job, &part, source, sums, rest, &seen.operand, task % c.blocks.slices)
    for i in range(c.pieces):
        find_piece(c, &part, i, &piece)
        if c.blocks.slices > 1:
            block = job.partial + (task * c.pieces + i) * c.piece_size
        transform_piece(c, &part, &piece, sums, block, rest + c.piece_size)
        if c.blocks.slices == 1:
            seen.result = max(seen.result, store_piece(c, &part, &piece, block, <stored *>job.filter))


cdef inline void add_task(const TiledSumsJob *job, const stored *source, Extremes *seen, int64_t task) noexcept nogil:
    """Add the slices of some channels of a part in order and store them."""
    cdef const TiledAccumulation *c = job.c
    cdef float *partial = job.partial
    cdef int64_t i, index = task % c.pieces
    cdef TileFilterBlock part
    cdef FilterRows piece
    part_of_tiles(c, task // c.pieces, &part)
    find_piece(c, &part, index, &piece)
    partial += (task // c.pieces * c.blocks.slices * c.pieces + index) * c.piece_size
    for i in range(piece.channels * c.taps):
        winograd_add_slices(partial + i * c.target_row, c.pieces * c.piece_size, c.blocks.slices,
                            whole_vectors(part.outputs, partial[0]))
    seen.result = max(seen.result, store_piece(c, &part, &piece, partial, <stored *>job.filter))


cdef inline int wgrad_tiled(
    const stored[:, :, :, :, :, :] source, stored[:, :, :, :, :, :] filter, const stored[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array, before,
) except -1:
    """Whether the result stands; if not, operands or results were out of the algorithm's range."""
    cdef TiledAccumulation c
    cdef TiledSumsJob job
    cdef team all
    cdef const TileBlocks *blocks = <const TileBlocks *>&block_array[0]
    cdef int64_t sums, adds, shares, tiles, boxes, step = 0, i, most_tasks
    cdef int64_t tables_size, values_size, gradients_size, partial_size
    cdef int workers
    cdef int32_t *tables
    cdef const stored *x = &source[0, 0, 0, 0, 0, 0]
    form_team(&all, blocks.threads)
    describe_tiled_sums(&c, source, filter, target, <const TileStep *>&step_array[0, 0], blocks)
    tiles, boxes = c.tiling.box_tiles, c.groups * c.tiling.box_count if blocks.tiles_kept else 0
    shares, sums = boxes * (c.chunk_blocks + c.output_blocks), c.parts * blocks.slices
    adds = c.parts * c.pieces if blocks.slices > 1 else 0
    most_tasks = max(shares, sums, adds)
    tables_size = in_lines((blocks.chunk + 2 * tiles) * sizeof(int32_t))
    values_size = in_lines(boxes * c.chunk_blocks * c.values_size * sizeof(float))
    gradients_size = in_lines(boxes * c.output_blocks * c.target_size * sizeof(float))
    partial_size = sums * c.pieces * c.piece_size * sizeof(float) if blocks.slices > 1 else 0
    try:
        if not begin_call(&all, tables_size + values_size + gradients_size + partial_size, most_tasks,
                          sizeof(Extremes) + c.scratch, before):
            return True
        workers = workers_of(all.threads, most_tasks)
        clear_extremes(&all, workers)
        tables = <int32_t *>all.shared
        job.c, job.filter, job.target = &c, &filter[0, 0, 0, 0, 0, 0], &target[0, 0, 0, 0, 0, 0]
        job.values = <float *>(all.shared + tables_size)
        job.gradients = <float *>(all.shared + tables_size + values_size)
        job.partial = <float *>(all.shared + tables_size + values_size + gradients_size)
        for i in range(blocks.chunk):
            tables[i] = <int32_t>(i // LINE_LANES * c.source_line + i % LINE_LANES)
        multiples(tables + blocks.chunk, LINE_LANES, tiles)
        multiples(tables + blocks.chunk + tiles, c.target_width, tiles)
        while step < step_array.shape[0]:  # each part has taps of its own, all the same tiles of the target
            describe_tiled_sums(&c, source, filter, target, <const TileStep *>&step_array[step, 0], blocks)
            c.channel, c.source_tiles, c.target_tiles = tables, tables + blocks.chunk, tables + blocks.chunk + tiles
            c.workers, job.again = &all, step > 0
            run(&all, <task_function>share_task[stored], &job, x, 0, shares)
            run(&all, <task_function>sum_task[stored], &job, x, 0, sums)
            run(&all, <task_function>add_task[stored], &job, x, 0, adds)
            step += c.tiling.steps.siblings
        return stands(&all, workers, source)
    finally:
        end_call(&all)
