"""Parameters that all tasks of fprop or dgrad share: a walk, its window, its blocks and the layout of its filter.

                        packed filter of a group
    channels across     [chunk][strip of o][t][c][o]
    positions across    [chunk][o][t][c]

With ``packs``, a task packs each strip of a chunk just before it multiplies by it, in a bank that stays in the L1
cache. If output channels are adjacent in the filter and positions are few, tiles read the filter in place instead.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t
from libc.stdlib cimport llabs

from base.memory cimport count_blocks, in_lines, multiples, transposed_multiples
from base.problem cimport conv_axis, conv_filter
from base.scalar cimport compute, scalar
from base.tensor cimport filter_offset, find_tap, taps_are_adjacent
from copy.pairs cimport words_of
from copy.stream cimport holds_lines
from copy.window cimport Box
from direct.blocks cimport PACKS, Blocks, Step, padded_row
from direct.walk cimport Convolution, describe_convolution, tables_size
from parallel.tasks cimport team
from tile.ukernel cimport LINE_BYTES, VECTOR_BYTES, packed_width, whole_columns, whole_strips, whole_vectors

cdef enum:
    PAGE_BYTES = 4096  # of memory; compared with strides, which a plan does not know

cdef struct Correlation:
    Convolution conv
    bint packs_only
    const Correlation *packing  # the step whose packed filter it uses: itself, or the step whose walk contains its own
    int64_t strip  # elements of a line of a packed strip
    int64_t filter_strips, filter_chunks  # strips of outputs and chunks of channels in a group's packed filter
    int64_t filter_outputs  # outputs of a group's packed filter, rounded up to whole strips
    int64_t filter_size  # elements of a group's packed filter
    int64_t bank_size  # elements of a strip of a chunk, if each task packs for itself
    bint strips_in_place  # tiles can read strips of the filter itself
    int64_t row  # elements between rows of a block of sums
    int64_t sums_size, scratch  # of one thread: elements of the sums, and bytes in all
    bint taps_adjacent  # tap t lies t elements behind the filter's first tap
    int64_t first_pack, first_task  # numbers of its first tasks; tasks of all steps are numbered consecutively
    int64_t packed  # offset of its packed filter
    team *workers
    int32_t *nonfinite  # whether a filter of any step may have a nonfinite value
    # Offset tables. Each has two forms: for a whole chunk of channels, and for the last, shorter chunk.
    int32_t *filter_rows  # [o]: row o of a packed filter across positions, o * taps * channels
    int32_t *last_filter_rows
    int32_t *filter_line  # [c * taps + t]: line of channel c and tap t in a packed strip
    int32_t *last_filter_line
    int32_t *filter_depth  # [t * channels + c]: tap t and channel c in a packed strip, or in a row across positions
    int32_t *last_filter_depth
    int32_t *filter_place  # [t * channels + c]: tap t and channel c in the filter itself
    int32_t *last_filter_place


cdef inline bint can_read_strips(const Correlation *c) noexcept nogil:
    """Whether tiles can read strips of the filter itself: outputs are adjacent, and offsets fit into 32 bits."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t reach = conv.blocks.chunk * llabs(conv.w.channel)
    cdef const conv_axis *a
    cdef int axis
    for axis in range(3):
        a = &conv.walk.axis[axis]
        reach += max(conv_filter(a, 0), conv_filter(a, a.taps)) * llabs(conv.w.axis[axis])
    return (conv.w.batch == 1 or conv.outputs == 1) and reach < INT32_MAX


cdef inline bint holds_vectors(
    const Correlation *c, int64_t columns, int64_t channels_after, compute kind
) noexcept nogil:
    """Whether whole vectors of a strip end within the filter. ``channels_after`` channels follow the chunk."""
    cdef int64_t beyond = whole_columns(columns, kind) - columns
    return beyond == 0 or beyond <= channels_after * c.conv.w.channel


cdef inline void describe_correlation(
    Correlation *c, const scalar[:, :, :, :, :, :] source, const scalar[:, :, :, :, :, :] filter,
    const scalar[:, :, :, :, :, :] target, const Step *step, const Blocks *blocks, compute kind,
) noexcept nogil:
    """Set everything about one step except memory and tables."""
    cdef int64_t rows
    describe_convolution(&c.conv, source, filter, target, step, blocks, False, kind)
    c.packs_only = step.packed == PACKS
    c.strip = packed_width(c.conv.outputs, kind)
    c.filter_strips = count_blocks(c.conv.outputs, c.strip)
    c.filter_chunks = count_blocks(c.conv.channels, blocks.chunk)
    c.filter_outputs = c.conv.outputs if blocks.positions_across else whole_strips(c.conv.outputs, kind)
    c.filter_size = c.conv.channels * c.conv.taps * c.filter_outputs
    c.bank_size = 0
    if blocks.packs:
        c.filter_size = 0
        c.bank_size = in_lines(blocks.chunk * c.conv.taps * c.strip * sizeof(compute)) // sizeof(compute)
    c.strips_in_place = False
    if scalar is compute:
        c.strips_in_place = step.reads.strips and can_read_strips(c)
    c.taps_adjacent = c.conv.w.batch != 1 and (c.conv.taps > 1 or c.conv.taps == c.conv.w.channel == 1)
    c.taps_adjacent = c.taps_adjacent and taps_are_adjacent(&c.conv.w, &c.conv.walk)
    if blocks.positions_across:
        rows = blocks.groups * blocks.outputs
        c.row = padded_row(
            c.conv.box_positions // step.axis[2].positions * whole_vectors(step.axis[2].positions, kind), kind
        )
    else:
        rows = c.conv.box_positions
        c.row = padded_row(blocks.groups * blocks.outputs, kind)
    c.sums_size = in_lines(rows * c.row * sizeof(compute)) // sizeof(compute)
    c.scratch = (c.conv.window_size + c.sums_size + c.bank_size) * sizeof(compute) + tables_size(&c.conv)
    c.scratch += in_lines(c.conv.box_positions * sizeof(int64_t))  # CorrelateTask.places


cdef inline int64_t filter_tables_size(const Correlation *c) noexcept nogil:
    """Bytes that ``make_filter_tables`` needs."""
    cdef int64_t depth = c.conv.taps * c.conv.blocks.chunk
    return in_lines(((6 if c.strips_in_place else 4) * depth + 2 * c.conv.blocks.outputs) * sizeof(int32_t))


cdef inline void filter_places(const Convolution *conv, int32_t *places, int64_t channels) noexcept nogil:
    """places[t * channels + c] = offset of tap t and channel c in the filter."""
    cdef int64_t t, c, tap
    for t in range(conv.taps):
        tap = filter_offset(&conv.w, &conv.walk, t)
        for c in range(channels):
            places[t * channels + c] = <int32_t>(tap + c * conv.w.channel)


cdef inline int64_t packed_tap(const Correlation *c, int64_t t) noexcept nogil:
    """The number of tap t in the step whose packed filter is used."""
    cdef int64_t tap[3]
    cdef int64_t packed = 0
    cdef const conv_axis *a
    cdef const conv_axis *b
    cdef int axis
    find_tap(&c.conv.walk, t, tap)
    for axis in range(3):
        a = &c.conv.walk.axis[axis]
        b = &c.packing.conv.walk.axis[axis]
        packed = packed * b.taps + tap[axis] + (a.filter_begin - b.filter_begin) // b.filter_step
    return packed


cdef inline void filter_lines(const Correlation *c, int32_t *lines, int64_t channels, int64_t width) noexcept nogil:
    """lines[t * channels + c] = offset of tap t and channel c in a packed strip."""
    cdef int64_t t, i, first, pitch = 1 if c.conv.blocks.positions_across else width
    if c.packing == c:
        multiples(lines, pitch, c.conv.taps * channels)
        return
    for t in range(c.conv.taps):
        first = packed_tap(c, t) * channels
        for i in range(channels):
            lines[t * channels + i] = <int32_t>((first + i) * pitch)


cdef inline void make_filter_tables(Correlation *c, char *memory, compute kind) noexcept nogil:
    cdef const Convolution *conv = &c.conv
    cdef int64_t chunk = conv.blocks.chunk, outputs = conv.blocks.outputs, rest = conv.channels % chunk
    cdef int64_t width = c.strip
    c.filter_rows = <int32_t *>memory
    c.last_filter_rows = c.filter_rows + outputs
    c.filter_depth = c.last_filter_rows + outputs
    c.last_filter_depth = c.filter_depth + conv.taps * chunk
    c.filter_line = c.last_filter_depth + conv.taps * chunk
    c.last_filter_line = c.filter_line + conv.taps * chunk
    multiples(c.filter_rows, c.packing.conv.taps * chunk, outputs)
    multiples(c.last_filter_rows, c.packing.conv.taps * rest, outputs)
    filter_lines(c, c.filter_depth, words_of(chunk, conv.blocks.pairs), width)
    filter_lines(c, c.last_filter_depth, words_of(rest, conv.blocks.pairs), width)
    transposed_multiples(c.filter_line, width, chunk, conv.taps)
    transposed_multiples(c.last_filter_line, width, rest, conv.taps)
    c.filter_place = c.last_filter_line + conv.taps * chunk
    c.last_filter_place = c.filter_place + conv.taps * chunk
    if c.strips_in_place:
        filter_places(conv, c.filter_place, chunk)
        filter_places(conv, c.last_filter_place, rest)


cdef inline bint takes_sums(const Correlation *c, const Box *box, int64_t outputs, compute kind) noexcept nogil:
    """Whether the target itself can hold the sums of a box.

    Tiles must store nothing beyond the block, and all positions of the box must be evenly spaced in the target. Across
    positions, rows must be whole vectors.
    """
    cdef const Convolution *conv = &c.conv
    cdef int axis
    cdef int64_t spaced = conv.walk.axis[2].target_step * conv.y.axis[2]
    cdef int64_t across = box.count[3] if conv.blocks.positions_across else outputs
    cdef int64_t stored = whole_vectors(across, kind) if conv.blocks.positions_across else whole_columns(across, kind)
    if conv.channels == 0 or conv.taps == 0 or across != stored:
        return False
    if (spaced if conv.blocks.positions_across else conv.y.channel) != 1:
        return False
    spaced *= box.count[3]
    for axis in range(1, -1, -1):
        if box.count[1 + axis] > 1 and conv.walk.axis[axis].target_step * conv.y.axis[axis] != spaced:
            return False
        spaced *= box.count[1 + axis]
    return box.count[0] == 1 or conv.y.batch == spaced


cdef inline bint takes_places(const Correlation *c, int64_t outputs, compute kind) noexcept nogil:
    """Whether the target can hold the sums of each position at any spacing: tiles store nothing beyond its channels."""
    cdef const Convolution *conv = &c.conv
    return (conv.channels > 0 and conv.taps > 0 and not conv.blocks.positions_across and conv.y.channel == 1
            and outputs == whole_columns(outputs, kind))


cdef inline bint stores_lines(
    const Correlation *c, const Box *box, int64_t outputs, const compute *sums
) noexcept nogil:
    """Whether tiles store only whole cache lines in the target, each line once, so that non-temporal stores pay.

    A tile across positions stores a line for each output. Non-temporal stores of vectors narrower than a line take 1.6x
    as long if outputs are whole pages apart.
    """
    cdef const Convolution *conv = &c.conv
    cdef int64_t line = LINE_BYTES // <int64_t>sizeof(compute)
    if conv.blocks.chunk < conv.channels or conv.y.group % line:
        return False
    if not conv.blocks.positions_across:
        return holds_lines(&conv.y, sums, outputs)
    if VECTOR_BYTES < LINE_BYTES and conv.y.channel * <int64_t>sizeof(compute) % PAGE_BYTES == 0:
        return False
    return box.count[3] % line == 0 and conv.y.channel % line == 0 and <int64_t>sums % LINE_BYTES == 0
