"""What all tasks of wgrad share: its blocks, and the target as panels that tiles take their columns from.

    panel       [strip of o][p][o]      or the target itself, where its channels are adjacent and few rows read it
    sums        [t][c][o], [c][t][o]    of one block of the filter
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t
from libc.stdlib cimport llabs
from libc.string cimport memset

from base.memory cimport count_blocks, in_lines
from base.scalar cimport compute, scalar
from base.tensor cimport taps_are_adjacent, target_offset
from copy.load_store cimport copy_strips, load_block
from copy.pairs cimport join_lines, load_paired_rows, words_of
from copy.window cimport Box, position_steps
from direct.blocks cimport Blocks, Step, padded_row
from direct.walk cimport Convolution, adjacent_rows, describe_convolution, row_steps, tables_size, target_steps
from direct.zones cimport Zone, list_places
from parallel.tasks cimport team
from tile.ukernel cimport LINE_BYTES, TILE_VECTORS, VECTOR_BYTES, packed_width, strip_width, whole_columns

cdef enum:
    FINISHED_BYTES = 4096  # of sums whose slices a task adds, which it reads from the caches of other cores

cdef struct Accumulation:
    Convolution conv
    team *workers
    int64_t chunk_blocks, block_count, bundle_count
    int64_t window_elements
    int64_t row  # elements between rows of sums
    int64_t strip, panel_strip  # elements of a line of the panel, and from one strip to the next
    int64_t panel_size, sums_size, scratch  # of one thread: elements, and bytes in all
    int64_t piece_channels, pieces  # of a block, whose slices a task adds
    bint panel_in_place  # the target itself serves as the panel
    bint taps_inside  # rows of sums are (channel, tap), which lie near each other where positions are adjacent
    bint taps_adjacent  # in the filter, and nothing else is

cdef struct FilterBlock:  # of the filter of group g: output channels o0 .. , input channels c0 ..
    int64_t g, o0, outputs, c0, channels
    int64_t tap_rows, channel_rows  # of sums, between neighbours


cdef inline void part_of(const Accumulation *c, int64_t block, FilterBlock *part) noexcept nogil:
    cdef const Convolution *conv = &c.conv
    part.o0 = block % conv.output_blocks * conv.blocks.outputs
    part.outputs = min(conv.blocks.outputs, conv.outputs - part.o0)
    part.c0 = block // conv.output_blocks % c.chunk_blocks * conv.blocks.chunk
    part.channels = min(conv.blocks.chunk, conv.channels - part.c0)
    part.g = block // (conv.output_blocks * c.chunk_blocks)
    part.tap_rows = 1 if c.taps_inside else part.channels
    part.channel_rows = conv.taps if c.taps_inside else 1


cdef inline int64_t row_lines(const Accumulation *c, const Box *box) noexcept nogil:
    """Lines of the panel for a row of positions, or pairs of them."""
    return words_of(box.count[3], c.conv.blocks.pairs)


cdef inline void pair_window(const Accumulation *c, compute *window) noexcept nogil:
    """Join each element with the one that the next position sees there."""
    join_lines(window, window, window + c.conv.window.axis[2].step * c.conv.window.pitch[2], c.window_elements)


cdef inline void pack_positions(
    const Accumulation *c, const scalar *target, int64_t step, int64_t positions, int64_t outputs, compute *panel
) noexcept nogil:
    """Evenly spaced positions of all strips; whole strips of adjacent channels position by position, as they lie."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t j = 0, count
    cdef compute *strip
    if scalar is compute:
        if conv.y.channel == 1 and not conv.blocks.pairs and outputs >= strip_width(panel[0]):
            j = outputs - outputs % c.strip
            copy_strips(panel, c.panel_strip * sizeof(compute), target, step * sizeof(scalar), positions, j // c.strip)
    while j < outputs:
        count, strip = min(c.strip, outputs - j), panel + j // c.strip * c.panel_strip
        if conv.blocks.pairs:
            load_paired_rows(strip, c.strip, target + j * conv.y.channel, step, conv.y.channel, positions, count)
        else:
            load_block(strip, c.strip, 1, target + j * conv.y.channel, step, conv.y.channel, positions, count)
        j += c.strip


cdef inline void pack_target(
    const Accumulation *c, const Box *box, const scalar *target, int64_t outputs, compute *panel
) noexcept nogil:
    """Strips of output channels: panel[strip][p][o], p a position or a pair; a tile's last columns are zeros."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t n, d, h, lines = row_lines(c, box), last = outputs % c.strip
    cdef int64_t rows = box.count[0] * box.count[1] * box.count[2]
    cdef int64_t step = conv.walk.axis[2].target_step * conv.y.axis[2]
    cdef int64_t together = 1 if conv.blocks.pairs and box.count[3] % 2 else adjacent_rows(conv, box)
    if 0 < last < whole_columns(last, panel[0]):
        memset(panel + outputs // c.strip * c.panel_strip, 0, rows * lines * c.strip * sizeof(compute))
    for n in range(box.count[0]):
        for d in range(box.count[1]):
            for h in range(box.count[2] // together):
                pack_positions(
                    c, target + target_offset(&conv.y, &conv.walk, box.begin[0] + n, box.begin[1] + d,
                                              box.begin[2] + h * together, box.begin[3]),
                    step, together * box.count[3], outputs, panel)
                panel += together * lines * c.strip


cdef inline bint is_panel(const Accumulation *c, const Step *step, compute kind) noexcept nogil:
    """Whether the target can be read in the place of a panel, and that is faster.

    Tiles may read no more than its channels, at offsets that must fit into 32 bits. A panel's lines are adjacent,
    which tiles gain from, the more of them read it, and the narrower it is: at most as many rows as a line has bytes
    do without. From memory, narrow tiles would read a line of each position for one strip after the other.
    """
    cdef const Convolution *conv = &c.conv
    cdef int axis
    cdef int64_t reach = conv.blocks.images * llabs(conv.y.batch)
    for axis in range(3):
        reach += step.axis[axis].positions * conv.walk.axis[axis].target_step * llabs(conv.y.axis[axis])
    if conv.blocks.target_in_memory and VECTOR_BYTES < LINE_BYTES and conv.outputs > strip_width(kind):
        return False
    return (not conv.blocks.pairs and conv.y.channel == 1 and conv.outputs == whole_columns(conv.outputs, kind)
            and conv.taps * conv.blocks.chunk <= TILE_VECTORS * VECTOR_BYTES and reach < INT32_MAX)


cdef inline void list_tables(
    const Accumulation *c, const Zone *zone, const Box *lines, int32_t *position, int32_t *line
) noexcept nogil:
    """Where a zone's positions, or every second one, are in the window, and their lines in the panel, or the target."""
    cdef int64_t step[4]
    position_steps(&c.conv.window, step)
    if c.conv.blocks.pairs:
        step[3] *= 2
    list_places(zone, lines, 0, step, position)
    if c.panel_in_place:
        target_steps(&c.conv, step)
    else:
        row_steps(lines, c.strip, step)
    list_places(zone, lines, 0, step, line)


cdef inline void describe_accumulation(
    Accumulation *c, const scalar[:, :, :, :, :, :] source, const scalar[:, :, :, :, :, :] filter,
    const scalar[:, :, :, :, :, :] target, const Step *step, const Blocks *blocks, compute kind,
) noexcept nogil:
    """Everything about one step."""
    cdef int64_t shift, row
    describe_convolution(&c.conv, source, filter, target, step, blocks, True, kind)
    c.window_elements = c.conv.window.batch_pitch * c.conv.window.images
    if c.conv.window.channel_pitch != 1:
        c.window_elements = c.conv.window.channel_pitch * c.conv.window.channels
    if blocks.pairs:
        shift = c.conv.window.axis[2].step * c.conv.window.pitch[2]
        c.conv.window_size += in_lines(shift * sizeof(compute)) // sizeof(compute)
        row = step.axis[2].positions
        c.conv.box_positions = c.conv.box_positions // row * (row + row % 2)
        c.conv.padded = True  # what fills up a pair may be infinite, and is multiplied by zero
    c.chunk_blocks = count_blocks(c.conv.channels, blocks.chunk)
    c.block_count = c.conv.groups * c.chunk_blocks * c.conv.output_blocks
    c.bundle_count = count_blocks(c.block_count, blocks.groups)
    c.row = padded_row(blocks.outputs, kind)
    c.taps_adjacent = c.conv.taps > 1 and c.conv.w.batch != 1 and taps_are_adjacent(&c.conv.w, &c.conv.walk)
    c.taps_inside = c.conv.window.channel_pitch != 1
    c.panel_in_place = False
    if scalar is compute:
        c.panel_in_place = is_panel(c, step, kind)
    c.strip = packed_width(blocks.outputs, kind)
    # A line more than they have, else strips would share their place in the cache while all are written.
    c.panel_strip = in_lines(words_of(c.conv.box_positions, blocks.pairs) * c.strip * sizeof(compute)) + LINE_BYTES
    c.panel_strip = c.panel_strip // sizeof(compute)
    c.panel_size = count_blocks(blocks.outputs, c.strip) * c.panel_strip
    if c.panel_in_place:
        c.panel_strip, c.panel_size = c.strip, 0
    c.sums_size = in_lines(c.conv.taps * blocks.chunk * c.row * sizeof(compute)) // sizeof(compute)
    c.piece_channels = max(FINISHED_BYTES // (c.row * c.conv.taps * <int64_t>sizeof(compute)), 1)
    c.pieces = count_blocks(min(blocks.chunk, c.conv.channels), c.piece_channels)
    c.scratch = (c.conv.window_size + c.panel_size + blocks.groups * c.sums_size) * sizeof(compute)
    c.scratch += tables_size(&c.conv)
    # Where lines are, and the rows of a zone and their sums.
    c.scratch += in_lines(c.conv.box_positions * sizeof(int32_t))
    c.scratch += in_lines(c.conv.taps * blocks.chunk * (sizeof(int32_t) + sizeof(int64_t))) + 64
