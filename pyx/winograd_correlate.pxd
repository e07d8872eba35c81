"""fprop and dgrad by Winograd's algorithm: a tile is transformed, multiplied point by point, and transformed back.

A task is a box of tiles and a block of outputs, of one group or a bundle of small ones. Chunk after chunk of the
channels it fills a window, transforms its tiles and adds, of each point and group, the product
(tiles x channels) * (channels x outputs) to its sums:

    values[point][tile][channel]       sums[point][tile][output]

Outputs whose filters would take too much memory at once are computed group after group.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from blocks cimport allocate_lines, count_blocks, multiples
from copy cimport store_block
from problem cimport conv_walk
from stream cimport end_stream, holds_lines, stream_lines
from tasks cimport enter_floats, leave_floats, team_size
from tensor cimport target_offset
from ukernel cimport ADDED, FRESH, SCALARS, multiply_rows, whole_vectors
from window cimport Box
from winograd cimport (
    WINOGRAD_LANES, is_lost, note_largest, stands, stored, transform_box, transform_one, winograd_largest,
)
from winograd_correlation cimport RESULT_CHANNELS, TiledCorrelation, describe_tiled
from winograd_filter cimport transform_filters
from winograd_tiling cimport TileBlocks, TileStep, Tiling, fill_tiles, find_tiles, step_of_image


cdef enum:
    MOST_STRIPS = 4  # of filters, transformed by one task,
    FILTER_CHANNELS = 32  # and channels: one strip is all there is of 64 outputs
    FILTER_TASKS = 8  # that are wanted for all threads


cdef inline void multiply_points(
    const TiledCorrelation *c, const float *values, const float *filters, float *sums, int64_t tiles, int64_t groups,
    int64_t outputs, int64_t first, int64_t last,
) noexcept nogil:
    """sums += values * filters of each point and the chunks from ``first`` to ``last``, whose values follow each other.

    Chunk after chunk of one point: its sums stay in the cache. ``filters`` is the first strip; of all channels, or
    where tasks transform their own, of one chunk.
    """
    cdef int64_t p, i, g, strip, j, c0, channels, width = c.filters.width, strips = count_blocks(outputs, width)
    cdef const float *bank
    for p in range(c.tiling.point_count):
        for i in range(first, last):
            c0 = i % c.chunks * c.blocks.chunk
            channels = min(c.blocks.chunk, c.channels - c0)
            bank = filters + p * c.filters.point
            if c.blocks.group:
                bank += (i // c.chunks * c.channels + c0) * width
            for g in range(groups):
                for strip in range(strips):
                    j = strip * width
                    multiply_rows(
                        SCALARS, False, tiles, tiles, min(width, outputs - j), channels, channels,
                        values + (i - first) * c.values_size + p * c.value_point + g * channels, c.tile_rows, c.channel,
                        bank + (g * strips + strip) * c.filters.strip, c.filter_rows,
                        sums + p * c.sum_point + g * outputs + j, NULL, c.sum_row, FRESH if i == 0 else ADDED,
                    )


cdef inline uint32_t store_tiles(
    const TiledCorrelation *c, const Box *tiles, const float *sums, stored *target, int64_t outputs, float *rows,
    float *buffer,
) noexcept nogil:
    """Transform the sums back, row of tiles by row, and store what lies within the target; its largest magnitude."""
    cdef const Tiling *t = &c.tiling
    cdef const conv_walk *walk
    cdef int64_t part, o, n, d, h, w, i, tile, count, channels, lanes, columns = tiles.count[3] * t.outputs[2], column
    cdef int64_t lines, run, runs
    cdef int64_t at[3]
    cdef int64_t pitch[3]
    cdef int64_t to_pitch[3]
    cdef uint32_t largest = 0
    cdef const float *row
    cdef stored *to
    cdef bint adjoin, streamed = False
    pitch[2] = c.sum_point
    pitch[1] = pitch[2] * t.points[2]
    pitch[0] = pitch[1] * t.points[1]
    column = tiles.begin[3] * t.outputs[2]
    if stored is float:
        streamed = c.blocks.streams and c.y.channel == 1 and holds_lines(&c.y, target, outputs)
    for part in range(count_blocks(outputs, RESULT_CHANNELS)):
        o = part * RESULT_CHANNELS
        channels = min(<int64_t>RESULT_CHANNELS, outputs - o)
        lanes = to_pitch[2] = whole_vectors(channels, sums[0])
        tile = 0
        for n in range(tiles.count[0]):
            walk = &step_of_image(t, tiles.begin[0] + n).walk
            count = max(<int64_t>0, min(columns, walk.axis[2].positions - column))
            to_pitch[1] = to_pitch[2] * count
            to_pitch[0] = to_pitch[1] * t.outputs[1]
            adjoin = walk.axis[1].target_step * c.y.axis[1] == count * walk.axis[2].target_step * c.y.axis[2]
            for d in range(tiles.count[1]):
                for h in range(tiles.count[2]):
                    # What a tile has beyond the row lies where the next row begins, and is written over.
                    for w in range(tiles.count[3] - 1, -1, -1):
                        transform_one(&c.result, sums + (tile + w) * c.sum_row + o, pitch,
                                      rows + w * t.outputs[2] * lanes, to_pitch, lanes // WINOGRAD_LANES, buffer)
                    tile += tiles.count[3]
                    at[1] = (tiles.begin[2] + h) * t.outputs[1]
                    lines = max(<int64_t>0, min(t.outputs[1], walk.axis[1].positions - at[1]))
                    run, runs = count * (lines if adjoin else 1), 1 if adjoin else lines
                    for i in range(t.outputs[0] * runs):
                        at[0] = (tiles.begin[1] + d) * t.outputs[0] + i // runs
                        if run == 0 or at[0] >= walk.axis[0].positions:
                            continue
                        row = rows + i // runs * to_pitch[0] + i % runs * to_pitch[1]
                        if channels == lanes:
                            largest = winograd_largest(row, run * lanes, largest)
                        for w in range(0 if channels == lanes else run):
                            largest = winograd_largest(row + w * lanes, channels, largest)
                        to = target + o * c.y.channel + target_offset(
                            &c.y, walk, (tiles.begin[0] + n) // t.steps.siblings, at[0], at[1] + i % runs, column)
                        if streamed:
                            for w in range(run):
                                stream_lines(to + w * walk.axis[2].target_step * c.y.axis[2], row + w * lanes,
                                             channels * sizeof(float))
                            continue
                        store_block(to, walk.axis[2].target_step * c.y.axis[2], c.y.channel, row, lanes, 1, run,
                                    channels)
    if streamed:
        end_stream()
    return largest


cdef inline void transform_chunk(
    const TiledCorrelation *c, const Box *tiles, const stored *source, int64_t g, int64_t groups, int64_t chunk,
    float *values, float *window, float *buffer,
) noexcept nogil:
    """The values of a box of tiles and a chunk of the channels of one step; those of all steps are counted through."""
    cdef int64_t c0 = chunk % c.chunks * c.blocks.chunk, channels = groups * min(c.blocks.chunk, c.channels - c0)
    fill_tiles(window, &c.window, &c.tiling, &c.source, chunk // c.chunks, False, tiles,
               source + g * c.x.group + c0 * c.x.channel, &c.x, channels)
    transform_box(&c.source, tiles, window, &c.window, channels, values, c.value_point, 0, c.blocks.chunk, buffer)


cdef inline void share_chunk(
    const TiledCorrelation *c, const stored *source, float *shared, char *scratch, int64_t task
) noexcept nogil:
    """One chunk of one box, for all blocks of outputs."""
    cdef float *window = <float *>scratch
    cdef int64_t chunks = c.added * c.chunks
    cdef uint64_t state = enter_floats()
    cdef Box tiles
    find_tiles(&c.tiling, task // chunks % c.tiling.box_count, &tiles)
    transform_chunk(c, &tiles, source, task // chunks // c.tiling.box_count, 1, task % chunks,
                    shared + task * c.values_size, window, window + c.window_size)
    leave_floats(state)


cdef inline uint32_t correlate_tiles(
    const TiledCorrelation *c, const stored *source, const stored *filter, const float *filters, float *shared,
    stored *target, int64_t first_output, int64_t group_outputs, char *scratch, uint32_t *largest_filter, int64_t task,
) noexcept nogil:
    """A box of tiles, and a block of the outputs from ``first_output`` on; their largest magnitude."""
    cdef int64_t blocks = count_blocks(group_outputs, c.blocks.outputs), box_index = task % c.tiling.box_count
    cdef int64_t o = task // c.tiling.box_count % blocks * c.blocks.outputs
    cdef int64_t g = task // c.tiling.box_count // blocks * c.blocks.groups, groups = min(c.blocks.groups, c.groups - g)
    cdef int64_t outputs = min(c.blocks.outputs, group_outputs - o), i, c0, span, first, last, count
    cdef int64_t width = c.filters.width, chunks = c.added * c.chunks
    cdef float *window = <float *>scratch
    cdef float *values = window + c.window_size
    cdef float *sums = values + (0 if c.blocks.shared else c.blocks.span * c.values_size)
    cdef float *rows = sums + c.sums_size
    cdef float *buffer = rows + c.rows_size
    cdef float *bank = buffer + c.buffer_size
    cdef uint32_t largest
    cdef uint64_t state = enter_floats()
    cdef Box tiles
    count = find_tiles(&c.tiling, box_index, &tiles)
    filters += (g * count_blocks(group_outputs, width) + o // width) * c.filters.strip
    filter += g * c.filters.w.group + (first_output + o) * c.filters.w.batch
    for span in range(count_blocks(chunks, c.blocks.span)):
        first = span * c.blocks.span
        last = min(chunks, first + c.blocks.span)
        if c.blocks.shared:
            values = shared + ((g * c.tiling.box_count + box_index) * chunks + first) * c.values_size
        else:
            for i in range(first, last):
                transform_chunk(c, &tiles, source, g, groups, i, values + (i - first) * c.values_size, window, buffer)
        if not c.blocks.group:
            c0 = first % c.chunks * c.blocks.chunk
            largest_filter[0] = max(largest_filter[0], transform_filters(
                &c.filters, c.tiling.steps + first // c.chunks, 1, filter + c0 * c.filters.w.channel, bank, 0,
                min(c.blocks.chunk, c.channels - c0), outputs, buffer))
        multiply_points(c, values, filters if c.blocks.group else bank, sums, count, groups, outputs, first, last)
    target += g * c.y.group + (first_output + o) * c.y.channel
    largest = store_tiles(c, &tiles, sums, target, groups * outputs, rows, buffer)
    leave_floats(state)
    return largest


cdef inline int64_t strips_of_task(const TiledCorrelation *c, int64_t strips) noexcept nogil:
    """Strips whose filters are transformed together, of so many of a group: few enough for there to be tasks."""
    return max(<int64_t>1, min(<int64_t>MOST_STRIPS, c.groups * strips // FILTER_TASKS))


cdef inline uint32_t transform_strips(
    const TiledCorrelation *c, const stored *filter, float *filters, int64_t first_output, int64_t group_outputs,
    char *scratch, int64_t task,
) noexcept nogil:
    cdef int64_t width = c.filters.width, strips = count_blocks(group_outputs, width)
    cdef int64_t together = strips_of_task(c, strips), parts = count_blocks(strips, together)
    cdef int64_t chunks = count_blocks(c.channels, FILTER_CHANNELS), c0 = task % chunks * FILTER_CHANNELS
    cdef int64_t g = task // chunks // parts, first = task // chunks % parts * together, o = first * width
    cdef uint32_t largest
    cdef uint64_t state = enter_floats()
    filter += g * c.filters.w.group + (first_output + o) * c.filters.w.batch + c0 * c.filters.w.channel
    largest = transform_filters(
        &c.filters, c.tiling.steps, c.added, filter, filters + (g * strips + first) * c.filters.strip + c0 * width,
        c.channels, min(<int64_t>FILTER_CHANNELS, c.channels - c0), min(together * width, group_outputs - o),
        <float *>scratch)
    leave_floats(state)
    return largest


cdef inline int correlate_tiled(
    const stored[:, :, :, :, :, :] source, const stored[:, :, :, :, :, :] filter, stored[:, :, :, :, :, :] target,
    const int64_t[:, ::1] step_array, const int64_t[::1] block_array,
) except -1:
    """Whether the result stands; if not, operands or results were out of the algorithm's range."""
    cdef TiledCorrelation c
    cdef const TileBlocks *blocks = <const TileBlocks *>&block_array[0]
    cdef int64_t i = 0, o, outputs, strips, task, tasks, group, most_filter = 0, most_scratch = 0, most_tiles = 0
    cdef int64_t most_shared = 0
    cdef int threads = team_size(<int>blocks.threads)
    cdef int32_t *tables = NULL
    cdef float *filters = NULL
    cdef float *shared = NULL
    cdef char *scratch = NULL
    cdef uint32_t *largest = NULL
    cdef const stored *x = &source[0, 0, 0, 0, 0, 0]
    cdef const stored *w = &filter[0, 0, 0, 0, 0, 0]
    cdef stored *y = &target[0, 0, 0, 0, 0, 0]
    group = blocks.group if blocks.group else filter.shape[1]
    try:
        while i < step_array.shape[0]:
            describe_tiled(&c, source, filter, target, <const TileStep *>&step_array[i, 0], blocks)
            tasks = c.groups * count_blocks(min(group, c.outputs), c.filters.width) if blocks.group else 0
            most_shared = max(most_shared, c.groups * c.tiling.box_count * c.added * c.chunks * c.values_size)
            most_filter = max(most_filter, tasks * c.filters.strip)
            most_scratch = max(most_scratch, threads * c.scratch)
            most_tiles = max(most_tiles, c.tiling.box_tiles)
            i += c.added * c.tiling.steps.siblings
        tables = <int32_t *>allocate_lines((2 * blocks.chunk + most_tiles) * sizeof(int32_t))
        filters = <float *>allocate_lines(most_filter * sizeof(float))
        shared = <float *>allocate_lines(most_shared * sizeof(float) if blocks.shared else 0)
        scratch = <char *>allocate_lines(most_scratch)
        largest = <uint32_t *>allocate_lines(threads * 128)
        memset(largest, 0, threads * 128)
        multiples(tables, 1, blocks.chunk)
        multiples(tables + blocks.chunk, c.filters.width, blocks.chunk)
        multiples(tables + 2 * blocks.chunk, blocks.chunk, most_tiles)
        i = 0
        while i < step_array.shape[0]:
            describe_tiled(&c, source, filter, target, <const TileStep *>&step_array[i, 0], blocks)
            c.channel, c.filter_rows, c.tile_rows = tables, tables + blocks.chunk, tables + 2 * blocks.chunk
            tasks = c.groups * c.tiling.box_count * c.added * c.chunks if blocks.shared else 0
            for task in prange(tasks, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1, nogil=True):
                share_chunk(&c, x, shared, scratch + threadid() * c.scratch, task)
            for o in range(0, c.outputs, group):
                outputs = min(group, c.outputs - o)
                strips = count_blocks(outputs, c.filters.width)
                tasks = c.groups * count_blocks(strips, strips_of_task(&c, strips)) if blocks.group else 0
                tasks *= count_blocks(c.channels, FILTER_CHANNELS)
                for task in prange(tasks, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1,
                                   nogil=True):
                    note_largest(largest, threadid(), 0, transform_strips(
                        &c, w, filters, o, outputs, scratch + threadid() * c.scratch, task))
                tasks = c.bundles * c.tiling.box_count * count_blocks(outputs, blocks.outputs)
                for task in prange(tasks, schedule="dynamic", num_threads=threads, use_threads_if=threads > 1,
                                   nogil=True):
                    if not is_lost(largest, threadid()):
                        note_largest(largest, threadid(), 1, correlate_tiles(
                            &c, x, w, filters, shared, y, o, outputs, scratch + threadid() * c.scratch,
                            largest + threadid() * 32, task))
            i += c.added * c.tiling.steps.siblings
        return stands(largest, threads)
    finally:
        free(tables)
        free(filters)
        free(shared)
        free(scratch)
        free(largest)
