"""Zones of a box: on each axis a range of positions and a range of taps, all of which lie inside the source.

Products with padding are zeros, so leaving them out changes no sum. In fprop and dgrad a zone is a part of a box's
positions, with all taps that lie inside for these. Taps of a zone that are consecutive in the packed filter form a
run; each run takes one call of the tile. In wgrad a zone is a part of the taps, with all positions that lie inside for
these. A zone that is too small takes longer than the products that it saves, so a box is cut on some axes only.
"""

from libc.stdint cimport int32_t, int64_t

from base.problem cimport conv_axis, conv_inside, conv_source, conv_walk
from copy.window cimport Box
from tile.ukernel cimport TILE_VECTORS

cdef enum:  # of one box, most often at the rim, so asked here: a plan would have the zones of each box
    MOST_RANGES = 8  # of an axis
    MOST_TAPS = 16  # of an axis that is cut by positions; more make too many ranges, and looking would take long
    MOST_ZONES = 64
    LEAST_ROWS = 8 // TILE_VECTORS  # of a tile; fewer take as long, since sums wait for their last product
    OWN_STEPS = 6  # of depth, that beginning and ending a tile takes as long as
    FEW_PRODUCTS = 1 << 19  # of a box: to think about them would take longer than what is saved
    WORTH = 97  # per cent of the products that may be left,
    WORTH_TAPS = 80  # by narrow vectors, where neighbouring taps, which zones part, share what they read

ctypedef fused place:
    int32_t
    int64_t

cdef struct Range:
    int64_t first, count  # positions of the box
    int64_t tap, taps

cdef struct Zone:
    Range axis[3]
    int64_t begin, positions  # where its positions begin in a table of all zones', and how many they are

cdef struct Zones:
    int64_t count
    Zone zone[MOST_ZONES]

cdef struct Ranges:  # into which axes may be cut
    Range whole[3]
    Range part[3][MOST_RANGES]
    int64_t parts[3]


cdef inline int64_t first_at(const conv_axis *a, int64_t tap, int64_t coordinate) noexcept nogil:
    """The first position that sees a coordinate of the source, or what lies beyond it, under a tap."""
    cdef int64_t distance = coordinate - conv_source(a, 0, tap)
    return (distance + a.source_step - 1) // a.source_step if distance > 0 else 0


cdef inline int64_t ranges_of_positions(Range *ranges, const conv_axis *a, int64_t first, int64_t count) noexcept nogil:
    """Positions with the same taps inside; more than MOST_RANGES: too many."""
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
    """Taps with the same positions inside; more than MOST_RANGES: too many."""
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
    """Into how many runs of neighbours its taps fall, and the taps of each; one of none, if it has none."""
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
    """The number, among all taps, of the one that a run begins with."""
    cdef const Range *r = z.axis
    cdef int64_t d = run, h = 0
    if r[2].taps < walk.axis[2].taps:
        d, h = run // max(r[1].taps, <int64_t>1), run % max(r[1].taps, <int64_t>1)
    return ((r[0].tap + d) * walk.axis[1].taps + r[1].tap + h) * walk.axis[2].taps + r[2].tap


cdef inline int64_t work_of(const Zone *z, const conv_walk *walk, bint by_taps, int64_t channels) noexcept nogil:
    """Rows times steps of depth; rows are positions, or by taps channels under them."""
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
    """All combinations of ranges, the axes in the bits of ``cut`` being cut into theirs; the work of all."""
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
    """Whether the axes in the bits of ``cut`` have several ranges, and not too many."""
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
    """The zones of a box for products with so many channels and outputs, or one, where that is not worth it.

    ``cuts_rows``: whether a row's positions, or its taps, may be in several. ``worth``: the work that may be left.
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
    """Of each position of a zone: ``first``, and so many steps on each axis from the box's first position."""
    cdef int64_t i = 0, n, d, h, w, row
    for n in range(box.count[0]):
        for d in range(z.axis[0].first, z.axis[0].first + z.axis[0].count):
            for h in range(z.axis[1].first, z.axis[1].first + z.axis[1].count):
                row = first + n * step[0] + d * step[1] + h * step[2]
                for w in range(z.axis[2].first, z.axis[2].first + z.axis[2].count):
                    places[i] = <place>(row + w * step[3])
                    i += 1
