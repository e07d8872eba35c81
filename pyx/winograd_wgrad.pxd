"""wgrad by Winograd's algorithm: F(taps, outputs of a tile), with the tiles of the target in the place of the filter.

    filter(o, t, c) = result transform of [sum over tiles of  source(point, tile, c) * target(point, tile, o)]

A task is a chunk of input channels, a block of output channels and a slice of the boxes of tiles, of one group or a
bundle of small ones; the products of each point are summed over the tiles. The slices are added in order before the
transform back. Where the filter has several blocks, the transformed tiles are kept for all of them.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from blocks cimport allocate_lines, count_blocks, multiples
from copy cimport store_block
from tensor cimport filter_offset
from ukernel cimport ADDED, FRESH, SCALARS, multiply_rows, strip_width, whole_vectors
from window cimport Box
from winograd cimport (
    LINE_LANES, WINOGRAD_LANES, note_largest, stands, stored, transform_box, transform_one, winograd_add_slices,
    winograd_largest,
)
from winograd_parts cimport (
    FINISHED_CHANNELS, TilePart, TiledAccumulation, describe_tiled_sums, largest_of, part_of_tiles
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
    cdef Box tiles
    find_tiles(&c.tiling, box % c.tiling.box_count, &tiles)
    if kind < c.chunk_blocks:
        transform_source(c, &tiles, source, g, 1, kind, values + (box * c.chunk_blocks + kind) * c.values_size,
                         window, buffer)
        return 0
    if again:
        return 0
    kind -= c.chunk_blocks
    return transform_target(c, &tiles, target, g, 1, kind,
                            gradients + (box * c.output_blocks + kind) * c.target_size, window, buffer)


cdef inline uint32_t accumulate_tiles(
    const TiledAccumulation *c, const stored *source, const stored *target, float *all_values, float *all_gradients,
    float *sums, float *window, int64_t task,
) noexcept nogil:
    """The products of one slice of a part; the largest magnitude of the target, where the tiles are not shared."""
    cdef int64_t p, g, strip, j, column, count, even, box, index, width = strip_width(sums[0])
    cdef int64_t slice = task % c.blocks.slices
    cdef int64_t boxes = c.tiling.box_count, first_box = boxes * slice // c.blocks.slices
    cdef float *values = window + c.window_size
    cdef float *gradients = values + c.values_size
    cdef float *buffer = gradients + c.target_size
    cdef Box tiles
    cdef TilePart part
    cdef uint32_t largest = 0
    part_of_tiles(c, task // c.blocks.slices, &part)
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


cdef inline uint32_t finish_tiles(
    const TiledAccumulation *c, stored *filter, const float *sums, float *block, int64_t part_index, int64_t piece
) noexcept nogil:
    """Add the slices of some channels of a part, transform and store them; their largest magnitude."""
    cdef int64_t of_group = c.pieces // c.blocks.groups, g = piece // of_group, channels, i, p, t, columns
    cdef int64_t first = piece % of_group * FINISHED_CHANNELS
    cdef const float *of
    cdef float *total = block + FINISHED_CHANNELS * c.taps * c.target_row
    cdef float *buffer = total + c.tiling.point_count * c.target_row
    cdef int64_t pitch[3]
    cdef int64_t to_pitch[3]
    cdef TilePart part
    cdef uint32_t largest = 0
    part_of_tiles(c, part_index, &part)
    channels = min(<int64_t>FINISHED_CHANNELS, part.channels - first)
    if channels <= 0 or g >= part.groups:
        return 0
    sums += g * part.channels * c.target_row
    filter += (part.g + g) * c.w.group + part.o0 * c.w.batch + (part.c0 + first) * c.w.channel
    columns = whole_vectors(part.outputs, block[0])
    pitch[2], to_pitch[2] = c.target_row, c.target_row
    if c.blocks.slices == 1:
        pitch[2] = c.sum_point
    for i in range(1, -1, -1):
        pitch[i] = pitch[i + 1] * c.tiling.points[i + 1]
        to_pitch[i] = to_pitch[i + 1] * c.result.given[i + 1]
    for i in range(channels):
        of = sums + (first + i) * c.target_row
        if c.blocks.slices == 1:
            transform_one(&c.result, of, pitch, block + i * c.taps * c.target_row, to_pitch, columns // WINOGRAD_LANES,
                          buffer)
            continue
        for p in range(c.tiling.point_count):
            winograd_add_slices(total + p * c.target_row, sums + p * c.sum_point + (first + i) * c.target_row,
                                c.sums_size, c.blocks.slices, columns, c.target_row)
        transform_one(&c.result, total, pitch, block + i * c.taps * c.target_row, to_pitch,
                      columns // WINOGRAD_LANES, buffer)
    for i in range(channels * c.taps):
        largest = winograd_largest(block + i * c.target_row, part.outputs, largest)
    if c.natural:
        store_block(filter + filter_offset(&c.w, &c.tiling.steps.walk, 0), c.w.batch, 1, block, 1, c.target_row,
                    part.outputs, channels * c.taps)
    else:
        for t in range(c.taps):
            if not is_held(c.tiling.steps, t):
                continue
            store_block(filter + filter_offset(&c.w, &c.tiling.steps.walk, t), c.w.batch, c.w.channel,
                        block + t * c.target_row, 1, c.taps * c.target_row, part.outputs, channels)
    return largest


cdef inline void sum_tiles(
    const TiledAccumulation *c, const stored *source, stored *filter, const stored *target, float *values,
    float *gradients, float *partial, char *scratch, uint32_t *largest, int thread, int64_t task,
) noexcept nogil:
    """One slice of a part; the whole of it, stored as well, where there is one slice."""
    cdef float *memory = <float *>scratch
    cdef int64_t i
    if c.blocks.slices > 1:
        note_largest(largest, thread, 0, accumulate_tiles(c, source, target, values, gradients,
                                                          partial + task * c.sums_size, memory, task))
        return
    note_largest(largest, thread, 0,
                 accumulate_tiles(c, source, target, values, gradients, memory, memory + c.sums_size, task))
    for i in range(c.pieces):
        note_largest(largest, thread, 1, finish_tiles(c, filter, memory, memory + c.sums_size, task, i))


cdef inline void add_slices(
    const TiledAccumulation *c, stored *filter, const float *partial, char *scratch, uint32_t *largest, int thread,
    int64_t task,
) noexcept nogil:
    """Some channels of a part that has several slices."""
    cdef int64_t part = task // c.pieces
    note_largest(largest, thread, 1, finish_tiles(c, filter, partial + part * c.blocks.slices * c.sums_size,
                                                  <float *>scratch, part, task % c.pieces))


cdef inline int wgrad_tiled(
    const stored[:, :, :, :, :, :] source, stored[:, :, :, :, :, :] filter, const stored[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array,
) except -1:
    """Whether the result stands; if not, operands or results were out of the algorithm's range."""
    cdef TiledAccumulation c
    cdef const TileBlocks *blocks = <const TileBlocks *>&block_array[0]
    cdef int64_t tasks, task, tiles, boxes, step = 0, i
    cdef int threads = <int>blocks.threads
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
            partial = <float *>allocate_lines(c.parts * blocks.slices * c.sums_size * sizeof(float))
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
                sum_tiles(&c, x, w, y, values, gradients, partial, scratch + threadid() * c.scratch, largest,
                          threadid(), task)
            tasks = c.parts * c.pieces if blocks.slices > 1 else 0
            for task in prange(tasks, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1, nogil=True):
                add_slices(&c, w, partial, scratch + threadid() * c.scratch, largest, threadid(), task)
            step += c.tiling.steps.siblings
        return stands(largest, threads)
    finally:
        free(tables)
        free(partial)
        free(values)
        free(gradients)
        free(scratch)
        free(largest)
