"""One walk over three tensors, cut into boxes: the common parameters of fprop, dgrad and wgrad."""

from libc.stdint cimport int32_t, int64_t, uintptr_t

from base.memory cimport count_blocks, in_lines
from base.problem cimport conv_walk
from base.scalar cimport bf16, compute, scalar
from base.tensor cimport Tensor, count_taps, describe_filter, describe_tensor
from copy.pairs cimport words_of
from copy.window cimport SHARING_BYTES, Box, Window, count_boxes, is_in_place, lay_out, lay_over
from direct.blocks cimport Blocks, Step, window_of
from direct.exact cimport is_padded
from tile.ukernel cimport LINE_BYTES, MATRICES, VECTOR_BYTES, strip_width, way_of, whole_vectors

cdef enum:
    # Limits on strides and sizes in bytes. A plan cannot apply them, because it holds for all strides with adjacent
    # positions or channels.
    LARGE_BYTES = 8 << 20  # a source of this size is not in the cache
    SAME_SETS_BYTES = 1024  # positions at multiples of this distance fall into few sets of the L1 cache

cdef struct Convolution:
    conv_walk walk
    Blocks blocks
    Window window
    Tensor x, w, y  # source, filter, target
    int64_t batch, groups, channels, outputs, taps
    int64_t boxes[4]  # on the axes batch, depth, height, width
    int64_t box_count, output_blocks, bundles  # bundles of groups
    int64_t box_positions  # of a whole box
    int64_t window_size  # elements of scratch memory for the window
    bint padded  # some tap of some position lies outside the source
    bint in_place  # the source is its own window


cdef inline bint reads_in_place(
    const Convolution *c, const Step *step, bint sums_positions, compute kind
) noexcept nogil:
    """Whether the source itself can be the window, and this is faster than a copy.

    A plan holds for all strides, so conditions on strides are checked here.
    """
    cdef int64_t row = c.walk.axis[2].positions, box_row = step.axis[2].positions
    cdef bint scattered = c.x.channel != 1
    # Padding has to be copied as zeros. Phases share their window.
    if step.reads.copies or c.taps == 0 or c.padded or c.blocks.phases > 1:
        return False
    # wgrad with a stride, positions adjacent: a copy reads each cache line once, tiles would read it once per strip.
    if sums_positions and c.x.axis[2] == 1 and c.walk.axis[2].source_step > 1:
        return False
    # wgrad, channels adjacent, positions whose lines share cache sets: each tile would load them again. If the source
    # is too large for the nearer caches, this takes longer than a copy.
    if (sums_positions and c.x.channel == 1 and c.walk.axis[2].source_step == 1
            and c.x.axis[2] * <int64_t>sizeof(compute) % SAME_SETS_BYTES == 0
            and c.batch * c.x.batch * <int64_t>sizeof(compute) > LARGE_BYTES):
        return False
    if sums_positions:
        scattered = c.x.axis[2] * c.walk.axis[2].source_step * <int64_t>sizeof(compute) % SHARING_BYTES == 0
    # Tiles read whole vectors, and there may be no memory behind a tensor's last element.
    if c.blocks.positions_across and (row != whole_vectors(row, kind) or box_row != whole_vectors(box_row, kind)):
        return False
    # Tiles of narrow vectors use a cache line more than once. So neighbours along the depth must lie in the same line
    # or in different cache sets.
    if VECTOR_BYTES < LINE_BYTES and not c.blocks.positions_across and scattered:
        return False
    return is_in_place(&c.window, &c.walk, &c.x, c.blocks.positions_across, sizeof(compute))


cdef inline bint has_words(const Convolution *c, const scalar *source) noexcept nogil:
    """Whether each pair of channels of each chunk is an aligned 32-bit word of the source."""
    cdef const Tensor *x = &c.x
    cdef int64_t steps = x.batch | x.group | x.axis[0] | x.axis[1] | x.axis[2]
    if c.channels % 2 or c.blocks.chunk % 2 or steps % 2:
        return False
    return x.channel == 1 and <uintptr_t>source % sizeof(float) == 0


cdef inline bint holds_channels(const Convolution *c, const Step *step, bint sums_positions) noexcept nogil:
    """Whether neighbours in a window are channels, not positions."""
    if sums_positions:  # the tile registers transpose channels that are adjacent
        return (c.x.channel == 1 or way_of(c.blocks.pairs) == MATRICES) and step.reads.channels_inside
    return not c.blocks.positions_across


cdef inline void describe_convolution(
    Convolution *c, const scalar[:, :, :, :, :, :] source, const scalar[:, :, :, :, :, :] filter,
    const scalar[:, :, :, :, :, :] target, const Step *step, const Blocks *blocks,
    bint sums_positions, compute kind,
) noexcept nogil:
    """Set everything about one step. ``sums_positions`` is true in wgrad, whose tiles have positions as depth."""
    c.walk = step.walk
    c.blocks = blocks[0]
    describe_tensor(&c.x, source.strides, sizeof(scalar))
    describe_filter(&c.w, filter.strides, sizeof(scalar))
    describe_tensor(&c.y, target.strides, sizeof(scalar))
    c.batch, c.groups, c.channels, c.outputs = source.shape[0], source.shape[1], filter.shape[2], filter.shape[1]
    if blocks.groups > 1 and c.channels == 1:  # a bundle's channels are one channel of each group
        c.x.channel = c.x.group
    if blocks.groups > 1 and c.outputs == 1:
        c.y.channel = c.y.group
    c.taps = count_taps(&c.walk)
    c.padded = is_padded(&c.walk)
    window_of(&c.window, blocks, step)
    if blocks.pairs and not sums_positions:
        c.window.channels, c.window.pairs = words_of(c.window.channels, True), True
    c.box_count = count_boxes(&c.window, &c.walk, c.batch, c.boxes)
    c.output_blocks = count_blocks(c.outputs, blocks.outputs)
    c.bundles = count_blocks(c.groups, blocks.groups)
    c.box_positions = blocks.images * step.axis[0].positions * step.axis[1].positions * step.axis[2].positions
    c.window_size = lay_out(&c.window, holds_channels(c, step, sums_positions), sizeof(compute)) + strip_width(kind)
    c.window_size = in_lines(c.window_size * sizeof(compute)) // sizeof(compute)
    c.in_place = False
    if scalar is compute:
        c.in_place = reads_in_place(c, step, sums_positions, kind)
    elif scalar is bf16:
        if c.window.pairs and has_words(c, &source[0, 0, 0, 0, 0, 0]):
            c.in_place = reads_in_place(c, step, sums_positions, kind)
    if c.in_place:
        c.window_size = 0
        lay_over(&c.window, &c.walk, &c.x)


cdef inline int64_t tables_size(const Convolution *c) noexcept nogil:
    """Bytes of a thread's offset tables: positions of a box, and (tap, channel) of a chunk."""
    return in_lines((c.box_positions + c.taps * c.blocks.chunk) * sizeof(int32_t))


cdef inline void row_steps(const Box *box, int64_t row, int64_t *step) noexcept nogil:
    """Steps between neighbours on each axis, if the positions of a box are consecutive rows of ``row`` elements."""
    cdef int axis
    step[3] = row
    for axis in range(3, 0, -1):
        step[axis - 1] = step[axis] * box.count[axis]


cdef inline void target_steps(const Convolution *conv, int64_t *step) noexcept nogil:
    """Offsets in the target between neighbouring positions, on each axis."""
    cdef int axis
    step[0] = conv.y.batch
    for axis in range(3):
        step[1 + axis] = conv.walk.axis[axis].target_step * conv.y.axis[axis]


cdef inline int64_t adjacent_rows(const Convolution *c, const Box *box) noexcept nogil:
    """Rows of a box that are evenly spaced in the target as if they were one: all rows of its height, or one."""
    cdef int64_t length = box.count[3] * c.walk.axis[2].target_step * c.y.axis[2]
    return max(<int64_t>1, box.count[2]) if c.walk.axis[1].target_step * c.y.axis[1] == length else 1
