"""The products of a task of fprop or dgrad."""

from libc.stdint cimport int32_t, int64_t

from base.scalar cimport compute, scalar
from copy.pairs cimport words_of
from copy.window cimport Box, column_offsets
from direct.correlate_tasks cimport Correlation, holds_vectors
from direct.packing cimport FilterPart, first_of_strip, pack_part
from direct.walk cimport Convolution
from direct.zones cimport Range, Zone, Zones, count_runs, first_tap
from tile.multiply cimport (
    Columns, Depth, Rows, Sums, count_pitched, fits_tall, multiply_rows, multiply_strip, rows_from, sums_from,
)
from tile.ukernel cimport CARRIED, FRESH, MATRICES, SCALARS, STREAMED, TALL_ROWS, strip_width, way_of, whole_vectors

cdef struct CorrelateTask:  # a box of positions and a block of outputs in each group of a bundle
    const Correlation *c
    Box box
    Zones zones
    int64_t positions  # of the box
    int64_t g0, groups, o0, outputs  # groups g0 .. g0 + groups - 1, and in each outputs o0 .. o0 + outputs - 1
    int64_t c0, channels  # the current chunk: channels c0 .. c0 + channels - 1
    int64_t words  # its channels or pairs of channels
    int64_t run  # steps of the depth that are evenly spaced in both operands: one tap, or one row of taps
    int32_t *position  # offset of each position in the window, zone after zone
    int32_t *column  # offset of each (tap, channel) of the chunk from a position
    int64_t *places  # memory for a table of the sums' offsets, zone after zone
    Sums sums  # of the first group
    int64_t group_sums  # offset between the sums of neighbouring groups
    bint in_target  # the sums are formed in the target itself
    bint streamed  # and written with non-temporal stores


cdef inline void begin_chunk(CorrelateTask *t) noexcept nogil:
    """Set everything about the chunk from channel c0 on. ``streamed`` requires that it is the only chunk."""
    cdef const Correlation *c = t.c
    cdef const Convolution *conv = &c.conv
    cdef int64_t channels = min(conv.blocks.chunk, conv.channels - t.c0)
    t.sums.how = CARRIED if t.c0 else STREAMED if t.streamed else FRESH
    if channels == t.channels:
        return
    t.channels, t.words = channels, words_of(channels, conv.blocks.pairs)
    column_offsets(&conv.window, &conv.walk, t.words, t.words, 1, t.column)
    t.run = t.words
    if (conv.window.channel_pitch == 1 and conv.window.axis[2].tap * conv.window.pitch[2] == t.words
            and not c.strips_in_place and c.packing == c):
        t.run *= conv.walk.axis[2].taps


cdef inline const compute *find_strip(
    const CorrelateTask *t, Columns *columns, const scalar *filter, const compute *packed, compute *bank
) noexcept nogil:
    """A strip of a chunk's filter: packed before, or in place in the filter, or packed now. Sets columns.line."""
    cdef const Correlation *c = t.c
    cdef const Convolution *conv = &c.conv
    cdef bint whole = t.channels == conv.blocks.chunk
    columns.line = c.filter_depth if whole else c.last_filter_depth
    if not conv.blocks.packs:
        return packed
    if c.strips_in_place and holds_vectors(c, columns.count, conv.channels - t.c0 - t.channels, bank[0]):
        columns.line = c.filter_place if whole else c.last_filter_place
        return <const compute *>filter
    pack_part(c, FilterPart(columns.count, t.channels, 0, t.channels), filter, bank)
    return bank


cdef inline int begin_of(int begin, int64_t runs) noexcept nogil:
    """``begin`` for the first of several runs of taps: sums that a later run continues must stay in the cache."""
    return FRESH if begin == STREAMED and runs > 1 else begin


cdef inline int64_t groups_together(const CorrelateTask *t, compute kind) noexcept nogil:
    """Groups that are multiplied in turn. More than one only across output channels, if each group has one strip."""
    return t.groups if not t.c.conv.blocks.positions_across and t.outputs <= strip_width(kind) else 1


cdef inline void multiply_zone(
    const CorrelateTask *t, const Zone *zone, const compute *window, const compute *strip, Columns columns,
    compute *sums,
) noexcept nogil:
    """sums += the products of a zone's positions with a strip of each group.

    Tall tiles take all groups in turn, because groups are adjacent in channels-last layouts.
    """
    cdef const Convolution *conv = &t.c.conv
    cdef int64_t taps, runs = count_runs(zone, &conv.walk, &taps), i, g, groups = groups_together(t, sums[0]), first
    cdef int64_t turn = zone.positions  # rows of a group that are multiplied before the next group
    cdef int way = way_of(conv.blocks.pairs)
    # A run of MATRICES decides bits. So it has one tap: whether several taps are evenly spaced depends on the layout.
    cdef int64_t steps = taps * t.words, run = min(t.words if way == MATRICES else t.run, steps)
    cdef Rows rows = Rows(t.position + zone.begin, t.column, zone.positions, 0, conv.in_place)
    cdef Rows some
    cdef Sums to = sums_from(t.sums, zone.begin)
    if way != MATRICES and fits_tall(rows.count, columns.count, run, sums[0]):
        rows.pitched = count_pitched(rows.row, zone.axis[2].count, rows.count)
    if groups > 1 and fits_tall(rows.pitched, columns.count, run, sums[0]):
        turn = rows.pitched if rows.pitched < rows.count else TALL_ROWS
    while rows.count > 0:
        some = rows
        some.count = min(turn, rows.count)
        for g in range(groups):
            for i in range(runs):
                first = first_tap(zone, &conv.walk, i) * t.words
                some.depth, to.how = t.column + first, CARRIED if i else begin_of(t.sums.how, runs)
                multiply_rows(
                    Depth(way, steps, run), window + g * t.words * conv.window.channel_pitch, some,
                    strip + g * t.c.packing.filter_size, Columns(columns.line + first, columns.count),
                    sums + g * t.group_sums, to,
                )
        rows, to = rows_from(rows, some.count), sums_from(to, some.count)


cdef inline void multiply_row(
    const CorrelateTask *t, const Zone *zone, Depth k, Rows rows, const compute *window, const int32_t *position,
    const compute *packed, compute *sums,
) noexcept nogil:
    """sums += the products of a filter with a row of positions in a zone; positions are the columns of the tile."""
    cdef int64_t taps, runs = count_runs(zone, &t.c.conv.walk, &taps), i, first, w = 0, columns
    cdef Rows some = rows
    cdef Sums to = t.sums
    while w < t.box.count[3]:
        columns = min(strip_width(sums[0]), t.box.count[3] - w)
        for i in range(runs):
            first = first_tap(zone, &t.c.conv.walk, i) * t.channels
            some.depth, to.how = rows.depth + first, CARRIED if i else begin_of(t.sums.how, runs)
            multiply_strip(k, packed, some, window + position[w], Columns(t.column + first, columns), sums + w, to)
        w += columns


cdef inline void add_strips(
    const CorrelateTask *t, const compute *window, const scalar *filter, const compute *packed, compute *bank,
    compute *sums,
) noexcept nogil:
    """Add the products across output channels, of one group or of several in turn."""
    cdef int64_t i, j = 0
    cdef Columns columns
    cdef const compute *strip
    while j < t.outputs:
        columns.count = min(strip_width(sums[0]), t.outputs - j)
        strip = find_strip(t, &columns, filter + j * t.c.conv.w.batch,
                           packed + j * t.c.packing.conv.taps * t.channels, bank)
        for i in range(t.zones.count):
            multiply_zone(t, &t.zones.zone[i], window, strip, columns, sums + j)
        j += columns.count


cdef inline void add_rows(
    const CorrelateTask *t, const compute *window, const compute *packed, compute *sums
) noexcept nogil:
    """Add the products across positions, of one group."""
    cdef const Box *box = &t.box
    cdef int64_t i, n, d, h, r, k, taps, run, row = box.count[3], sums_h = whole_vectors(row, sums[0])
    cdef bint whole = t.channels == t.c.conv.blocks.chunk
    cdef const int32_t *lines = t.c.filter_rows if whole else t.c.last_filter_rows
    cdef const int32_t *depth = t.c.filter_depth if whole else t.c.last_filter_depth
    cdef Rows rows = Rows(lines, depth, t.outputs, 0, False)
    cdef const Zone *zone
    cdef const Range *of
    for i in range(t.zones.count):
        zone = &t.zones.zone[i]
        of, k = zone.axis, zone.begin
        count_runs(zone, &t.c.conv.walk, &taps)
        run = min(taps, <int64_t>1) * t.channels
        for n in range(box.count[0]):
            for d in range(of[0].first, of[0].first + of[0].count):
                for h in range(of[1].first, of[1].first + of[1].count):
                    r = (n * box.count[1] + d) * box.count[2] + h
                    multiply_row(t, zone, Depth(SCALARS, taps * t.channels, run), rows, window, t.position + k, packed,
                                 sums + r * sums_h)
                    k += row


cdef inline void add_products(
    const CorrelateTask *t, const compute *window, const scalar *filter, const compute *packed, compute *bank,
    compute *sums,
) noexcept nogil:
    """sums = the products of the first chunk; sums += the products of each later chunk.

    ``filter`` and ``packed`` point at their first elements. The last vector of a group's sums may reach beyond its
    outputs; the next group overwrites the excess.
    """
    cdef const Convolution *conv = &t.c.conv
    cdef int64_t g = 0, together = groups_together(t, sums[0])
    filter += t.g0 * conv.w.group + t.o0 * conv.w.batch + t.c0 * conv.w.channel
    packed += first_of_strip(t.c.packing, t.g0, t.c0, t.o0, t.channels)
    while g < t.groups:
        if conv.blocks.positions_across:
            add_rows(t, window, packed, sums)
        else:
            add_strips(t, window, filter, packed, bank, sums)
        window += together * t.words * conv.window.channel_pitch
        filter += together * conv.w.group
        packed += together * t.c.packing.filter_size
        sums += together * t.group_sums
        g += together
