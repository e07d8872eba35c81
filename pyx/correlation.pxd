"""What all tasks of fprop or dgrad share: one walk, its window and blocks, and the filter packed for them.

                        packed filter of a group
    channels across     [chunk][strip of o][t][c][o]
    positions across    [chunk][o][t][c]
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from blocks cimport Blocks, Step, count_blocks, in_lines, padded_row, window_of
from copy cimport load_block, load_transposed
from exact cimport is_padded
from problem cimport conv_walk
from scalar cimport compute, scalar
from tensor cimport Tensor, count_taps, describe_filter, describe_tensor, filter_offset
from ukernel cimport strip_width, whole_strips, whole_vectors
from window cimport Box, Window, count_boxes, is_in_place, lay_out, lay_over

cdef struct Correlation:
    conv_walk walk
    Blocks blocks
    Window window
    Tensor x, w, y  # source, filter, target
    int64_t batch, groups, channels, outputs, taps
    int64_t boxes[4]
    int64_t box_count, output_blocks
    int64_t filter_strips, filter_outputs, filter_size  # of the packed filter of a group; the last in elements
    int64_t most_rows, row  # of a block of sums; elements between its rows
    int64_t box_positions
    int64_t window_size, sums_size, scratch  # of one thread: elements, elements, bytes in all
    bint padded
    bint in_place  # the source is its own window
    bint taps_adjacent  # in the filter: tap t is t elements from the first
    # Tables for a whole chunk of channels and for the last one:
    const int32_t *filter_rows  # multiples of its depth
    const int32_t *last_filter_rows
    const int32_t *filter_line  # where channel c and tap t, as number c * taps + t, are in a packed strip
    const int32_t *last_filter_line
    const int32_t *filter_depth  # multiples of the strip's width, or of one


cdef inline void describe_correlation(
    Correlation *c, const scalar[:, :, :, :, :, :] source, const scalar[:, :, :, :, :, :] filter,
    const scalar[:, :, :, :, :, :] target, const Step *step, const Blocks *blocks, compute kind,
) noexcept nogil:
    """Everything about one walk but its memory and tables."""
    cdef int64_t rows_of_box, t
    c.walk = step.walk
    c.blocks = blocks[0]
    describe_tensor(&c.x, source.strides, sizeof(scalar))
    describe_filter(&c.w, filter.strides, sizeof(scalar))
    describe_tensor(&c.y, target.strides, sizeof(scalar))
    c.batch, c.groups, c.channels, c.outputs = source.shape[0], source.shape[1], filter.shape[2], filter.shape[1]
    c.taps = count_taps(&c.walk)
    c.padded = is_padded(&c.walk)
    window_of(&c.window, blocks, step)
    c.window_size = lay_out(&c.window, not blocks.positions_across) + strip_width(kind)
    c.in_place = False
    if scalar is compute:
        # A vector is read whole: beyond the last one there may be no memory.
        if blocks.positions_across:
            c.in_place = step.axis[2].positions == whole_vectors(step.axis[2].positions, kind) and (
                c.walk.axis[2].positions == whole_vectors(c.walk.axis[2].positions, kind))
        else:
            c.in_place = not blocks.channelwise
        c.in_place = c.in_place and is_in_place(&c.window, &c.walk, &c.x, blocks.positions_across, sizeof(scalar))
    if c.in_place:
        c.window_size = 0
        lay_over(&c.window, &c.walk, &c.x)
    c.box_count = count_boxes(&c.window, &c.walk, c.batch, c.boxes)
    c.output_blocks = count_blocks(c.outputs, blocks.outputs)
    c.filter_strips = count_blocks(c.outputs, strip_width(kind))
    c.filter_outputs = c.outputs if blocks.positions_across else whole_strips(c.outputs, kind)
    c.filter_size = c.channels * c.taps * c.filter_outputs
    c.taps_adjacent = c.w.batch != 1 and (c.taps > 1 or c.taps == c.w.channel == 1)
    for t in range(c.taps):
        if filter_offset(&c.w, &c.walk, t) - filter_offset(&c.w, &c.walk, 0) != t:
            c.taps_adjacent = False
    rows_of_box = blocks.images * step.axis[0].positions * step.axis[1].positions
    c.box_positions = rows_of_box * step.axis[2].positions
    if blocks.positions_across:
        c.most_rows = blocks.outputs
        c.row = padded_row(rows_of_box * whole_vectors(step.axis[2].positions, kind), kind)
    else:
        c.most_rows = c.box_positions
        c.row = padded_row(blocks.outputs, kind)
    c.window_size = in_lines(c.window_size * sizeof(compute)) // sizeof(compute)
    c.sums_size = in_lines(c.most_rows * c.row * sizeof(compute)) // sizeof(compute)
    c.scratch = (c.window_size + c.sums_size) * sizeof(compute)
    c.scratch += in_lines((c.box_positions + c.taps * blocks.chunk) * sizeof(int32_t))


cdef inline void pack_filter(const Correlation *c, const scalar *filter, compute *packed, int64_t task) noexcept nogil:
    """A strip of output channels of one group."""
    cdef int64_t g = task // c.filter_strips, o0 = task % c.filter_strips * strip_width(packed[0])
    cdef int64_t outputs = min(strip_width(packed[0]), c.outputs - o0), c0 = 0, channels, t, i, depth
    cdef int64_t width = strip_width(packed[0]), together
    cdef const int32_t *line
    cdef compute *to
    cdef const scalar *of
    filter += g * c.w.group + o0 * c.w.batch
    packed += g * c.filter_size
    while c0 < c.channels and c.taps:
        channels = min(c.blocks.chunk, c.channels - c0)
        depth = c.taps * channels
        to = packed + c0 * c.taps * c.filter_outputs + o0 * depth
        of = filter + c0 * c.w.channel
        if not c.blocks.positions_across and outputs < width:
            memset(to, 0, depth * width * sizeof(compute))
        if c.blocks.positions_across:
            for t in range(c.taps):
                load_block(to + t * channels, depth, 1, of + filter_offset(&c.w, &c.walk, t), c.w.batch, c.w.channel,
                           outputs, channels)
        elif c.taps_adjacent:
            # Each output channel has its taps, or all (c, t), adjacent: transpose these many at once.
            line = c.filter_line if channels == c.blocks.chunk else c.last_filter_line
            together = channels if c.w.channel == c.taps else 1
            for i in range(channels // together):
                load_transposed(to + i * width, line, of + filter_offset(&c.w, &c.walk, 0) + i * c.w.channel, c.w.batch,
                                together * c.taps, outputs)
        else:
            for t in range(c.taps):
                load_block(to + t * channels * width, 1, width, of + filter_offset(&c.w, &c.walk, t), c.w.batch,
                           c.w.channel, outputs, channels)
        c0 += channels


cdef inline bint takes_sums(const Correlation *c, const Box *box, int64_t outputs, compute kind) noexcept nogil:
    """Whether the target itself can hold the sums of a box.

    Across channels: whole vectors of them, positions evenly spaced. Across positions: whole vectors of one row.
    """
    cdef int axis
    cdef int64_t spaced = c.walk.axis[2].target_step * c.y.axis[2] * box.count[3]
    if c.channels == 0 or c.taps == 0:
        return False
    if c.blocks.positions_across:
        return (spaced == box.count[3] and box.count[3] == whole_vectors(box.count[3], kind)
                and box.count[0] * box.count[1] * box.count[2] == 1)
    if c.y.channel != 1 or outputs != whole_vectors(outputs, kind):
        return False
    for axis in range(1, -1, -1):
        if box.count[1 + axis] > 1 and c.walk.axis[axis].target_step * c.y.axis[axis] != spaced:
            return False
        spaced *= box.count[1 + axis]
    return box.count[0] == 1 or c.y.batch == spaced
