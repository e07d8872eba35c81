"""wgrad by Winograd's algorithm: F(taps, outputs of a tile), with the tiles of the target in the place of the filter.

    filter(o, t, c) = result transform of [sum over tiles of  source(point, tile, c) * target(point, tile, o)]

A task is a chunk of input channels, a block of output channels and a slice of the boxes of tiles, of one group or a
bundle of small ones; the products of each point are summed over the tiles, and the sums transformed back. Where there
are several slices, these are added in order then: a filter has fewer taps than a tile has points. Where the filter has
several blocks, the transformed tiles are kept for all of them.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free

from blocks cimport allocate_lines, count_blocks, multiples
from copy cimport store_block
from tasks cimport (
    begin_team, end_listening, enter_loop, is_stopped, leave_loop, next_task, share_tasks, take_task, task_range, team,
    team_size, workers_of,
)
from tensor cimport filter_offset
from ukernel cimport ADDED, FRESH, SCALARS, multiply_rows, strip_width, whole_vectors
from window cimport Box
from winograd cimport (
    LINE_LANES, WINOGRAD_LANES, magnitudes, stored, transform_box, winograd_add_slices, winograd_largest,
)
from winograd_parts cimport (
    FINISHED_CHANNELS, TilePart, TilePiece, TiledAccumulation, describe_tiled_sums, find_piece, note_window,
    part_of_tiles, transform_piece,
)
from winograd_range cimport Extremes, clear_extremes, is_lost, stands
from winograd_tiling cimport TileBlocks, TileStep, elements_of, fill_tiles, find_tiles, is_held

cdef enum:  # stages of a call:
    SHARE = 0  # tiles are transformed for all blocks of the filter,
    SUM = 1  # their products summed,
    ADD = 2  # and slices of the sums added


cdef inline void transform_source(
    const TiledAccumulation *c, const Box *tiles, const stored *source, int64_t g, int64_t groups, int64_t chunk,
    float *values, float *window, float *buffer,
) noexcept nogil:
    """The values of a box and a chunk of input channels."""
    cdef int64_t c0 = chunk * c.blocks.chunk, channels = groups * min(c.blocks.chunk, c.channels - c0)
    fill_tiles(window, &c.window, &c.tiling, &c.source, 0, False, tiles,
               source + g * c.x.group + c0 * c.x.channel, &c.x, channels)
    transform_box(&c.source, tiles, window, &c.window, channels, values, c.source_point, c.source_line,
                  LINE_LANES, buffer)


cdef inline void transform_target(
    const TiledAccumulation *c, const Box *tiles, const stored *target, int64_t g, int64_t groups, int64_t block,
    float *gradients, float *window, float *buffer, magnitudes *seen,
) noexcept nogil:
    """Those of a block of output channels, and the magnitudes of what they are made of."""
    cdef int64_t o0 = block * c.blocks.outputs, outputs = groups * min(c.blocks.outputs, c.outputs - o0)
    cdef Box elements
    fill_tiles(window, &c.target_window, &c.tiling, &c.target, 0, True, tiles,
               target + g * c.y.group + o0 * c.y.channel, &c.y, outputs)
    elements_of(tiles, &c.target, &elements)
    transform_box(&c.target, tiles, window, &c.target_window, outputs, gradients, c.target_point,
                  c.target_strip, c.target_width, buffer)
    note_window(seen, &c.target_window, &elements, window, outputs)


cdef inline void share_tiles(
    const TiledAccumulation *c, const stored *source, const stored *target, float *values, float *gradients,
    float *window, bint again, magnitudes *seen, int64_t task,
) noexcept nogil:
    """A box of a group and one chunk or block of its channels, for all parts.

    ``again``: the values of the target are there.
    """
    cdef int64_t kinds = c.chunk_blocks + c.output_blocks, box = task // kinds, kind = task % kinds
    cdef int64_t g = box // c.tiling.box_count
    cdef float *buffer = window + c.window_size
    cdef Box tiles
    find_tiles(&c.tiling, box % c.tiling.box_count, &tiles)
    if kind < c.chunk_blocks:
        transform_source(c, &tiles, source, g, 1, kind, values + (box * c.chunk_blocks + kind) * c.values_size,
                         window, buffer)
    elif not again:
        kind -= c.chunk_blocks
        transform_target(c, &tiles, target, g, 1, kind, gradients + (box * c.output_blocks + kind) * c.target_size,
                         window, buffer, seen)


cdef inline void accumulate_tiles(
    const TiledAccumulation *c, const TilePart *part, const stored *source, const stored *target, float *all_values,
    float *all_gradients, float *sums, float *window, magnitudes *seen, int64_t slice,
) noexcept nogil:
    """The products of one slice of a part, and the magnitudes of the target where its tiles are not shared."""
    cdef int64_t p, g, strip, j, column, count, even, box, index, width = strip_width(sums[0])
    cdef int64_t boxes = c.tiling.box_count, first_box = boxes * slice // c.blocks.slices
    cdef float *values = window + c.window_size
    cdef float *gradients = values + c.values_size
    cdef float *buffer = gradients + c.target_size
    cdef Box tiles
    for box in range(first_box, boxes * (slice + 1) // c.blocks.slices):
        if box > first_box and is_stopped(c.workers):
            break
        count = find_tiles(&c.tiling, box, &tiles)
        if c.blocks.shared:
            index = part.g * boxes + box
            values = all_values + (index * c.chunk_blocks + part.c0 // c.blocks.chunk) * c.values_size
            gradients = all_gradients + (index * c.output_blocks + part.o0 // c.blocks.outputs) * c.target_size
        else:
            transform_source(c, &tiles, source, part.g, part.groups, part.c0 // c.blocks.chunk, values, window, buffer)
            transform_target(c, &tiles, target, part.g, part.groups, part.o0 // c.blocks.outputs, gradients, window,
                             buffer, seen)
        for p in range(c.tiling.point_count):
            for g in range(part.groups):
                even = LINE_LANES if g * part.channels % LINE_LANES == 0 else 0  # channels of a line of values
                for strip in range(count_blocks(part.outputs, width)):
                    j = strip * width
                    column = g * part.outputs + j
                    multiply_rows(
                        SCALARS, False, part.channels, even, min(width, part.outputs - j), count, count,
                        values + p * c.source_point, c.channel + g * part.channels, c.source_tiles,
                        gradients + p * c.target_point + column // c.target_width * c.target_strip
                        + column % c.target_width,
                        c.target_tiles, sums + p * c.sum_point + g * part.channels * c.target_row + j, NULL,
                        c.target_row, FRESH if box == first_box else ADDED,
                    )


cdef inline uint32_t store_piece(
    const TiledAccumulation *c, const TilePart *part, const TilePiece *piece, const float *block, stored *filter
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


cdef inline void sum_tiles(
    const TiledAccumulation *c, const stored *source, stored *filter, const stored *target, float *values,
    float *gradients, float *partial, float *scratch, Extremes *seen, int64_t task,
) noexcept nogil:
    """One slice of a part, transformed back; stored as well, where it is the only one."""
    cdef int64_t i
    cdef float *rest = scratch + c.sums_size
    cdef float *block = rest
    cdef TilePart part
    cdef TilePiece piece
    part_of_tiles(c, task // c.blocks.slices, &part)
    accumulate_tiles(c, &part, source, target, values, gradients, scratch, rest, &seen.operand, task % c.blocks.slices)
    for i in range(c.pieces):
        find_piece(c, &part, i, &piece)
        if c.blocks.slices > 1:
            block = partial + (task * c.pieces + i) * c.piece_size
        transform_piece(c, &part, &piece, scratch, block, rest + c.piece_size)
        if c.blocks.slices == 1:
            seen.result = max(seen.result, store_piece(c, &part, &piece, block, filter))


cdef inline uint32_t add_slices(
    const TiledAccumulation *c, stored *filter, float *partial, int64_t task
) noexcept nogil:
    """Some channels of a part that has several slices; their largest magnitude."""
    cdef int64_t i, index = task % c.pieces
    cdef TilePart part
    cdef TilePiece piece
    part_of_tiles(c, task // c.pieces, &part)
    find_piece(c, &part, index, &piece)
    partial += (task // c.pieces * c.blocks.slices * c.pieces + index) * c.piece_size
    for i in range(piece.channels * c.taps):
        winograd_add_slices(partial + i * c.target_row, c.pieces * c.piece_size, c.blocks.slices,
                            whole_vectors(part.outputs, partial[0]))
    return store_piece(c, &part, &piece, partial, filter)


cdef inline void sum_tasks(
    const TiledAccumulation *c, int stage, bint again, const stored *source, stored *filter, const stored *target,
    float *values, float *gradients, float *partial, char *scratch, Extremes *seen, int worker,
) noexcept nogil:
    """Tasks of a stage, until none is left."""
    cdef uint64_t state = enter_loop(c.workers)
    cdef int64_t task = take_task(c.workers, worker)
    while task >= 0:
        if stage == SHARE:
            share_tiles(c, source, target, values, gradients, <float *>scratch, again, &seen.operand, task)
        elif stage == ADD:
            seen.result = max(seen.result, add_slices(c, filter, partial, task))
        elif not is_lost(seen):
            sum_tiles(c, source, filter, target, values, gradients, partial, <float *>scratch, seen, task)
        task = next_task(c.workers, worker)
    leave_loop(c.workers, state)


cdef inline int run_stage(
    const TiledAccumulation *c, int stage, bint again, int64_t tasks, const stored *source, stored *filter,
    const stored *target, float *values, float *gradients, float *partial, char *scratch, Extremes *seen,
) except -1:
    cdef int worker, threads = c.workers.threads, workers = share_tasks(c.workers, 0, tasks)
    if threads == 1:  # a team of one would cost a system call
        with nogil:
            sum_tasks(c, stage, again, source, filter, target, values, gradients, partial, scratch, seen, 0)
    elif workers > 0:
        for worker in prange(workers, schedule="static", num_threads=threads, nogil=True):
            sum_tasks(c, stage, again, source, filter, target, values, gradients, partial,
                      scratch + worker * c.scratch, seen + worker, worker)
    return end_listening(&c.workers.ears)


cdef inline int wgrad_tiled(
    const stored[:, :, :, :, :, :] source, stored[:, :, :, :, :, :] filter, const stored[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array, before,
) except -1:
    """Whether the result stands; if not, operands or results were out of the algorithm's range."""
    cdef TiledAccumulation c
    cdef team all
    cdef const TileBlocks *blocks = <const TileBlocks *>&block_array[0]
    cdef int64_t sums, adds, shares, tiles, boxes, step = 0, i
    cdef int workers, threads = team_size(<int>blocks.threads)
    cdef int32_t *tables = NULL
    cdef float *partial = NULL
    cdef float *values = NULL
    cdef float *gradients = NULL
    cdef char *scratch = NULL
    cdef void *ranges = NULL
    cdef Extremes *seen = NULL
    cdef const stored *x = &source[0, 0, 0, 0, 0, 0]
    cdef stored *w = &filter[0, 0, 0, 0, 0, 0]
    cdef const stored *y = &target[0, 0, 0, 0, 0, 0]
    describe_tiled_sums(&c, source, filter, target, <const TileStep *>&step_array[0, 0], blocks)
    tiles, boxes = c.tiling.box_tiles, c.groups * c.tiling.box_count if blocks.shared else 0
    shares, sums = boxes * (c.chunk_blocks + c.output_blocks), c.parts * blocks.slices
    adds = c.parts * c.pieces if blocks.slices > 1 else 0
    workers = workers_of(threads, max(shares, sums, adds))
    try:
        # All memory comes first: where there is too little, nothing has been written.
        tables = <int32_t *>allocate_lines((blocks.chunk + 2 * tiles) * sizeof(int32_t))
        if blocks.slices > 1:
            partial = <float *>allocate_lines(sums * c.pieces * c.piece_size * sizeof(float))
        values = <float *>allocate_lines(boxes * c.chunk_blocks * c.values_size * sizeof(float))
        gradients = <float *>allocate_lines(boxes * c.output_blocks * c.target_size * sizeof(float))
        scratch = <char *>allocate_lines(workers * c.scratch)
        ranges = allocate_lines(threads * sizeof(task_range))
        seen = <Extremes *>allocate_lines(threads * sizeof(Extremes))
        if before is not None:
            before()
        begin_team(&all, threads, ranges)
        all.most = workers
        clear_extremes(seen, threads)
        for i in range(blocks.chunk):
            tables[i] = <int32_t>(i // LINE_LANES * c.source_line + i % LINE_LANES)
        multiples(tables + blocks.chunk, LINE_LANES, tiles)
        multiples(tables + blocks.chunk + tiles, c.target_width, tiles)
        while step < step_array.shape[0]:  # each part has taps of its own, all the same tiles of the target
            describe_tiled_sums(&c, source, filter, target, <const TileStep *>&step_array[step, 0], blocks)
            c.channel, c.source_tiles, c.target_tiles = tables, tables + blocks.chunk, tables + blocks.chunk + tiles
            c.workers = &all
            run_stage(&c, SHARE, step > 0, shares, x, w, y, values, gradients, partial, scratch, seen)
            run_stage(&c, SUM, False, sums, x, w, y, values, gradients, partial, scratch, seen)
            run_stage(&c, ADD, False, adds, x, w, y, values, gradients, partial, scratch, seen)
            step += c.tiling.steps.siblings
        return stands(seen, threads, source)
    finally:
        free(tables)
        free(partial)
        free(values)
        free(gradients)
        free(scratch)
        free(ranges)
        free(seen)
