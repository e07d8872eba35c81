"""fprop and dgrad by Winograd's algorithm, a box of tiles: transformed, multiplied point by point, transformed back.

    values[point][tile][channel]       sums[point][tile][output]
"""

from libc.stdint cimport int64_t, uint32_t

from base.memory cimport count_blocks
from base.problem cimport conv_walk
from base.tensor cimport target_offset
from copy.load_store cimport store_block
from copy.stream cimport end_stream, holds_lines, stream_lines
from copy.window cimport Box
from parallel.tasks cimport is_stopped
from tile.ukernel cimport ADDED, FRESH, SCALARS, multiply_rows, whole_vectors
from winograd.correlate_tasks cimport RESULT_CHANNELS, TiledCorrelation
from winograd.filter cimport transform_filters
from winograd.tiling cimport Tiling, fill_tiles, find_tiles, step_of_image
from winograd.transform cimport WINOGRAD_LANES, magnitudes, stored, transform_box, transform_one, winograd_largest


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


cdef inline uint32_t correlate_tiles(
    const TiledCorrelation *c, const stored *source, const stored *filter, const float *filters, float *shared,
    stored *target, int64_t first_output, int64_t group_outputs, char *scratch, magnitudes *seen, int64_t task,
) noexcept nogil:
    """A box of tiles, and a block of the outputs from ``first_output`` on; their largest magnitude.

    ``seen`` are the filter's magnitudes, where the task transforms it.
    """
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
    cdef Box tiles
    count = find_tiles(&c.tiling, box_index, &tiles)
    filters += (g * count_blocks(group_outputs, width) + o // width) * c.filters.strip
    filter += g * c.filters.w.group + (first_output + o) * c.filters.w.batch
    for span in range(count_blocks(chunks, c.blocks.span)):
        first = span * c.blocks.span
        last = min(chunks, first + c.blocks.span)
        if first > 0 and is_stopped(c.workers):
            return 0
        if c.blocks.shared:
            values = shared + ((g * c.tiling.box_count + box_index) * chunks + first) * c.values_size
        else:
            for i in range(first, last):
                transform_chunk(c, &tiles, source, g, groups, i, values + (i - first) * c.values_size, window, buffer)
        if not c.blocks.group:
            c0 = first % c.chunks * c.blocks.chunk
            transform_filters(
                &c.filters, c.tiling.steps + first // c.chunks, 1, filter + c0 * c.filters.w.channel, bank, 0,
                min(c.blocks.chunk, c.channels - c0), outputs, buffer, seen)
        multiply_points(c, values, filters if c.blocks.group else bank, sums, count, groups, outputs, first, last)
    target += g * c.y.group + (first_output + o) * c.y.channel
    return store_tiles(c, &tiles, sums, target, groups * outputs, rows, buffer)
