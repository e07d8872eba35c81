"""wgrad by Winograd's algorithm: F(taps, outputs of a tile), with the tiles of the target in the place of the filter.

    filter(o, t, c) = result transform of [sum over tiles of  source(point, tile, c) * target(point, tile, o)]

A task is a chunk of input channels, a block of output channels and a slice of the boxes of tiles, of one group or a
bundle of small ones; the products of each point are summed over the tiles, and the sums transformed back. Where there
are several slices, these are added in order then: a filter has fewer taps than a tile has points. Where the filter has
several blocks, the transformed tiles are kept for all of them.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from blocks cimport allocate_lines, count_blocks, multiples
from copy cimport store_block
from tasks cimport enter_floats, leave_floats, team_size
from tensor cimport filter_offset
from ukernel cimport ADDED, FRESH, SCALARS, multiply_rows, strip_width, whole_vectors
from window cimport Box
from winograd cimport (
    LINE_LANES, WINOGRAD_LANES, is_lost, note_largest, stands, stored, transform_box, transform_one,
    winograd_add_slices, winograd_largest,
)
from winograd_parts cimport (
    FINISHED_CHANNELS, TilePart, TilePiece, TiledAccumulation, describe_tiled_sums, largest_of, part_of_tiles
)
from winograd_tiling cimport TileBlocks, TileStep, elements_of, fill_tiles, find_tiles, is_held


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


cdef inline uint32_t transform_target(
    const TiledAccumulation *c, const Box *tiles, const stored *target, int64_t g, int64_t groups, int64_t block,
    float *gradients, float *window, float *buffer,
) noexcept nogil:
    """Those of a block of output channels; the largest magnitude of what they are made of."""
    cdef int64_t o0 = block * c.blocks.outputs, outputs = groups * min(c.blocks.outputs, c.outputs - o0)
    cdef Box elements
    fill_tiles(window, &c.target_window, &c.tiling, &c.target, 0, True, tiles,
               target + g * c.y.group + o0 * c.y.channel, &c.y, outputs)
    elements_of(tiles, &c.target, &elements)
    transform_box(&c.target, tiles, window, &c.target_window, outputs, gradients, c.target_point,
                  c.target_strip, c.target_width, buffer)
    return largest_of(&c.target_window, &elements, window, outputs)


cdef inline uint32_t share_tiles(
    const TiledAccumulation *c, const stored *source, const stored *target, float *values, float *gradients,
    float *window, bint again, int64_t task,
) noexcept nogil:
    """A box of a group and one chunk or block of its channels, for all parts; the largest magnitude of the target.

    ``again``: the values of the target are there.
    """
    cdef int64_t kinds = c.chunk_blocks + c.output_blocks, box = task // kinds, kind = task % kinds
    cdef int64_t g = box // c.tiling.box_count
    cdef float *buffer = window + c.window_size
    cdef uint32_t largest = 0
    cdef uint64_t state = enter_floats()
    cdef Box tiles
    find_tiles(&c.tiling, box % c.tiling.box_count, &tiles)
    if kind < c.chunk_blocks:
        transform_source(c, &tiles, source, g, 1, kind, values + (box * c.chunk_blocks + kind) * c.values_size,
                         window, buffer)
    elif not again:
        kind -= c.chunk_blocks
        largest = transform_target(c, &tiles, target, g, 1, kind,
                                   gradients + (box * c.output_blocks + kind) * c.target_size, window, buffer)
    leave_floats(state)
    return largest


cdef inline uint32_t accumulate_tiles(
    const TiledAccumulation *c, const TilePart *part, const stored *source, const stored *target, float *all_values,
    float *all_gradients, float *sums, float *window, int64_t slice,
) noexcept nogil:
    """The products of one slice of a part; the largest magnitude of the target, where the tiles are not shared."""
    cdef int64_t p, g, strip, j, column, count, even, box, index, width = strip_width(sums[0])
    cdef int64_t boxes = c.tiling.box_count, first_box = boxes * slice // c.blocks.slices
    cdef float *values = window + c.window_size
    cdef float *gradients = values + c.values_size
    cdef float *buffer = gradients + c.target_size
    cdef Box tiles
    cdef uint32_t largest = 0
    for box in range(first_box, boxes * (slice + 1) // c.blocks.slices):
        count = find_tiles(&c.tiling, box, &tiles)
        if c.blocks.shared:
            index = part.g * boxes + box
            values = all_values + (index * c.chunk_blocks + part.c0 // c.blocks.chunk) * c.values_size
            gradients = all_gradients + (index * c.output_blocks + part.o0 // c.blocks.outputs) * c.target_size
        else:
            transform_source(c, &tiles, source, part.g, part.groups, part.c0 // c.blocks.chunk, values, window, buffer)
            largest = max(largest, transform_target(c, &tiles, target, part.g, part.groups, part.o0 // c.blocks.outputs,
                                                    gradients, window, buffer))
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
    return largest


cdef inline void find_piece(
    const TiledAccumulation *c, const TilePart *part, int64_t index, TilePiece *piece
) noexcept nogil:
    cdef int64_t of_group = c.pieces // c.blocks.groups
    piece.g, piece.c0 = index // of_group, index % of_group * FINISHED_CHANNELS
    piece.channels = min(<int64_t>FINISHED_CHANNELS, part.channels - piece.c0) if piece.g < part.groups else 0


cdef inline void transform_piece(
    const TiledAccumulation *c, const TilePart *part, const TilePiece *piece, const float *sums, float *block,
    float *buffer,
) noexcept nogil:
    """block[channel][tap][output] from the sums of a part."""
    cdef int64_t i, columns = whole_vectors(part.outputs, block[0])
    cdef int64_t pitch[3]
    cdef int64_t to_pitch[3]
    pitch[2], to_pitch[2] = c.sum_point, c.target_row
    for i in range(1, -1, -1):
        pitch[i] = pitch[i + 1] * c.tiling.points[i + 1]
        to_pitch[i] = to_pitch[i + 1] * c.result.given[i + 1]
    for i in range(piece.channels):
        transform_one(&c.result, sums + (piece.g * part.channels + piece.c0 + i) * c.target_row, pitch,
                      block + i * c.taps * c.target_row, to_pitch, columns // WINOGRAD_LANES, buffer)


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
    float *gradients, float *partial, float *scratch, uint32_t *largest, int thread, int64_t task,
) noexcept nogil:
    """One slice of a part, transformed back; stored as well, where it is the only one."""
    cdef int64_t i
    cdef float *rest = scratch + c.sums_size
    cdef float *block = rest
    cdef uint64_t state = enter_floats()
    cdef TilePart part
    cdef TilePiece piece
    part_of_tiles(c, task // c.blocks.slices, &part)
    note_largest(largest, thread, 0,
                 accumulate_tiles(c, &part, source, target, values, gradients, scratch, rest, task % c.blocks.slices))
    for i in range(c.pieces):
        find_piece(c, &part, i, &piece)
        if c.blocks.slices > 1:
            block = partial + (task * c.pieces + i) * c.piece_size
        transform_piece(c, &part, &piece, scratch, block, rest + c.piece_size)
        if c.blocks.slices == 1:
            note_largest(largest, thread, 1, store_piece(c, &part, &piece, block, filter))
    leave_floats(state)


cdef inline uint32_t add_slices(
    const TiledAccumulation *c, stored *filter, float *partial, int64_t task
) noexcept nogil:
    """Some channels of a part that has several slices; their largest magnitude."""
    cdef int64_t i, index = task % c.pieces
    cdef uint32_t largest
    cdef uint64_t state = enter_floats()
    cdef TilePart part
    cdef TilePiece piece
    part_of_tiles(c, task // c.pieces, &part)
    find_piece(c, &part, index, &piece)
    partial += (task // c.pieces * c.blocks.slices * c.pieces + index) * c.piece_size
    for i in range(piece.channels * c.taps):
        winograd_add_slices(partial + i * c.target_row, c.pieces * c.piece_size, c.blocks.slices,
                            whole_vectors(part.outputs, partial[0]))
    largest = store_piece(c, &part, &piece, partial, filter)
    leave_floats(state)
    return largest


cdef inline int wgrad_tiled(
    const stored[:, :, :, :, :, :] source, stored[:, :, :, :, :, :] filter, const stored[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array,
) except -1:
    """Whether the result stands; if not, operands or results were out of the algorithm's range."""
    cdef TiledAccumulation c
    cdef const TileBlocks *blocks = <const TileBlocks *>&block_array[0]
    cdef int64_t tasks, task, tiles, boxes, step = 0, i
    cdef int threads = team_size(<int>blocks.threads)
    cdef int32_t *tables = NULL
    cdef float *partial = NULL
    cdef float *values = NULL
    cdef float *gradients = NULL
    cdef char *scratch = NULL
    cdef uint32_t *largest = NULL
    cdef const stored *x = &source[0, 0, 0, 0, 0, 0]
    cdef stored *w = &filter[0, 0, 0, 0, 0, 0]
    cdef const stored *y = &target[0, 0, 0, 0, 0, 0]
    describe_tiled_sums(&c, source, filter, target, <const TileStep *>&step_array[0, 0], blocks)
    try:
        tiles = c.tiling.box_tiles
        tables = <int32_t *>allocate_lines((blocks.chunk + 2 * tiles) * sizeof(int32_t))
        for i in range(blocks.chunk):
            tables[i] = <int32_t>(i // LINE_LANES * c.source_line + i % LINE_LANES)
        multiples(tables + blocks.chunk, LINE_LANES, tiles)
        multiples(tables + blocks.chunk + tiles, c.target_width, tiles)
        if blocks.slices > 1:
            partial = <float *>allocate_lines(c.parts * blocks.slices * c.pieces * c.piece_size * sizeof(float))
        boxes = c.groups * c.tiling.box_count if blocks.shared else 0
        values = <float *>allocate_lines(boxes * c.chunk_blocks * c.values_size * sizeof(float))
        gradients = <float *>allocate_lines(boxes * c.output_blocks * c.target_size * sizeof(float))
        scratch = <char *>allocate_lines(threads * c.scratch)
        largest = <uint32_t *>allocate_lines(threads * 128)
        memset(largest, 0, threads * 128)
        boxes *= c.chunk_blocks + c.output_blocks
        while step < step_array.shape[0]:  # each part has taps of its own, all the same tiles of the target
            describe_tiled_sums(&c, source, filter, target, <const TileStep *>&step_array[step, 0], blocks)
            c.channel, c.source_tiles, c.target_tiles = tables, tables + blocks.chunk, tables + blocks.chunk + tiles
            for task in prange(boxes, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1, nogil=True):
                note_largest(largest, threadid(), 0, share_tiles(
                    &c, x, y, values, gradients, <float *>(scratch + threadid() * c.scratch), step > 0, task))
            tasks = c.parts * blocks.slices
            for task in prange(tasks, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1, nogil=True):
                if not is_lost(largest, threadid()):
                    sum_tiles(&c, x, w, y, values, gradients, partial, <float *>(scratch + threadid() * c.scratch),
                              largest, threadid(), task)
            tasks = c.parts * c.pieces if blocks.slices > 1 else 0
            for task in prange(tasks, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1, nogil=True):
                note_largest(largest, threadid(), 1, add_slices(&c, w, partial, task))
            step += c.tiling.steps.siblings
        return stands(largest, threads)
    finally:
        free(tables)
        free(partial)
        free(values)
        free(gradients)
        free(scratch)
        free(largest)
