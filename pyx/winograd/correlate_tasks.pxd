"""What all tasks of fprop or dgrad by Winograd's algorithm share: steps whose sums are added, and where values are."""

from libc.stdint cimport int32_t, int64_t

from base.memory cimport count_blocks, in_lines
from base.tensor cimport Tensor, describe_filter, describe_tensor
from copy.window cimport Window
from parallel.tasks cimport team
from tile.ukernel cimport whole_vectors
from winograd.filter cimport FilterBank, describe_filters, filter_scratch
from winograd.tiling cimport TileBlocks, TileStep, Tiling, describe_tiling, lay_out_tiles, row_size
from winograd.transform cimport LINE_LANES, WINOGRAD_LANES, Transform, describe_transform, stored, tile_size

cdef enum:
    RESULT_CHANNELS = 32  # transformed back together: a row of tiles of them stays in the L1 cache

cdef enum:  # the loops of a round of parts, one after the other
    TILES, FILTERS, PRODUCTS, LOOPS

cdef struct TiledCorrelation:  # of a part of the result
    int64_t[LOOPS] tasks
    int64_t first_filter, first_value  # elements before those of this part, among the shared ones
    Tiling tiling
    team *workers
    TileBlocks blocks
    FilterBank filters
    Transform source, result
    Window window
    Tensor x, y
    int64_t groups, channels, outputs
    int64_t bundles  # of groups
    int64_t added, chunks  # of steps, and of the channels of each
    int64_t value_point, sum_point, sum_row  # elements from point to point, and from tile to tile
    int64_t window_size, values_size, sums_size, rows_size, buffer_size, bank_size  # elements
    int64_t scratch  # of one thread, in bytes
    const int32_t *tile_rows  # multiples of the chunk
    const int32_t *channel  # 0, 1, 2 ..
    const int32_t *filter_rows  # multiples of the strip's width

cdef struct TiledJob:  # what all tasks of a loop share, beside the source
    const TiledCorrelation *parts
    int loop
    const void *filter
    void *target
    float *filters  # transformed
    float *shared  # transformed tiles, for all blocks of outputs
    int64_t first_output, outputs  # of each group, that are computed now


cdef inline void describe_tiled(
    TiledCorrelation *c, const stored[:, :, :, :, :, :] source, const stored[:, :, :, :, :, :] filter,
    const stored[:, :, :, :, :, :] target, const TileStep *step, const TileBlocks *blocks,
) noexcept nogil:
    cdef float kind = 0
    cdef int64_t taps[3]
    cdef int64_t none[3]
    cdef int64_t values
    cdef int axis
    for axis in range(3):
        taps[axis], none[axis] = step.walk.axis[axis].taps, 0
    c.blocks = blocks[0]
    describe_tiling(&c.tiling, step, blocks.images, source.shape[0])
    describe_transform(&c.source, step.points, step.points, step.points, step.outputs, 0)
    describe_transform(&c.filters.transform, step.points, taps, step.points, none, 1)
    describe_transform(&c.result, step.points, step.points, step.outputs, none, 2)
    describe_tensor(&c.x, source.strides, sizeof(stored))
    describe_filter(&c.filters.w, filter.strides, sizeof(stored))
    describe_tensor(&c.y, target.strides, sizeof(stored))
    c.added = step.added
    c.groups, c.bundles = source.shape[1], count_blocks(source.shape[1], blocks.groups)
    c.channels, c.outputs = filter.shape[2], filter.shape[1]
    c.chunks = count_blocks(c.channels, blocks.chunk)
    c.filters.channels = c.added * c.channels if blocks.filters_kept else blocks.chunk
    describe_filters(&c.filters, step, &filter.shape[3], c.tiling.point_count, c.outputs)
    c.window_size = lay_out_tiles(&c.window, &c.tiling, &c.source, blocks.chunk)
    c.value_point = c.tiling.box_tiles * blocks.chunk + LINE_LANES
    c.sum_row = whole_vectors(blocks.outputs, kind)
    c.sum_point = c.tiling.box_tiles * c.sum_row + LINE_LANES
    c.values_size = c.tiling.point_count * c.value_point
    c.sums_size = c.tiling.point_count * c.sum_point
    c.rows_size = c.result.given[0] * c.result.given[1] * c.result.given[2] * c.tiling.tiles[2] * RESULT_CHANNELS
    c.buffer_size = max(row_size(&c.tiling, &c.source), tile_size(&c.result, RESULT_CHANNELS // WINOGRAD_LANES))
    # One buffer serves all transforms, the filters' included.
    c.buffer_size = max(c.buffer_size, filter_scratch(&c.filters))
    c.bank_size = 0 if blocks.filters_kept else count_blocks(blocks.outputs, c.filters.width) * c.filters.strip
    values = 0 if blocks.tiles_kept else blocks.chunks_at_once * c.values_size
    c.scratch = c.window_size + values + c.sums_size + c.rows_size + c.buffer_size + c.bank_size
    c.scratch = in_lines(c.scratch * sizeof(float))
