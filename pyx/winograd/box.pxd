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
from tile.multiply cimport Columns, Depth, Rows, Sums, multiply_rows
from tile.ukernel cimport ADDED, FRESH, SCALARS, whole_vectors
from winograd.correlate_tasks cimport RESULT_CHANNELS, TiledCorrelation, TiledJob
from winograd.filter cimport FilterPart, transform_filters
from winograd.range cimport Extremes
from winograd.tiling cimport TileOperand, Tiling, fill_tiles, find_tiles, step_of_image
from winograd.transform cimport (
    WINOGRAD_LANES, ValuePitches, stored, transform_box, transform_one, winograd_largest,
)


cdef struct TiledTask:  # a box of tiles and a block of outputs, in the groups of a bundle
    Box tiles
    int64_t count  # of the tiles
    int64_t g, groups, o, outputs  # groups from g on, and in each of them outputs from o on, of those computed now
    float *sums


cdef inline void multiply_points(
    const TiledCorrelation *c, const TiledTask *t, const float *values, const float *filters, int64_t first,
    int64_t last,
) noexcept nogil:
    """sums += values * filters of each point and the chunks from ``first`` to ``last``, whose values follow each other.

    Chunk after chunk of one point: its sums stay in the cache. ``filters`` is the first strip; of all channels, or
    where tasks transform their own, of one chunk.
    """
    cdef int64_t p, i, g, strip, j, c0, channels, columns, width = c.filters.width
    cdef int64_t strips = count_blocks(t.outputs, width)
    cdef int how
    cdef const float *bank
    for p in range(c.tiling.point_count):
        for i in range(first, last):
            c0 = i % c.chunks * c.blocks.chunk
            channels = min(c.blocks.chunk, c.channels - c0)
            bank = filters + p * c.filters.point
            how = FRESH if i == 0 else ADDED
            if c.blocks.filters_kept:
                bank += (i // c.chunks * c.channels + c0) * width
            for g in range(t.groups):
                for strip in range(strips):
                    j = strip * width
                    columns = min(width, t.outputs - j)
                    multiply_rows(
                        Depth(SCALARS, channels, channels),
                        values + (i - first) * c.values_size + p * c.value_point + g * channels,
                        Rows(c.tile_rows, c.channel, t.count, t.count, False),
                        bank + (g * strips + strip) * c.filters.strip, Columns(c.filter_rows, columns),
                        t.sums + p * c.sum_point, Sums(g * t.outputs + j, NULL, c.sum_row, how),
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
        streamed = c.blocks.nontemporal and c.y.channel == 1 and holds_lines(&c.y, target, outputs)
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
    const TiledCorrelation *c, const Box *tiles, const stored *source, int64_t groups, int64_t chunk, float *values,
    float *window, float *buffer,
) noexcept nogil:
    """The values of a box of tiles and a chunk of the channels of one step; those of all steps are counted through.

    ``source`` points at the first of the groups.
    """
    cdef int64_t c0 = chunk % c.chunks * c.blocks.chunk, channels = groups * min(c.blocks.chunk, c.channels - c0)
    fill_tiles(window, TileOperand(&c.x, &c.window, &c.source, False), &c.tiling, chunk // c.chunks, tiles,
               source + c0 * c.x.channel, channels)
    transform_box(&c.source, tiles, window, &c.window, channels, values, ValuePitches(c.value_point, 0, c.blocks.chunk),
                  buffer)


cdef inline void find_task(
    const TiledJob *job, const TiledCorrelation *c, int64_t number, TiledTask *t
) noexcept nogil:
    cdef int64_t blocks = count_blocks(job.outputs, c.blocks.outputs), outer = number // c.tiling.box_count
    t.count = find_tiles(&c.tiling, number % c.tiling.box_count, &t.tiles)
    t.o = outer % blocks * c.blocks.outputs
    t.outputs = min(c.blocks.outputs, job.outputs - t.o)
    t.g = outer // blocks * c.blocks.groups
    t.groups = min(c.blocks.groups, c.groups - t.g)


cdef inline uint32_t correlate_tiles(
    const TiledJob *job, const TiledCorrelation *c, const stored *source, Extremes *seen, int64_t task
) noexcept nogil:
    """One task of a part; the largest magnitude of what it stores.

    ``seen``: that of filters which it transforms; its memory.
    """
    cdef const stored *filter = <const stored *>job.filter
    cdef int64_t i, c0, span, first, last, chunks = c.added * c.chunks, box_index = task % c.tiling.box_count
    cdef float *window = <float *>(seen + 1)
    cdef float *values = window + c.window_size
    cdef float *rows
    cdef float *buffer
    cdef float *bank
    cdef const float *filters = job.filters + c.first_filter
    cdef FilterPart part
    cdef TiledTask t
    find_task(job, c, task, &t)
    t.sums = values + (0 if c.blocks.tiles_kept else c.blocks.chunks_at_once * c.values_size)
    rows = t.sums + c.sums_size
    buffer = rows + c.rows_size
    bank = buffer + c.buffer_size
    filters += (t.g * count_blocks(job.outputs, c.filters.width) + t.o // c.filters.width) * c.filters.strip
    source += t.g * c.x.group
    filter += t.g * c.filters.w.group + (job.first_output + t.o) * c.filters.w.batch
    for span in range(count_blocks(chunks, c.blocks.chunks_at_once)):
        first = span * c.blocks.chunks_at_once
        last = min(chunks, first + c.blocks.chunks_at_once)
        if first > 0 and is_stopped(c.workers):
            return 0
        if c.blocks.tiles_kept:
            values = job.shared + c.first_value
            values += ((t.g * c.tiling.box_count + box_index) * chunks + first) * c.values_size
        else:
            for i in range(first, last):
                transform_chunk(c, &t.tiles, source, t.groups, i, values + (i - first) * c.values_size, window, buffer)
        if not c.blocks.filters_kept:
            c0 = first % c.chunks * c.blocks.chunk
            part.steps, part.added, part.step_channels = c.tiling.steps + first // c.chunks, 1, 0
            part.channels, part.outputs = min(c.blocks.chunk, c.channels - c0), t.outputs
            transform_filters(&c.filters, part, filter + c0 * c.filters.w.channel, bank, buffer, &seen.operand)
        multiply_points(c, &t, values, filters if c.blocks.filters_kept else bank, first, last)
    return store_tiles(c, &t.tiles, t.sums, <stored *>job.target + t.g * c.y.group
                       + (job.first_output + t.o) * c.y.channel, t.groups * t.outputs, rows, buffer)
