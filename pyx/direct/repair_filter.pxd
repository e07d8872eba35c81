"""wgrad: recomputes sums with padding that came out as NaN, from the terms that exist.

A term exists if a tap at a position of the target lies in the source. The sum is NaN by the definition if one of these
elements is NaN. The first NaN of each channel is looked up once for all taps. The elements of a tap are searched only
if the first NaN is not among them.
"""

from libc.stdint cimport int64_t

from base.problem cimport conv_axis, conv_inside, conv_source, conv_target, conv_walk
from base.scalar cimport compute, real, scalar, widen
from base.tensor cimport Tensor, find_tap
from direct.walk cimport Convolution

cdef enum:
    REMEMBERED = 64  # channels whose first NaN is remembered

    # States of the search for a channel's first NaN
    NOT_SOUGHT = 0
    NONE = 1
    FOUND = 2

cdef struct Grid:  # evenly spaced elements of a channel in each image: origin + i * step for i < count, on each axis
    int64_t origin[3]
    int64_t step[3]
    int64_t count[3]

cdef struct First:  # the first NaN of a channel
    int known
    int64_t image
    int64_t at[3]

cdef struct Channels:  # at most REMEMBERED channels of the source or of the target
    Grid whole
    int64_t count
    First first[64]


cdef inline bint find_meeting(Grid *met, Grid *by, const conv_walk *walk, int64_t t) noexcept nogil:
    """Set ``met`` to the source elements under tap t and ``by`` to their positions in the target.

    Returns whether some positions have this tap in padding.
    """
    cdef int axis
    cdef int64_t begin, end
    cdef int64_t tap[3]
    cdef bint some = False
    cdef const conv_axis *a
    find_tap(walk, t, tap)
    for axis in range(3):
        a = &walk.axis[axis]
        begin, end = 0, a.positions
        while begin < end and not conv_inside(a, conv_source(a, begin, tap[axis])):
            begin += 1
        while end > begin and not conv_inside(a, conv_source(a, end - 1, tap[axis])):
            end -= 1
        some = some or end - begin < a.positions
        met.count[axis] = by.count[axis] = end - begin
        met.origin[axis], by.origin[axis] = conv_source(a, begin, tap[axis]), conv_target(a, begin)
        met.step[axis], by.step[axis] = a.source_step, a.target_step
    return some


cdef inline void whole_of(Grid *met, Grid *by, const conv_walk *walk) noexcept nogil:
    """Set ``met`` to the whole source and ``by`` to all positions."""
    cdef int axis
    cdef const conv_axis *a
    for axis in range(3):
        a = &walk.axis[axis]
        met.origin[axis], met.step[axis], met.count[axis] = 0, 1, a.source_size
        by.origin[axis], by.step[axis], by.count[axis] = conv_target(a, 0), a.target_step, a.positions


cdef inline bint find_nan(
    const Grid *grid, const scalar *channel, const Tensor *of, int64_t batch, First *first, real kind
) noexcept nogil:
    """Whether a grid has NaN. Sets ``first`` to the first one."""
    cdef int64_t n, d, h, w, step = grid.step[2] * of.axis[2]
    cdef const scalar *row
    for n in range(batch):
        for d in range(grid.count[0]):
            for h in range(grid.count[1]):
                row = (channel + n * of.batch + (grid.origin[0] + d * grid.step[0]) * of.axis[0]
                       + (grid.origin[1] + h * grid.step[1]) * of.axis[1] + grid.origin[2] * of.axis[2])
                for w in range(grid.count[2]):
                    if widen(row[w * step], kind) != widen(row[w * step], kind):
                        first.image = n
                        first.at[0] = grid.origin[0] + d * grid.step[0]
                        first.at[1] = grid.origin[1] + h * grid.step[1]
                        first.at[2] = grid.origin[2] + w * grid.step[2]
                        return True
    return False


cdef inline bint has(const Grid *grid, const int64_t *at) noexcept nogil:
    """Whether an element is in a grid."""
    cdef int axis
    cdef int64_t distance
    for axis in range(3):
        distance = at[axis] - grid.origin[axis]
        if distance < 0 or distance % grid.step[axis] or distance // grid.step[axis] >= grid.count[axis]:
            return False
    return True


cdef inline bint meets_nan(
    const Grid *grid, const Grid *whole, const scalar *channel, const Tensor *of, int64_t batch, First *first, real kind
) noexcept nogil:
    """Whether a grid of a channel has NaN.

    ``first`` is a known NaN of the channel, if any. A NaN found by a search replaces it.
    """
    if first.known == NOT_SOUGHT:
        first.known = FOUND if find_nan(whole, channel, of, batch, first, kind) else NONE
    if first.known == NONE:
        return False
    return has(grid, first.at) or find_nan(grid, channel, of, batch, first, kind)


cdef inline real meeting_sum(
    const Grid *met, const Grid *by, const scalar *source, const Tensor *x, const scalar *target, const Tensor *y,
    int64_t batch, real kind,
) noexcept nogil:
    """filter(o, t, c), term by term. ``source`` and ``target`` point at channels c and o."""
    cdef int64_t n, d, h, w, step = met.step[2] * x.axis[2], by_step = by.step[2] * y.axis[2]
    cdef const scalar *row
    cdef const scalar *by_row
    cdef real total = 0
    for n in range(batch):
        for d in range(met.count[0]):
            for h in range(met.count[1]):
                row = (source + n * x.batch + (met.origin[0] + d * met.step[0]) * x.axis[0]
                       + (met.origin[1] + h * met.step[1]) * x.axis[1] + met.origin[2] * x.axis[2])
                by_row = (target + n * y.batch + (by.origin[0] + d * by.step[0]) * y.axis[0]
                          + (by.origin[1] + h * by.step[1]) * y.axis[1] + by.origin[2] * y.axis[2])
                for w in range(met.count[2]):
                    total += widen(row[w * step], kind) * widen(by_row[w * by_step], kind)
                    if total != total:
                        return total
    return total


cdef inline void repair_tap(
    const Convolution *conv, int64_t t, Channels *of, Channels *by, const scalar *source, const scalar *target,
    compute *sums, int64_t sums_channel,
) noexcept nogil:
    """Recompute sums of one tap, for the source's channels ``of`` and the target's channels ``by``."""
    cdef Grid met
    cdef Grid positions
    cdef int64_t c, o
    cdef compute *sum
    cdef const scalar *x
    cdef const scalar *y
    if compute is not int:
        # Pairs add a position of padding to rows of odd length, so they need the check although no tap is in padding.
        if not find_meeting(&met, &positions, &conv.walk, t) and not conv.blocks.pairs:
            return
        for c in range(of.count):
            for o in range(by.count):
                sum = sums + c * sums_channel + o
                if sum[0] == sum[0]:
                    continue
                x, y = source + c * conv.x.channel, target + o * conv.y.channel
                if meets_nan(&met, &of.whole, x, &conv.x, conv.batch, &of.first[c], sum[0]):
                    break
                if not meets_nan(&positions, &by.whole, y, &conv.y, conv.batch, &by.first[o], sum[0]):
                    sum[0] = meeting_sum(&met, &positions, x, &conv.x, y, &conv.y, conv.batch, sum[0])


cdef inline void repair_filter(
    const Convolution *conv, const scalar *source, const scalar *target, int64_t channels, int64_t outputs,
    compute *sums, int64_t sums_tap, int64_t sums_channel,
) noexcept nogil:
    """Recompute the sums of a part of the filter that are NaN but should not be."""
    cdef Channels of
    cdef Channels by
    cdef int64_t t, i, c0 = 0, o0
    whole_of(&of.whole, &by.whole, &conv.walk)
    while c0 < channels:
        of.count = min(<int64_t>REMEMBERED, channels - c0)
        for i in range(REMEMBERED):
            of.first[i].known = NOT_SOUGHT
        o0 = 0
        while o0 < outputs:
            by.count = min(<int64_t>REMEMBERED, outputs - o0)
            for i in range(REMEMBERED):
                by.first[i].known = NOT_SOUGHT
            for t in range(conv.taps):
                repair_tap(conv, t, &of, &by, source + c0 * conv.x.channel, target + o0 * conv.y.channel,
                           sums + t * sums_tap + c0 * sums_channel + o0, sums_channel)
            o0 += REMEMBERED
        c0 += REMEMBERED
