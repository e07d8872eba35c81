"""What all tasks of wgrad by Winograd's algorithm share: boxes of tiles, blocks of the filter, and where values are.

    values      [group][box][chunk of input channels][point][line of channels][tile][channel]
    gradients   [group][box][block of output channels][point][strip of outputs][tile][output]
    sums        [point][group][channel][output]       of one block of the filter, in the groups of a bundle

Tiles are the depth of the products. So what a register tile takes of neighbours lies side by side: in a row of all
channels, these would be found in few sets of the cache.
"""

from libc.stdint cimport int32_t, int64_t

from base.memory cimport count_blocks, in_lines
from base.tensor cimport Tensor, count_taps, describe_filter, describe_tensor, taps_are_adjacent
from copy.window cimport Box, Window
from parallel.tasks cimport team
from tile.ukernel cimport strip_width, whole_vectors
from winograd.tiling cimport TileBlocks, TileStep, Tiling, describe_tiling, is_held, lay_out_tiles, row_size
from winograd.transform cimport (
    LINE_LANES, WINOGRAD_LANES, Transform, describe_transform, magnitudes, stored, tile_size, transform_one,
    winograd_note,
)

cdef enum:
    FINISHED_CHANNELS = 16  # of the filter that are transformed back together

cdef struct TiledAccumulation:
    Tiling tiling
    team *workers
    TileBlocks blocks
    Transform source, target, result
    Window window, target_window
    Tensor x, w, y
    int64_t groups, channels, outputs, taps, chunk_blocks, output_blocks, parts
    int64_t pieces  # FilterRows of a block, all its groups' counted
    int64_t target_width  # outputs of a strip
    int64_t source_point, target_point, sum_point, source_line, target_strip  # elements between neighbours
    int64_t target_row  # elements of the sums from channel to channel
    int64_t window_size, values_size, target_size, sums_size, piece_size, scratch  # elements; the last in bytes
    bint natural  # the filter's taps, and then its input channels, are adjacent in memory
    const int32_t *channel  # where the channels of a chunk are
    const int32_t *source_tiles  # multiples of a line
    const int32_t *target_tiles  # multiples of a strip's width

cdef struct FilterRows:  # of a block of the filter, transformed back together: channels from c0 on of its group g
    int64_t g, c0, channels

cdef struct TileFilterBlock:  # the filter of groups g ..: in each of them, output channels o0 .., input channels c0 ..
    int64_t g, groups, o0, outputs, c0, channels


cdef inline void part_of_tiles(const TiledAccumulation *c, int64_t index, TileFilterBlock *part) noexcept nogil:
    part.o0 = index % c.output_blocks * c.blocks.outputs
    part.outputs = min(c.blocks.outputs, c.outputs - part.o0)
    part.c0 = index // c.output_blocks % c.chunk_blocks * c.blocks.chunk
    part.channels = min(c.blocks.chunk, c.channels - part.c0)
    part.g = index // (c.output_blocks * c.chunk_blocks) * c.blocks.groups
    part.groups = min(c.blocks.groups, c.groups - part.g)


cdef inline void find_piece(
    const TiledAccumulation *c, const TileFilterBlock *part, int64_t index, FilterRows *piece
) noexcept nogil:
    cdef int64_t of_group = c.pieces // c.blocks.groups
    piece.g, piece.c0 = index // of_group, index % of_group * FINISHED_CHANNELS
    piece.channels = min(<int64_t>FINISHED_CHANNELS, part.channels - piece.c0) if piece.g < part.groups else 0


cdef inline void transform_piece(
    const TiledAccumulation *c, const TileFilterBlock *part, const FilterRows *piece, const float *sums, float *block,
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
    c.groups, c.channels, c.outputs, c.taps = source.shape[1], filter.shape[2], filter.shape[1], count_taps(&step.walk)
    c.chunk_blocks, c.output_blocks = count_blocks(c.channels, blocks.chunk), count_blocks(c.outputs, blocks.outputs)
    c.parts = count_blocks(c.groups, blocks.groups) * c.chunk_blocks * c.output_blocks
    c.pieces = blocks.groups * count_blocks(min(blocks.chunk, c.channels), FINISHED_CHANNELS)
    c.window_size = lay_out_tiles(&c.window, &c.tiling, &c.source, blocks.chunk)
    c.target_row = whole_vectors(min(blocks.outputs, c.outputs), kind)
    c.window_size = max(c.window_size, lay_out_tiles(&c.target_window, &c.tiling, &c.target, blocks.outputs))
    c.target_width = count_blocks(min(blocks.outputs, strip_width(kind)), LINE_LANES) * LINE_LANES
    c.source_line, c.target_strip = c.tiling.box_tiles * LINE_LANES, c.tiling.box_tiles * c.target_width
    c.source_point = count_blocks(blocks.chunk, LINE_LANES) * c.source_line + LINE_LANES
    c.target_point = count_blocks(blocks.outputs, c.target_width) * c.target_strip + LINE_LANES
    c.sum_point = blocks.chunk * c.target_row + LINE_LANES
    c.values_size = c.tiling.point_count * c.source_point
    c.target_size = c.tiling.point_count * c.target_point
    c.sums_size = c.tiling.point_count * c.sum_point
    c.scratch = c.window_size + (0 if blocks.tiles_kept else c.values_size + c.target_size)
    c.scratch += max(row_size(&c.tiling, &c.source), row_size(&c.tiling, &c.target))
    # Behind the sums, after the products: a piece, and the buffer of the transform.
    c.piece_size = FINISHED_CHANNELS * c.taps * c.target_row
    t = c.piece_size + tile_size(&c.result, c.target_row // WINOGRAD_LANES)
    c.scratch = in_lines((c.sums_size + max(c.scratch, t)) * sizeof(float))
    c.natural = c.w.channel == c.taps and c.w.batch != 1 and taps_are_adjacent(&c.w, &step.walk)
    c.natural = c.natural and is_held(step, c.taps - 1)


cdef inline void note_window(
    magnitudes *seen, const Window *m, const Box *elements, const float *window, int64_t channels
) noexcept nogil:
    cdef int64_t n, d, h, w
    cdef const float *row
    for n in range(elements.count[0]):
        for d in range(elements.count[1]):
            for h in range(elements.count[2]):
                row = window + n * m.batch_pitch + d * m.pitch[0] + h * m.pitch[1]
                if channels == m.channels:
                    winograd_note(seen, row, elements.count[3] * channels)
                else:
                    for w in range(elements.count[3]):
                        winograd_note(seen, row + w * m.pitch[2], channels)
