"""Runs: neighbouring positions of a row that have the same taps of the width in the source.

Taps in padding are skipped. The taps of the depth and of the height that lie in the source are one range for a whole
row of positions, and the taps of the width are one range per run. Two tables list the (height, width) taps of a run and
the channels of a group, in this order: their offsets in the source and in the filter.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t
from libc.stdlib cimport llabs

from base.problem cimport conv_axis, conv_source, conv_walk
from base.tensor cimport Tensor
from copy.window cimport first_from

cdef struct ColumnRun:
    int64_t begin, count  # range of positions
    int64_t first, taps  # range of taps of the width
    int64_t table  # its first tap in the tables


cdef inline void find_taps(const conv_axis *a, int64_t position, int64_t *first, int64_t *count) noexcept nogil:
    """Set the range of taps of a position that lie in the source."""
    cdef int64_t source = conv_source(a, position, 0), step = a.source_tap
    if step < 0:  # mirror the axis
        source = a.source_size - 1 - source
        step = -step
    first[0] = min(first_from(source, 0, max(step, 1)), a.taps)
    count[0] = max(0, min(first_from(source, a.source_size, max(step, 1)), a.taps) - first[0])


cdef inline int64_t find_runs(const conv_walk *walk, ColumnRun *runs) noexcept nogil:
    """List the runs unless ``runs`` is NULL; behind the last, ``table`` has the length of all. Returns their number."""
    cdef const conv_axis *a = &walk.axis[2]
    cdef int64_t position = 0, number = 0, table = 0, next, first, count, next_first, next_count
    while position < a.positions:
        find_taps(a, position, &first, &count)
        next = position + 1
        if count == a.taps:  # skip to the first position whose last tap is outside
            if a.source_tap >= 0:
                next += first_from(conv_source(a, next, a.taps - 1), a.source_size, a.source_step)
            else:
                next += first_from(conv_source(a, next, 0), a.source_size, a.source_step)
            next = min(next, a.positions)
        while next < a.positions:
            find_taps(a, next, &next_first, &next_count)
            if next_first != first or next_count != count:
                break
            next += 1
        if runs != NULL:
            runs[number].begin, runs[number].count = position, next - position
            runs[number].first, runs[number].taps = first, count
            runs[number].table = table
        table += walk.axis[1].taps * count
        number += 1
        position = next
    if runs != NULL:
        runs[number].table = table
    return number


cdef inline bint fits_tables(const conv_walk *walk, const Tensor *x, const Tensor *y, int64_t positions) noexcept nogil:
    """Whether the offsets fit into 32 bits, for rows of ``positions`` positions."""
    cdef int axis
    cdef int64_t reach = 0
    cdef const conv_axis *a
    for axis in range(1, 3):
        a = &walk.axis[axis]
        reach += a.taps * llabs(a.source_tap * x.axis[axis])
    reach += positions * (walk.axis[2].source_step * llabs(x.axis[2]) + walk.axis[2].target_step * llabs(y.axis[2]))
    return reach < INT32_MAX


cdef inline int64_t most_entries(const conv_walk *walk, int64_t runs, int64_t channels) noexcept nogil:
    """An upper bound of the tables' length."""
    return runs * walk.axis[1].taps * walk.axis[2].taps * channels


cdef inline void fill_tables(
    const conv_walk *walk, const Tensor *x, const ColumnRun *runs, int64_t count, int64_t channels,
    int64_t channel_pitch, int32_t *source, int32_t *filter, int64_t filter_pitch,
) noexcept nogil:
    """source[i] = offset from the first tap and channel, filter[i] = (number in height, width, channel) x pitch."""
    cdef int64_t run, h, w, c, i
    for run in range(count):
        i = runs[run].table * channels
        for h in range(walk.axis[1].taps):
            for w in range(runs[run].first, runs[run].first + runs[run].taps):
                for c in range(channels):
                    source[i] = <int32_t>(h * walk.axis[1].source_tap * x.axis[1]
                                          + w * walk.axis[2].source_tap * x.axis[2] + c * channel_pitch)
                    filter[i] = <int32_t>(((h * walk.axis[2].taps + w) * channels + c) * filter_pitch)
                    i += 1
