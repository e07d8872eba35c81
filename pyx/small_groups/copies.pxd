"""Copies of a box's part of the source and of the target, for layouts that tiles cannot use in place (lanes.pxd)."""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memmove, memset

from base.memory cimport count_blocks
from base.scalar cimport compute, scalar
from base.tensor cimport Tensor
from copy.load_store cimport load_block, store_block
from copy.pairs cimport load_pairs
from small_groups.lanes cimport LaneBox, Lanes, origin_of
from tile.ukernel cimport whole_vectors

cdef extern from "small_groups/expand.h" nogil:
    void spread_channels_of_4(
        void *to, const void *of, const int32_t *index, int64_t lanes, bint same_shuffle, bint two_vectors)
    void spread_channels_of_8(
        void *to, const void *of, const int32_t *index, int64_t lanes, bint same_shuffle, bint two_vectors)


cdef inline int64_t joined(
    const Tensor *t, const Tensor *copy, const int64_t *count, int64_t *rows
) noexcept nogil:
    """Positions that can be copied at once: a row, or a whole plane if it is evenly spaced on both sides."""
    rows[0] = count[1]
    if t.axis[1] == t.axis[2] * count[2] and copy.axis[1] == copy.axis[2] * count[2]:
        rows[0] = 1
        return count[1] * count[2]
    return count[2]


cdef inline void spread_channels(
    compute *to, const compute *of, const int32_t *index, int64_t lanes, bint same_shuffle, bint two_vectors
) noexcept nogil:
    if sizeof(compute) == 4:
        spread_channels_of_4(to, of, index, lanes, same_shuffle, two_vectors)
    else:
        spread_channels_of_8(to, of, index, lanes, same_shuffle, two_vectors)


cdef inline int64_t keep_rows(const Lanes *c, const LaneBox *box, const LaneBox *before, compute *part) noexcept nogil:
    """Move the rows that this box shares with the box above it to the top of ``part``.

    Returns their number, which is 0 if the box before is not the one above.
    """
    cdef int64_t below = box.source[1] - before.source[1], kept
    if below <= 0 or box.source_count[0] != 1:
        return 0
    kept = before.source_count[1] - below
    if kept <= 0 or box.source[2] != before.source[2] or box.source_count[2] != before.source_count[2]:
        return 0
    memmove(part, part + below * c.part.axis[1], kept * c.part.axis[1] * sizeof(compute))
    return kept


cdef inline void load_part(
    const Lanes *c, const LaneBox *box, const scalar *source, compute *part, compute *plain, int64_t kept
) noexcept nogil:
    """Copy a box's part of the source; ``part`` has the first ``kept`` rows already. ``source`` points at the image."""
    cdef int64_t d, h, w, i, row, rows, pad = whole_vectors(c.block, part[0])
    cdef int64_t channels = count_blocks(box.lanes, c.outputs) * c.channels, pitch = whole_vectors(channels, part[0])
    cdef int64_t[3] count
    cdef const scalar *of
    cdef compute *to
    source += origin_of(&c.x, box.source) + box.lane // c.outputs * c.channels * c.x_lane
    count[0], count[1], count[2] = box.source_count[0], box.source_count[1] - kept, box.source_count[2]
    row = joined(&c.x, &c.part, count, &rows)
    if c.spreads:
        pass
    elif c.channels > 1 or c.outputs > 1:
        row, rows = count[2], count[1]
        memset(plain, 0, c.plain_size * sizeof(compute))
    elif box.lanes < pad and not kept:
        memset(part, 0, c.part_size * sizeof(compute))
    source += kept * c.x.axis[1]
    part += kept * c.part.axis[1]
    for d in range(count[0]):
        for h in range(rows):
            of = source + d * c.x.axis[0] + h * c.x.axis[1]
            to = part + d * c.part.axis[0] + h * c.part.axis[1]
            if c.pairs:
                load_pairs(to, NULL, c.part.axis[2], of, c.x.axis[2], c.x_lane, row, channels)
                continue
            if c.spreads or c.channels == c.outputs == 1:
                load_block(to, c.part.axis[2], 1, of, c.x.axis[2], c.x_lane, row, channels)
                continue
            load_block(plain, pitch, 1, of, c.x.axis[2], c.x_lane, row, channels)
            for w in range(row):
                for i in range(c.channels):
                    spread_channels(to + w * c.part.axis[2] + i * pad, plain + w * pitch, c.expansion + i * pad,
                                    whole_vectors(box.lanes, part[0]), c.same_shuffle, c.two_vectors)


cdef inline void load_result(
    const Lanes *c, const LaneBox *box, const scalar *target, compute *result
) noexcept nogil:
    """Copy a box of the target to ``result``. ``target`` points at the image."""
    cdef int64_t d, h, rows, row = joined(&c.y, &c.result, box.target_count, &rows)
    target += origin_of(&c.y, box.target) + box.lane * c.y_lane
    if box.lanes < whole_vectors(c.block, result[0]):
        memset(result, 0, c.result_size * sizeof(compute))
    for d in range(box.target_count[0]):
        for h in range(rows):
            load_block(result + d * c.result.axis[0] + h * c.result.axis[1], c.result.axis[2], 1,
                       target + d * c.y.axis[0] + h * c.y.axis[1], c.y.axis[2], c.y_lane, row, box.lanes)


cdef inline void store_result(
    const Lanes *c, const LaneBox *box, const compute *result, scalar *target
) noexcept nogil:
    """Copy ``result`` to a box of the target. ``target`` points at the image."""
    cdef int64_t d, h, rows, row = joined(&c.y, &c.result, box.target_count, &rows)
    target += origin_of(&c.y, box.target) + box.lane * c.y_lane
    for d in range(box.target_count[0]):
        for h in range(rows):
            store_block(target + d * c.y.axis[0] + h * c.y.axis[1], c.y.axis[2], c.y_lane,
                        result + d * c.result.axis[0] + h * c.result.axis[1], c.result.axis[2], 1, row, box.lanes)
