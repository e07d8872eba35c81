"""Packing of the filter of fprop or dgrad, strip by strip of output channels (layout: correlate_tasks.pxd)."""

from libc.stdint cimport INT32_MAX, int32_t, int64_t
from libc.string cimport memset

from base.memory cimport count_blocks
from base.scalar cimport compute, scalar
from base.tensor cimport filter_offset
from copy.load_store cimport PIECE, load_block, load_transposed
from copy.pairs cimport join_lines, load_paired_rows, load_paired_taps, shift_line, words_of
from direct.correlate_tasks cimport Correlation
from direct.exact cimport are_finite_pairs, is_finite
from direct.walk cimport Convolution
from parallel.tasks cimport raise_flag

cdef enum:
    MOST_TAPS = 64  # of all steps that are packed together; the size of tables on the stack


cdef inline void join_channels(compute *packed, int64_t taps, int64_t channels, int64_t width) noexcept nogil:
    """Change a packed strip in place from [t][c][o] to [t][pair of c][o]."""
    cdef int64_t t, i, words = words_of(channels, True)
    for t in range(taps):
        for i in range(words):
            if 2 * i + 1 < channels:
                join_lines(packed + (t * words + i) * width, packed + (t * channels + 2 * i) * width,
                           packed + (t * channels + 2 * i + 1) * width, width)
            else:
                shift_line(packed + (t * words + i) * width, packed + (t * channels + 2 * i) * width, width)


cdef struct FilterPart:  # of a strip of ``outputs`` and a chunk of ``channels``: channels first .. first + count - 1
    int64_t outputs, channels, first, count


cdef inline void zero_part(const Correlation *c, FilterPart part, compute *packed) noexcept nogil:
    cdef int64_t t
    for t in range(c.conv.taps):
        memset(packed + (t * part.channels + part.first) * c.strip, 0, part.count * c.strip * sizeof(compute))


cdef inline void pack_part(
    const Correlation *c, FilterPart part, const scalar *filter, compute *packed
) noexcept nogil:
    """Pack a part. ``filter`` and ``packed`` point at the beginning of its strip. With pairs it has all channels."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t width = c.strip, depth = conv.taps * part.channels, together, t, i
    cdef const int32_t *line
    if not conv.blocks.positions_across and part.outputs < width:
        zero_part(c, part, packed)
    filter += part.first * conv.w.channel
    if conv.blocks.positions_across:
        for t in range(conv.taps):
            load_block(packed + t * part.channels + part.first, depth, 1,
                       filter + filter_offset(&conv.w, &conv.walk, t), conv.w.batch, conv.w.channel, part.outputs,
                       part.count)
    elif conv.blocks.pairs and c.taps_adjacent and 1 < conv.taps <= PIECE:
        load_paired_taps(packed, width, filter + filter_offset(&conv.w, &conv.walk, 0), conv.w.channel, conv.w.batch,
                         conv.taps, part.channels, part.outputs)
    elif conv.blocks.pairs:
        for t in range(conv.taps):
            load_paired_rows(packed + t * words_of(part.channels, True) * width, width,
                             filter + filter_offset(&conv.w, &conv.walk, t), conv.w.channel, conv.w.batch,
                             part.channels, part.outputs)
    elif c.taps_adjacent:
        # Each output channel has its taps, or all (c, t), adjacent, so they are transposed together.
        line = c.filter_line if part.channels == conv.blocks.chunk else c.last_filter_line
        together = part.count if conv.w.channel == conv.taps else 1
        filter += filter_offset(&conv.w, &conv.walk, 0)
        packed += part.first * width
        for i in range(part.count // together):
            load_transposed(packed + i * width, line, filter + i * conv.w.channel, conv.w.batch, together * conv.taps,
                            part.outputs)
    else:
        for t in range(conv.taps):
            load_block(packed + (t * part.channels + part.first) * width, 1, width,
                       filter + filter_offset(&conv.w, &conv.walk, t), conv.w.batch, conv.w.channel, part.outputs,
                       part.count)


cdef inline void note_nonfinite(const Correlation *c, FilterPart part, const compute *strip) noexcept nogil:
    """Raise the flag if a packed part has a nonfinite value that padding could meet."""
    cdef int64_t i, rows = c.conv.taps, width = c.strip
    cdef bint finite = True
    if compute is not int:
        if not c.conv.padded:
            return
        if c.conv.blocks.pairs:
            finite = are_finite_pairs(strip, rows * words_of(part.channels, True) * width)
            rows = 0
        elif c.conv.blocks.positions_across:
            rows, width = rows * part.outputs, 1
        for i in range(rows):
            finite = finite and is_finite(strip + (i * part.channels + part.first) * width, part.count * width)
        if not finite:
            raise_flag(c.nonfinite)


cdef inline int64_t first_of_strip(
    const Correlation *c, int64_t g, int64_t c0, int64_t o0, int64_t channels
) noexcept nogil:
    """Offset of the packed strip that starts at output channel o0, in the chunk of ``channels`` channels from c0 on."""
    return c.packed + g * c.filter_size + (c0 * c.filter_outputs + o0 * channels) * c.conv.taps


cdef inline int64_t parts_of_chunk(const Correlation *c) noexcept nogil:
    return count_blocks(c.conv.blocks.chunk, c.conv.blocks.pack_channels)


cdef inline int64_t count_packs(const Correlation *c) noexcept nogil:
    """Number of tasks that pack the filter of a step, or of all steps together."""
    return c.conv.groups * c.filter_strips * c.filter_chunks * parts_of_chunk(c)


cdef inline FilterPart find_part_of_filter(
    const Correlation *c, int64_t task, int64_t *g, int64_t *o0, int64_t *c0
) noexcept nogil:
    """The part that a task packs. Sets its group, its strip's first output channel and its chunk's first channel."""
    cdef FilterPart part
    part.first = task % parts_of_chunk(c) * c.conv.blocks.pack_channels
    task = task // parts_of_chunk(c)
    c0[0] = task % c.filter_chunks * c.conv.blocks.chunk
    o0[0] = task // c.filter_chunks % c.filter_strips * c.strip
    g[0] = task // c.filter_chunks // c.filter_strips
    part.outputs = min(c.strip, c.conv.outputs - o0[0])
    part.channels = min(c.conv.blocks.chunk, c.conv.channels - c0[0])
    part.count = max(<int64_t>0, min(c.conv.blocks.pack_channels, part.channels - part.first))
    return part


cdef inline void pack_filter(
    const Correlation *c, const scalar *filter, compute *packed, int64_t task
) noexcept nogil:
    """Pack the part of one step's filter that belongs to a task."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t g, o0, c0
    cdef FilterPart part = find_part_of_filter(c, task, &g, &o0, &c0)
    if conv.taps == 0 or part.count == 0:
        return
    packed += first_of_strip(c, g, c0, o0, part.channels)
    pack_part(c, part, filter + g * conv.w.group + o0 * conv.w.batch + c0 * conv.w.channel, packed)
    note_nonfinite(c, part, packed)


cdef inline bint packs_together(const Correlation *steps, int64_t count, int64_t packed_size) noexcept nogil:
    """Whether the taps of all steps together are adjacent in the filter, as with stride phases.

    If each step packed its own taps, it would read every cache line of the filter for a few elements.
    """
    cdef const Convolution *conv
    cdef int64_t i, t, place, taps = 0, packers = 0
    cdef bint[MOST_TAPS] seen
    memset(seen, 0, sizeof(seen))
    for i in range(count):
        conv = &steps[i].conv
        if steps[i].packing == steps + i:
            packers += 1
            taps += conv.taps
    if (packers < 2 or taps < 2 or taps > MOST_TAPS or steps.conv.blocks.packs
            or steps.conv.blocks.positions_across or steps.conv.w.batch == 1 or packed_size > INT32_MAX):
        return False
    for i in range(count):
        conv = &steps[i].conv
        for t in range(conv.taps if steps[i].packing == steps + i else 0):
            place = filter_offset(&conv.w, &conv.walk, t)
            if place < 0 or place >= taps or seen[place]:
                return False
            seen[place] = True
    return True


cdef inline void pack_steps(
    const Correlation *steps, int64_t count, const scalar *filter, compute *packed, int64_t task
) noexcept nogil:
    """Pack one part of the filters of all steps; all taps of a channel are transposed together."""
    cdef const Correlation *c
    cdef const Convolution *conv = &steps.conv
    cdef int64_t g, o0, c0, i, t, channel, first, taps = 0, width = steps.strip
    cdef int32_t[MOST_TAPS] lines  # offset of each tap's first channel
    cdef FilterPart part = find_part_of_filter(steps, task, &g, &o0, &c0)
    filter += g * conv.w.group + o0 * conv.w.batch + c0 * conv.w.channel
    for i in range(count):
        c = steps + i
        if c.packing == c:
            first = first_of_strip(c, g, c0, o0, part.channels)
            for t in range(c.conv.taps):
                lines[filter_offset(&c.conv.w, &c.conv.walk, t)] = <int32_t>(first + t * part.channels * width)
            taps += c.conv.taps
            if part.outputs < width:
                zero_part(c, part, packed + first)
    for channel in range(part.first, part.first + part.count):
        load_transposed(packed + channel * width, lines, filter + channel * conv.w.channel, conv.w.batch, taps,
                        part.outputs)
    for i in range(count):
        c = steps + i
        if c.packing == c:
            first = first_of_strip(c, g, c0, o0, part.channels)
            if c.conv.blocks.pairs:
                join_channels(packed + first, c.conv.taps, part.channels, width)
            note_nonfinite(c, part, packed + first)
