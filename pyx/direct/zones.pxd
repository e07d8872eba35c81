"""Zones of a box: products without padding.

A zone has a range of positions and a range of taps on each axis, and each of its taps at each of its positions lies in
the source. Products with padding are zero, so leaving them out changes no sum. In fprop and dgrad a zone is a part of
the box's positions, with all taps that lie in the source for them. Taps of a zone that are consecutive in the packed
filter form a run, and each run takes one call of the tile. In wgrad a zone is a part of the taps, with all positions
for which they lie in the source. A zone that is too small takes longer than the products that it saves, so a box is cut
only on the axes where this pays.
"""

from libc.stdint cimport int32_t, int64_t

from base.problem cimport conv_axis, conv_inside, conv_source, conv_walk
from copy.window cimport Box
from tile.ukernel cimport TILE_VECTORS

cdef enum:  # limits of a decision that is made per box; the zones of all boxes would make a plan too large
    MOST_RANGES = 8  # of an axis
    MOST_TAPS = 16  # of an axis that is cut by positions: more taps make too many ranges and a long search
    MOST_ZONES = 64
    LEAST_ROWS = 8 // TILE_VECTORS  # of a tile: fewer rows take as long, because each sum waits for its last product
    OWN_STEPS = 6  # steps of depth that take as long as beginning and ending a tile
    FEW_PRODUCTS = 1 << 19  # of a box: for fewer, the search takes longer than the products that it saves
    WORTH = 97  # per cent: zones are used if at most this share of the work is left
    WORTH_TAPS = 80  # WORTH for narrow vectors if zones separate neighbouring taps, which share cache lines

ctypedef fused place:
    int32_t
    int64_t

cdef struct Range:
    int64_t first, count  # positions of the box
    int64_t tap, taps

cdef struct Zone:
    Range axis[3]
    int64_t begin, positions  # index of its first position in a table of all zones, and their number

cdef struct Zones:
    int64_t count
    Zone zone[MOST_ZONES]

cdef struct Ranges:  # of each axis: the whole, and the parts that it may be cut into
    Range whole[3]
    Range part[3][MOST_RANGES]
    int64_t parts[3]


cdef inline int64_t first_at(const conv_axis *a, int64_t tap, int64_t coordinate) noexcept nogil:
    """The first position whose tap lies at a coordinate of the source or beyond."""
    cdef int64_t distance = coordinate - conv_source(a, 0, tap)
    return (distance + a.source_step - 1) // a.source_step if distance > 0 else 0


cdef inline int64_t ranges_of_positions(Range *ranges, const conv_axis *a, int64_t first, int64_t count) noexcept nogil:
    """List ranges of positions that have the same taps in the source.

    Returns their number, or MOST_RANGES + 1 if there are too many.
    """
    cdef int64_t end = first + count, p = first, t, some = 0, begins, ends
    cdef Range *r
    if a.taps > MOST_TAPS:
        return MOST_RANGES + 1
    while p < end and some < MOST_RANGES:
        r = ranges + some
        r.first, r.count, r.tap, r.taps = p - first, end - p, 0, 0
        for t in range(a.taps):
            begins, ends = first_at(a, t, 0), first_at(a, t, a.source_size)
            if begins <= p < ends:
                if r.taps == 0:
                    r.tap = t
                r.taps = t + 1 - r.tap
            if begins > p:
                r.count = min(r.count, begins - p)
            elif ends > p:
                r.count = min(r.count, ends - p)
        p += r.count
        some += 1
    return some if p == end else MOST_RANGES + 1


cdef inline int64_t ranges_of_taps(Range *ranges, const conv_axis *a, int64_t first, int64_t count) noexcept nogil:
    """List ranges of taps that lie in the source for the same positions.

    Returns their number, or MOST_RANGES + 1 if there are too many.
    """
    cdef int64_t end = first + count, t, some = 0, begins, ends
    cdef Range *r = ranges
    for t in range(a.taps):
        begins = min(max(first_at(a, t, 0), first), end)
        ends = max(begins, min(first_at(a, t, a.source_size), end))
        if some > 0 and r.first == begins - first and r.count == ends - begins:
            r.taps += 1
            continue
        if some == MOST_RANGES:
            return MOST_RANGES + 1
        r = ranges + some
        r.first, r.count, r.tap, r.taps = begins - first, ends - begins, t, 1
        some += 1
    return some


cdef inline bint sees_padding(const conv_axis *a, int64_t first, int64_t count) noexcept nogil:
    return not (conv_inside(a, conv_source(a, first, 0)) and conv_inside(a, conv_source(a, first, a.taps - 1))
                and conv_inside(a, conv_source(a, first + count - 1, 0))
                and conv_inside(a, conv_source(a, first + count - 1, a.taps - 1)))


cdef inline int64_t count_taps_of(const Zone *z) noexcept nogil:
    return z.axis[0].taps * z.axis[1].taps * z.axis[2].taps


cdef inline int64_t count_runs(const Zone *z, const conv_walk *walk, int64_t *taps) noexcept nogil:
    """The number of runs of a zone; sets ``taps`` of each run. A zone without taps has one run of zero taps."""
    cdef const Range *r = z.axis
    taps[0] = count_taps_of(z)
    if taps[0] == 0:
        return 1
    if r[2].taps < walk.axis[2].taps:
        taps[0] = r[2].taps
        return r[0].taps * r[1].taps
    if r[1].taps < walk.axis[1].taps:
        taps[0] = r[1].taps * r[2].taps
        return r[0].taps
    return 1


cdef inline int64_t first_tap(const Zone *z, const conv_walk *walk, int64_t run) noexcept nogil:
    """The index, among all taps, of the first tap of a run."""
    cdef const Range *r = z.axis
    cdef int64_t d = run, h = 0
    if r[2].taps < walk.axis[2].taps:
        d, h = run // max(r[1].taps, <int64_t>1), run % max(r[1].taps, <int64_t>1)
    return ((r[0].tap + d) * walk.axis[1].taps + r[1].tap + h) * walk.axis[2].taps + r[2].tap


cdef inline int64_t work_of(const Zone *z, const conv_walk *walk, bint by_taps, int64_t channels) noexcept nogil:
    """Cost of a zone: rows times steps of depth. Rows are positions or, ``by_taps``, (tap, channel)."""
    cdef int64_t taps, runs = count_runs(z, walk, &taps)
    if by_taps:
        return max(count_taps_of(z) * channels, <int64_t>LEAST_ROWS) * (z.positions + OWN_STEPS)
    return runs * max(z.positions, <int64_t>LEAST_ROWS) * (taps * channels + OWN_STEPS)


cdef inline const Range *range_of(const Ranges *ranges, int axis, int64_t cut, int64_t i) noexcept nogil:
    return &ranges.part[axis][i] if cut >> axis & 1 else &ranges.whole[axis]


cdef inline int64_t combine(
    Zones *zones, const Ranges *ranges, int64_t cut, const conv_walk *walk, const Box *box, bint by_taps,
    int64_t channels,
) noexcept nogil:
    """Set the zones to all combinations of ranges, with the axes in the bits of ``cut`` cut. Returns their cost."""
    cdef int64_t i, j, k, work = 0, begin = 0
    cdef int64_t[3] counts
    cdef int axis
    cdef Zone *z = zones.zone
    for axis in range(3):
        counts[axis] = ranges.parts[axis] if cut >> axis & 1 else 1
    zones.count = counts[0] * counts[1] * counts[2]
    for i in range(counts[0]):
        for j in range(counts[1]):
            for k in range(counts[2]):
                z.axis[0] = range_of(ranges, 0, cut, i)[0]
                z.axis[1] = range_of(ranges, 1, cut, j)[0]
                z.axis[2] = range_of(ranges, 2, cut, k)[0]
                z.begin, z.positions = begin, box.count[0] * z.axis[0].count * z.axis[1].count * z.axis[2].count
                begin += z.positions
                work += work_of(z, walk, by_taps, channels)
                z += 1
    return work


cdef inline bint can_cut(const Ranges *ranges, int64_t cut) noexcept nogil:
    """Whether each axis in the bits of ``cut`` has several ranges, but not too many."""
    cdef int64_t count = 1
    cdef int axis
    for axis in range(3):
        if cut >> axis & 1:
            if not 1 < ranges.parts[axis] <= MOST_RANGES:
                return False
            count *= ranges.parts[axis]
    return count <= MOST_ZONES


cdef inline void find_zones(
    Zones *zones, const conv_walk *walk, const Box *box, bint by_taps, bint cuts_rows, int64_t channels,
    int64_t outputs, int64_t worth,
) noexcept nogil:
    """Find the zones of a box for products with ``channels`` and ``outputs``, or one zone if cutting does not pay.

    ``cuts_rows``: whether positions (or taps) of one row may be in different zones. ``worth``: per cent of the work
    that may be left.
    """
    cdef Ranges ranges
    cdef int64_t cut, best = 0, work, least, first, count, parts = 1
    cdef int axis
    for axis in range(3):
        ranges.whole[axis].first, ranges.whole[axis].count = 0, box.count[1 + axis]
        ranges.whole[axis].tap, ranges.whole[axis].taps = 0, walk.axis[axis].taps
    least = combine(zones, &ranges, 0, walk, box, by_taps, channels)
    if least * outputs < FEW_PRODUCTS:
        return
    for axis in range(3):
        first, count = box.begin[1 + axis], box.count[1 + axis]
        ranges.parts[axis] = 1
        if (axis < 2 or cuts_rows) and sees_padding(&walk.axis[axis], first, count):
            if by_taps:
                ranges.parts[axis] = ranges_of_taps(ranges.part[axis], &walk.axis[axis], first, count)
            else:
                ranges.parts[axis] = ranges_of_positions(ranges.part[axis], &walk.axis[axis], first, count)
        parts *= ranges.parts[axis]
    if parts == 1:
        return
    least = least * worth // 100
    for cut in range(1, 8):
        if can_cut(&ranges, cut):
            work = combine(zones, &ranges, cut, walk, box, by_taps, channels)
            if work < least:
                best, least = cut, work
    combine(zones, &ranges, best, walk, box, by_taps, channels)


cdef inline void list_places(
    const Zone *z, const Box *box, int64_t first, const int64_t *step, place *places
) noexcept nogil:
    """places[i] = first + dot((n, d, h, w), step), for each position (n, d, h, w) of the zone."""
    cdef int64_t i = 0, n, d, h, w, row
    for n in range(box.count[0]):
        for d in range(z.axis[0].first, z.axis[0].first + z.axis[0].count):
            for h in range(z.axis[1].first, z.axis[1].first + z.axis[1].count):
                row = first + n * step[0] + d * step[1] + h * step[2]
                for w in range(z.axis[2].first, z.axis[2].first + z.axis[2].count):
                    places[i] = <place>(row + w * step[3])
                    i += 1
