"""The products of a task of fprop or dgrad, and the sums that are NaN formed again."""

from libc.stdint cimport int32_t, int64_t

from convolution cimport Convolution
from correlation cimport Correlation, holds_vectors
from exact cimport filter_sum
from packing cimport pack_chunk
from pairs cimport words_of
from scalar cimport compute, scalar
from ukernel cimport CARRIED, FRESH, PAIRS, SCALARS, multiply_strip, strip_width, whole_vectors
from window cimport Box
from zones cimport Range, Zone, Zones, count_runs, first_tap

cdef struct Part:  # of the depth: a chunk of channels under all taps
    int64_t begin, channels


cdef inline int64_t run_of(const Correlation *c, const Part *part) noexcept nogil:
    """Steps of the depth that both operands have evenly spaced: a tap's channels, or those of a row of taps."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t words = words_of(part.channels, conv.blocks.pairs)
    if (conv.window.channel_pitch != 1 or conv.window.axis[2].tap * conv.window.pitch[2] != words
            or c.strips_in_place or c.packing != c):
        return words
    return words * conv.walk.axis[2].taps


cdef inline const compute *find_strip(
    const Correlation *c, const scalar *filter, const compute *packed, compute *bank, const Part *part, int64_t outputs,
    const int32_t **lines,
) noexcept nogil:
    """A strip of a chunk's filter, and where its lines are: packed before, as it is in the filter, or packed now."""
    cdef const Convolution *conv = &c.conv
    lines[0] = c.filter_depth if part.channels == conv.blocks.chunk else c.last_filter_depth
    if not conv.blocks.packs:
        return packed
    if c.strips_in_place and holds_vectors(c, outputs, conv.channels - part.begin - part.channels, bank[0]):
        lines[0] = c.filter_place if part.channels == conv.blocks.chunk else c.last_filter_place
        return <const compute *>filter
    pack_chunk(c, filter, bank, outputs, part.channels)
    return bank


cdef inline void multiply_zone(
    const Convolution *conv, const Zone *zone, int64_t columns, int64_t words, int64_t run, const compute *window,
    const int32_t *position, const int32_t *column, const compute *strip, const int32_t *lines, compute *sums,
    const int64_t *places, int64_t sums_row, bint begins,
) noexcept nogil:
    """sums += the products of a zone's positions with a strip, of which each tap has so many ``words``."""
    cdef int64_t taps, runs = count_runs(zone, &conv.walk, &taps), i, first
    for i in range(runs):
        first = first_tap(zone, &conv.walk, i) * words
        multiply_strip(
            PAIRS if conv.blocks.pairs else SCALARS, zone.positions, columns, taps * words, min(run, taps * words),
            window, position + zone.begin, column + first, strip, lines + first, sums,
            NULL if places == NULL else places + zone.begin, sums_row, FRESH if begins and i == 0 else CARRIED,
        )


cdef inline void multiply_row(
    const Convolution *conv, const Zone *zone, int64_t row, int64_t outputs, int64_t channels, const compute *packed,
    const int32_t *filter_rows, const int32_t *filter_depth, const compute *window, const int32_t *position,
    const int32_t *column, compute *sums, int64_t sums_row, bint begins,
) noexcept nogil:
    """sums += the products of a filter with a row of positions in a zone: these are the columns."""
    cdef int64_t taps, runs = count_runs(zone, &conv.walk, &taps), i, first, w = 0, width = strip_width(sums[0])
    while w < row:
        for i in range(runs):
            first = first_tap(zone, &conv.walk, i) * channels
            multiply_strip(
                SCALARS, outputs, min(width, row - w), taps * channels, min(channels, taps * channels), packed,
                filter_rows, filter_depth + first, window + position[w], column + first, sums + w, NULL, sums_row,
                FRESH if begins and i == 0 else CARRIED,
            )
        w += width


cdef inline void add_products(
    const Correlation *c, const Box *box, const Zones *zones, int64_t outputs, const Part *part, const compute *window,
    const scalar *filter, const compute *packed, compute *bank, const int32_t *position, const int32_t *column,
    compute *sums, const int64_t *places, int64_t sums_row,
) noexcept nogil:
    """sums += the products of a chunk of channels, or = those of the first one.

    ``filter`` and ``packed`` are the chunk's from the block's first output channel on. The tables have the positions
    zone after zone. A position's sums are at its place, or, without ``places``, so many times ``sums_row`` further on.
    """
    cdef const Convolution *conv = &c.conv
    cdef int64_t words = words_of(part.channels, conv.blocks.pairs), run = run_of(c, part)
    cdef int64_t i, j = 0, n, d, h, r, k, width = strip_width(sums[0]), row = box.count[3], columns
    cdef int64_t sums_h = whole_vectors(row, sums[0])
    cdef bint begins = part.begin == 0
    cdef const int32_t *lines
    cdef const int32_t *filter_depth = c.filter_depth if part.channels == conv.blocks.chunk else c.last_filter_depth
    cdef const compute *strip
    cdef const Range *of
    if not conv.blocks.positions_across:
        while j < outputs:
            columns = min(width, outputs - j)
            strip = find_strip(c, filter + j * conv.w.batch, packed + j * c.packing.conv.taps * part.channels, bank,
                               part, columns, &lines)
            for i in range(zones.count):
                multiply_zone(conv, &zones.zone[i], columns, words, run, window, position, column, strip, lines,
                              sums + j, places, sums_row, begins)
            j += width
        return
    lines = c.filter_rows if part.channels == conv.blocks.chunk else c.last_filter_rows
    for i in range(zones.count):
        of, k = zones.zone[i].axis, zones.zone[i].begin
        for n in range(box.count[0]):
            for d in range(of[0].first, of[0].first + of[0].count):
                for h in range(of[1].first, of[1].first + of[1].count):
                    r = (n * box.count[1] + d) * box.count[2] + h
                    multiply_row(conv, &zones.zone[i], row, outputs, part.channels, packed, lines, filter_depth,
                                 window, position + k, column, sums + r * sums_h, sums_row, begins)
                    k += row


cdef inline void repair(
    const Correlation *c, const Box *box, int64_t o0, int64_t outputs, const scalar *source, const scalar *filter,
    compute *sums, int64_t sums_w, int64_t sums_h, int64_t sums_o,
) noexcept nogil:
    """Form the sums again that are NaN."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t n, d, h, w, o, row = 0
    cdef int64_t position[4]
    cdef compute *sum
    if compute is not int:
        for n in range(box.count[0]):
            for d in range(box.count[1]):
                for h in range(box.count[2]):
                    for w in range(box.count[3]):
                        position[0], position[1] = box.begin[0] + n, box.begin[1] + d
                        position[2], position[3] = box.begin[2] + h, box.begin[3] + w
                        for o in range(outputs):
                            sum = sums + row * sums_h + w * sums_w + o * sums_o
                            if sum[0] != sum[0]:
                                sum[0] = filter_sum(&conv.walk, source, &conv.x, position,
                                                    filter + (o0 + o) * conv.w.batch, &conv.w, conv.channels, sum[0])
                    row += 1
