"""The products of a task of fprop or dgrad."""

from libc.stdint cimport int32_t, int64_t

from base.scalar cimport compute, scalar
from copy.pairs cimport words_of
from copy.window cimport Box
from direct.correlate_tasks cimport Correlation, holds_vectors
from direct.packing cimport pack_chunk
from direct.walk cimport Convolution
from direct.zones cimport Range, Zone, Zones, count_runs, first_tap
from tile.ukernel cimport (
    CARRIED, FRESH, PAIRS, SCALARS, STREAMED, TALL_ROWS, count_pitched, fits_tall, multiply_rows, multiply_strip,
    strip_width, whole_vectors,
)

cdef struct DepthChunk:  # a part of the depth: a chunk of channels under all taps
    int64_t begin, channels

cdef struct Bundle:  # of groups, and from one to the next
    int64_t groups
    int64_t window, filter, packed, sums


cdef inline int64_t run_of(const Correlation *c, const DepthChunk *part) noexcept nogil:
    """Steps of the depth that both operands have evenly spaced: a tap's channels, or those of a row of taps."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t words = words_of(part.channels, conv.blocks.pairs)
    if (conv.window.channel_pitch != 1 or conv.window.axis[2].tap * conv.window.pitch[2] != words
            or c.strips_in_place or c.packing != c):
        return words
    return words * conv.walk.axis[2].taps


cdef inline const compute *find_strip(
    const Correlation *c, const scalar *filter, const compute *packed, compute *bank, const DepthChunk *part,
    int64_t outputs, const int32_t **lines,
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


cdef inline int begin_of(int begin, int64_t runs) noexcept nogil:
    """How the first of some runs of taps begins: sums that others go on from stay in the cache."""
    return FRESH if begin == STREAMED and runs > 1 else begin


cdef inline void multiply_zone(
    const Convolution *conv, const Zone *zone, int64_t columns, int64_t words, int64_t run, const Bundle *bundle,
    const compute *window, const int32_t *position, const int32_t *column, const compute *strip, const int32_t *lines,
    compute *sums, const int64_t *places, int64_t sums_row, int begin,
) noexcept nogil:
    """sums += the products of a zone's positions with a strip of each group, of which a tap has so many ``words``.

    Tall tiles of all groups, one after the other: channels last, they read and store what is adjacent.
    """
    cdef int64_t taps, runs = count_runs(zone, &conv.walk, &taps), i, g, first, r = 0, rows = zone.positions
    cdef int64_t pitched = 0
    cdef const int64_t *zone_places = NULL if places == NULL else places + zone.begin
    cdef int64_t steps = min(run, taps * words)
    begin = begin_of(begin, runs)
    position += zone.begin
    if fits_tall(rows, columns, steps, sums[0]):
        pitched = count_pitched(position, zone.axis[2].count, rows)
    if bundle.groups > 1 and fits_tall(pitched, columns, steps, sums[0]):
        rows = pitched if pitched < rows else TALL_ROWS
    while r < zone.positions:
        for g in range(bundle.groups):
            for i in range(runs):
                first = first_tap(zone, &conv.walk, i) * words
                multiply_rows(
                    PAIRS if conv.blocks.pairs else SCALARS, conv.in_place, min(rows, zone.positions - r), pitched,
                    columns, taps * words, steps, window + g * bundle.window, position + r, column + first,
                    strip + g * bundle.packed, lines + first,
                    sums + g * bundle.sums + (r * sums_row if zone_places == NULL else 0),
                    NULL if zone_places == NULL else zone_places + r, sums_row, begin if i == 0 else CARRIED,
                )
        r += rows


cdef inline void multiply_row(
    const Convolution *conv, const Zone *zone, int64_t row, int64_t outputs, int64_t channels, const compute *packed,
    const int32_t *filter_rows, const int32_t *filter_depth, const compute *window, const int32_t *position,
    const int32_t *column, compute *sums, int64_t sums_row, int begin,
) noexcept nogil:
    """sums += the products of a filter with a row of positions in a zone: these are the columns."""
    cdef int64_t taps, runs = count_runs(zone, &conv.walk, &taps), i, first, w = 0, width = strip_width(sums[0])
    begin = begin_of(begin, runs)
    while w < row:
        for i in range(runs):
            first = first_tap(zone, &conv.walk, i) * channels
            multiply_strip(
                SCALARS, False, outputs, min(width, row - w), taps * channels, min(channels, taps * channels), packed,
                filter_rows, filter_depth + first, window + position[w], column + first, sums + w, NULL, sums_row,
                begin if i == 0 else CARRIED,
            )
        w += width


cdef inline void add_strips(
    const Correlation *c, const Zones *zones, int64_t outputs, const DepthChunk *part, const Bundle *bundle,
    const compute *window, const scalar *filter, const compute *packed, compute *bank, const int32_t *position,
    const int32_t *column, compute *sums, const int64_t *places, int64_t sums_row, int begin,
) noexcept nogil:
    """The products across output channels, of groups whose sums are one strip each, or of one group."""
    cdef const Convolution *conv = &c.conv
    cdef int64_t words = words_of(part.channels, conv.blocks.pairs), run = run_of(c, part), i, j = 0, columns
    cdef const int32_t *lines
    cdef const compute *strip
    while j < outputs:
        columns = min(strip_width(sums[0]), outputs - j)
        strip = find_strip(c, filter + j * conv.w.batch, packed + j * c.packing.conv.taps * part.channels, bank, part,
                           columns, &lines)
        for i in range(zones.count):
            multiply_zone(conv, &zones.zone[i], columns, words, run, bundle, window, position, column, strip, lines,
                          sums + j, places, sums_row, begin)
        j += columns


cdef inline void add_rows(
    const Correlation *c, const Box *box, const Zones *zones, int64_t outputs, const DepthChunk *part,
    const compute *window, const compute *packed, const int32_t *position, const int32_t *column, compute *sums,
    int64_t sums_row, int begin,
) noexcept nogil:
    """The products across positions, of one group."""
    cdef int64_t i, n, d, h, r, k, row = box.count[3], sums_h = whole_vectors(row, sums[0])
    cdef const int32_t *lines = c.filter_rows if part.channels == c.conv.blocks.chunk else c.last_filter_rows
    cdef const int32_t *depth = c.filter_depth if part.channels == c.conv.blocks.chunk else c.last_filter_depth
    cdef const Range *of
    for i in range(zones.count):
        of, k = zones.zone[i].axis, zones.zone[i].begin
        for n in range(box.count[0]):
            for d in range(of[0].first, of[0].first + of[0].count):
                for h in range(of[1].first, of[1].first + of[1].count):
                    r = (n * box.count[1] + d) * box.count[2] + h
                    multiply_row(&c.conv, &zones.zone[i], row, outputs, part.channels, packed, lines, depth, window,
                                 position + k, column, sums + r * sums_h, sums_row, begin)
                    k += row


cdef inline void add_products(
    const Correlation *c, const Box *box, const Zones *zones, int64_t outputs, const DepthChunk *part,
    const Bundle *bundle, const compute *window, const scalar *filter, const compute *packed, compute *bank,
    const int32_t *position, const int32_t *column, compute *sums, const int64_t *places, int64_t sums_row,
    bint streamed,
) noexcept nogil:
    """sums += the products of a chunk of channels of some groups, or = those of the first one.

    ``filter`` and ``packed`` are the chunk's from the block's first output channel on. The tables have the positions
    zone after zone. A position's sums are at its place, or, without ``places``, so many times ``sums_row`` further on.
    The last vector of a group's sums may reach beyond the group's outputs; the next group overwrites that.
    ``streamed``: there is one chunk, and its sums are stored past the cache.
    """
    cdef Bundle some = bundle[0]
    cdef int64_t g = 0
    cdef int begin = CARRIED if part.begin else STREAMED if streamed else FRESH
    some.groups = bundle.groups if outputs <= strip_width(sums[0]) else 1
    while g < bundle.groups:
        if c.conv.blocks.positions_across:
            add_rows(c, box, zones, outputs, part, window + g * bundle.window, packed + g * bundle.packed, position,
                     column, sums + g * bundle.sums, sums_row, begin)
            g += 1
            continue
        add_strips(c, zones, outputs, part, &some, window + g * bundle.window, filter + g * bundle.filter,
                   packed + g * bundle.packed, bank, position, column, sums + g * bundle.sums, places, sums_row,
                   begin)
        g += some.groups
