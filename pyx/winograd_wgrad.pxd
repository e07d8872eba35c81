"""wgrad by Winograd's algorithm: F(taps, outputs of a tile), with the tiles of the target in the place of the filter.

    filter(o, t, c) = result transform of [sum over tiles of  source(point, tile, c) * target(point, tile, o)]

A task is a chunk of input channels, a block of output channels and a slice of the boxes of tiles; the products of each
point are summed over the tiles, in sums[point][c][o]. The slices are added in order before the transform back.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from blocks cimport allocate, count_blocks, in_lines, multiples
from copy cimport store_block
from problem cimport conv_walk
from tensor cimport Tensor, count_taps, describe_filter, describe_tensor, filter_offset
from ukernel cimport multiply_strip, strip_width, whole_vectors
from window cimport Box, Window, fill_window
from winograd cimport (
    WINOGRAD_LANES, TileBlocks, TileStep, Tiling, Transform, describe_tiling, describe_transform, elements_of,
    find_tiles, lay_out_tiles, note_largest, row_size, source_walk, stands, stored, target_walk,
    tile_size, transform_box, transform_one, winograd_largest,
)

cdef enum:
    FINISHED_CHANNELS = 4  # of the filter that are transformed back by one task

cdef struct TiledAccumulation:
    Tiling tiling
    TileBlocks blocks
    Transform source, target, result
    conv_walk seen, seen_target  # the walks that fill windows
    Window window, target_window
    Tensor x, w, y
    int64_t groups, channels, outputs, taps, chunk_blocks, output_blocks, parts
    int64_t source_point, target_point, target_row, sum_point  # elements from point to point, from tile to tile
    int64_t window_size, values_size, target_size, sums_size, scratch  # elements; the last in bytes
    bint natural  # the filter's taps, and then its input channels, are adjacent in memory
    const int32_t *number  # 0, 1, 2 ..
    const int32_t *source_tiles  # multiples of the chunk
    const int32_t *target_tiles  # multiples of target_row

cdef struct TilePart:  # of the filter of group g: output channels o0 .. , input channels c0 ..
    int64_t g, o0, outputs, c0, channels


cdef inline void part_of_tiles(const TiledAccumulation *c, int64_t index, TilePart *part) noexcept nogil:
    part.o0 = index % c.output_blocks * c.blocks.outputs
    part.outputs = min(c.blocks.outputs, c.outputs - part.o0)
    part.c0 = index // c.output_blocks % c.chunk_blocks * c.blocks.chunk
    part.channels = min(c.blocks.chunk, c.channels - part.c0)
    part.g = index // (c.output_blocks * c.chunk_blocks)


cdef inline void describe_tiled_sums(
    TiledAccumulation *c, const stored[:, :, :, :, :, :] source, const stored[:, :, :, :, :, :] filter,
    const stored[:, :, :, :, :, :] target, const TileStep *step, const TileBlocks *blocks,
) noexcept nogil:
    cdef float kind = 0
    cdef int64_t taps[3]
    cdef int64_t none[3]
    cdef int64_t t
    cdef int axis
    for axis in range(3):
        taps[axis], none[axis] = step.walk.axis[axis].taps, 0
    c.blocks = blocks[0]
    describe_tiling(&c.tiling, step, blocks.images, source.shape[0])
    describe_transform(&c.source, step.points, step.points, step.points, step.outputs, 0)
    describe_transform(&c.target, step.points, step.outputs, step.points, step.outputs, 1)
    describe_transform(&c.result, step.points, step.points, taps, none, 2)
    describe_tensor(&c.x, source.strides, sizeof(stored))
    describe_filter(&c.w, filter.strides, sizeof(stored))
    describe_tensor(&c.y, target.strides, sizeof(stored))
    source_walk(&c.seen, &step.walk)
    target_walk(&c.seen_target, &step.walk)
    c.groups, c.channels, c.outputs, c.taps = source.shape[1], filter.shape[2], filter.shape[1], count_taps(&step.walk)
    c.chunk_blocks, c.output_blocks = count_blocks(c.channels, blocks.chunk), count_blocks(c.outputs, blocks.outputs)
    c.parts = c.groups * c.chunk_blocks * c.output_blocks
    c.window_size = lay_out_tiles(&c.window, &c.tiling, &c.source, blocks.chunk)
    c.target_row = whole_vectors(blocks.outputs, kind)
    c.window_size = max(c.window_size, lay_out_tiles(&c.target_window, &c.tiling, &c.target, c.target_row))
    c.source_point = c.tiling.box_tiles * blocks.chunk + WINOGRAD_LANES
    c.target_point = c.tiling.box_tiles * c.target_row + WINOGRAD_LANES
    c.sum_point = blocks.chunk * c.target_row + WINOGRAD_LANES
    c.values_size = c.tiling.point_count * c.source_point
    c.target_size = c.tiling.point_count * c.target_point
    c.sums_size = c.tiling.point_count * c.sum_point
    c.scratch = c.window_size + c.values_size + c.target_size
    c.scratch += max(row_size(&c.tiling, &c.source), row_size(&c.tiling, &c.target))
    # Behind the finished values: a part's sums of one channel, and the buffer of the transform.
    t = (FINISHED_CHANNELS * c.taps + c.tiling.point_count) * c.target_row
    t += tile_size(&c.result, c.target_row // WINOGRAD_LANES)
    # Where a part has one slice, its task also finishes it, with the sums in its own memory.
    c.scratch = in_lines((max(c.scratch, t) + (c.sums_size if blocks.slices == 1 else 0)) * sizeof(float))
    c.natural = c.w.channel == c.taps and c.w.batch != 1
    for t in range(c.taps):
        if filter_offset(&c.w, &step.walk, t) - filter_offset(&c.w, &step.walk, 0) != t:
            c.natural = False


cdef inline uint32_t largest_of(const Window *m, const Box *elements, const float *window, int64_t channels) noexcept nogil:
    """The largest magnitude in a window."""
    cdef int64_t n, d, h, w
    cdef uint32_t largest = 0
    cdef const float *row
    for n in range(elements.count[0]):
        for d in range(elements.count[1]):
            for h in range(elements.count[2]):
                row = window + n * m.batch_pitch + d * m.pitch[0] + h * m.pitch[1]
                if channels == m.channels:
                    largest = winograd_largest(row, elements.count[3] * channels, largest)
                else:
                    for w in range(elements.count[3]):
                        largest = winograd_largest(row + w * m.pitch[2], channels, largest)
    return largest


cdef inline uint32_t accumulate_tiles(
    const TiledAccumulation *c, const stored *source, const stored *target, float *sums, float *window, int64_t task
) noexcept nogil:
    """The products of one slice of a part; the largest magnitude of the target."""
    cdef int64_t p, strip, j, count, box_index, width = strip_width(sums[0]), slice = task % c.blocks.slices
    cdef int64_t first_box = c.tiling.box_count * slice // c.blocks.slices
    cdef float *values = window + c.window_size
    cdef float *gradients = values + c.values_size
    cdef float *buffer = gradients + c.target_size
    cdef Box tiles, elements
    cdef TilePart part
    cdef uint32_t largest = 0
    part_of_tiles(c, task // c.blocks.slices, &part)
    source += part.g * c.x.group + part.c0 * c.x.channel
    target += part.g * c.y.group + part.o0 * c.y.channel
    for box_index in range(first_box, c.tiling.box_count * (slice + 1) // c.blocks.slices):
        count = find_tiles(&c.tiling, box_index, &tiles)
        elements_of(&c.tiling, &tiles, &c.source, &elements)
        fill_window(window, &c.window, &c.seen, &elements, source, &c.x, part.channels)
        transform_box(&c.source, &tiles, window, &c.window, part.channels, values, c.source_point, c.blocks.chunk,
                      buffer)
        elements_of(&c.tiling, &tiles, &c.target, &elements)
        fill_window(window, &c.target_window, &c.seen_target, &elements, target, &c.y, part.outputs)
        largest = max(largest, largest_of(&c.target_window, &elements, window, part.outputs))
        transform_box(&c.target, &tiles, window, &c.target_window, part.outputs, gradients, c.target_point,
                      c.target_row, buffer)
        for p in range(c.tiling.point_count):
            for strip in range(count_blocks(part.outputs, width)):
                j = strip * width
                multiply_strip(
                    False, part.channels, min(width, part.outputs - j), count, values + p * c.source_point, c.number,
                    c.source_tiles, gradients + p * c.target_point + j, c.target_tiles, sums + p * c.sum_point + j,
                    c.target_row, box_index == first_box,
                )
    return largest


cdef inline uint32_t finish_tiles(
    const TiledAccumulation *c, stored *filter, const float *sums, float *block, int64_t part_index, int64_t first
) noexcept nogil:
    """Add the slices of some channels of a part, transform and store them; their largest magnitude."""
    cdef int64_t channels, i, p, j, t, slice, columns
    cdef const float *of
    cdef float *total = block + FINISHED_CHANNELS * c.taps * c.target_row
    cdef float *buffer = total + c.tiling.point_count * c.target_row
    cdef int64_t pitch[3]
    cdef int64_t to_pitch[3]
    cdef TilePart part
    cdef uint32_t largest = 0
    part_of_tiles(c, part_index, &part)
    channels = min(<int64_t>FINISHED_CHANNELS, part.channels - first)
    if channels <= 0:
        return 0
    filter += part.g * c.w.group + part.o0 * c.w.batch + (part.c0 + first) * c.w.channel
    columns = whole_vectors(part.outputs, block[0])
    pitch[2], to_pitch[2] = c.target_row, c.target_row
    for i in range(1, -1, -1):
        pitch[i] = pitch[i + 1] * c.tiling.points[i + 1]
        to_pitch[i] = to_pitch[i + 1] * c.result.given[i + 1]
    for i in range(channels):
        for p in range(c.tiling.point_count):
            of = sums + p * c.sum_point + (first + i) * c.target_row
            for j in range(columns):
                total[p * c.target_row + j] = of[j]
            for slice in range(1, c.blocks.slices):
                of += c.sums_size
                for j in range(columns):
                    total[p * c.target_row + j] += of[j]
        transform_one(&c.result, total, pitch, block + i * c.taps * c.target_row, to_pitch,
                      columns // WINOGRAD_LANES, buffer)
    for i in range(channels * c.taps):
        largest = winograd_largest(block + i * c.target_row, part.outputs, largest)
    if c.natural:
        store_block(filter + filter_offset(&c.w, &c.tiling.walk, 0), c.w.batch, 1, block, 1, c.target_row, part.outputs,
                    channels * c.taps)
    else:
        for t in range(c.taps):
            store_block(filter + filter_offset(&c.w, &c.tiling.walk, t), c.w.batch, c.w.channel,
                        block + t * c.target_row, 1, c.taps * c.target_row, part.outputs, channels)
    return largest


cdef inline void sum_tiles(
    const TiledAccumulation *c, const stored *source, stored *filter, const stored *target, float *partial,
    char *scratch, uint32_t *largest, int thread, int64_t task,
) noexcept nogil:
    """One slice of a part; the whole of it, stored as well, where there is one slice."""
    cdef float *memory = <float *>scratch
    cdef int64_t i
    if c.blocks.slices > 1:
        note_largest(largest, thread, 0, accumulate_tiles(c, source, target, partial + task * c.sums_size, memory, task))
        return
    note_largest(largest, thread, 0, accumulate_tiles(c, source, target, memory, memory + c.sums_size, task))
    for i in range(count_blocks(c.blocks.chunk, FINISHED_CHANNELS)):
        note_largest(largest, thread, 1,
                     finish_tiles(c, filter, memory, memory + c.sums_size, task, i * FINISHED_CHANNELS))


cdef inline void add_slices(
    const TiledAccumulation *c, stored *filter, const float *partial, char *scratch, uint32_t *largest, int thread,
    int64_t task,
) noexcept nogil:
    """Some channels of a part that has several slices."""
    cdef int64_t count = count_blocks(c.blocks.chunk, FINISHED_CHANNELS), part = task // count
    note_largest(largest, thread, 1, finish_tiles(c, filter, partial + part * c.blocks.slices * c.sums_size,
                                                  <float *>scratch, part, task % count * FINISHED_CHANNELS))


cdef inline int wgrad_tiled(
    const stored[:, :, :, :, :, :] source, stored[:, :, :, :, :, :] filter, const stored[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array,
) except -1:
    """Whether the result stands; if not, operands or results were out of the algorithm's range."""
    cdef TiledAccumulation c
    cdef const TileBlocks *blocks = <const TileBlocks *>&block_array[0]
    cdef int64_t tasks, task, tiles
    cdef int threads = <int>blocks.threads
    cdef int32_t *tables = NULL
    cdef float *partial = NULL
    cdef char *scratch = NULL
    cdef uint32_t *largest = NULL
    cdef const stored *x = &source[0, 0, 0, 0, 0, 0]
    cdef stored *w = &filter[0, 0, 0, 0, 0, 0]
    cdef const stored *y = &target[0, 0, 0, 0, 0, 0]
    describe_tiled_sums(&c, source, filter, target, <const TileStep *>&step_array[0, 0], blocks)
    try:
        tiles = c.tiling.box_tiles
        tables = <int32_t *>allocate((blocks.chunk + 2 * tiles) * sizeof(int32_t))
        multiples(tables, 1, blocks.chunk)
        multiples(tables + blocks.chunk, blocks.chunk, tiles)
        multiples(tables + blocks.chunk + tiles, c.target_row, tiles)
        c.number, c.source_tiles, c.target_tiles = tables, tables + blocks.chunk, tables + blocks.chunk + tiles
        tasks = c.parts * blocks.slices
        if blocks.slices > 1:
            partial = <float *>allocate(tasks * c.sums_size * sizeof(float))
        scratch = <char *>allocate(threads * c.scratch)
        largest = <uint32_t *>allocate(threads * 128)
        memset(largest, 0, threads * 128)
        for task in prange(tasks, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1, nogil=True):
            sum_tiles(&c, x, w, y, partial, scratch + threadid() * c.scratch, largest, threadid(), task)
        tasks = c.parts * count_blocks(blocks.chunk, FINISHED_CHANNELS) if blocks.slices > 1 else 0
        for task in prange(tasks, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1, nogil=True):
            add_slices(&c, w, partial, scratch + threadid() * c.scratch, largest, threadid(), task)
        return stands(largest, threads)
    finally:
        free(tables)
        free(partial)
        free(scratch)
        free(largest)
