"""The products of a piece of a row, for groups of several channels, by the spreading tile (spread_template.h)."""

from libc.stdint cimport int64_t

from base.memory cimport count_blocks
from base.problem cimport conv_axis
from base.scalar cimport compute
from small_groups.pieces cimport LaneWalk, PositionRow, RowPart
from small_groups.runs cimport ColumnRun, find_taps
from tile.spread cimport SPREAD_TAPS, spread, spread_part, spread_shape, spread_sums


cdef inline void describe_spread(
    const LaneWalk *c, const RowPart *piece, int64_t lanes, spread_shape *s
) noexcept nogil:
    """Set the values that both directions have in common."""
    cdef const conv_axis *width = &c.walk.axis[2]
    s.vectors, s.channels, s.order = count_blocks(lanes, c.lanes.y_vector), c.lanes.words, c.lanes.expansion
    s.x_vector, s.y_vector = c.lanes.x_vector, c.lanes.y_vector
    s.positions = piece.count
    s.x_row, s.x_tap = c.walk.axis[1].source_tap * c.x.axis[1], width.source_tap * c.x.axis[2]
    s.x_position = width.source_step * c.x.axis[2]
    s.w_tap = c.lanes.words * c.width
    s.w_row, s.w_vector = width.taps * s.w_tap, c.taps * s.w_tap


cdef inline void list_parts(
    const conv_axis *width, int64_t begin, bint turned, spread_shape *s
) noexcept nogil:
    """List the taps of the width and their columns, three taps together if they have the spacing of positions.

    ``begin`` is the position of the first column.
    """
    cdef conv_axis columns = width[0]  # columns of the source, as taps of the first position
    cdef int64_t t = 0
    cdef spread_part *part = s.part
    columns.source_tap = -width.source_step if turned else width.source_step
    while t < width.taps:
        part.taps = SPREAD_TAPS if width.source_tap == columns.source_tap and width.taps - t >= SPREAD_TAPS else 1
        part.x, part.w = t * s.x_tap, t * s.w_tap
        columns.taps = s.positions + part.taps - 1
        find_taps(&columns, begin, &part.begin, &part.end)
        part.end += part.begin
        columns.source_begin += part.taps * width.source_tap
        t += part.taps
        part += 1
    s.part_count = part - s.part


cdef inline void spread_piece(
    const LaneWalk *c, const PositionRow *row, const RowPart *piece, int64_t lanes, const compute *source,
    const compute *packed, compute *target, int64_t target_step, bint fresh,
) noexcept nogil:
    """Add the products of fprop or dgrad. If taps run against positions, it starts at the last position."""
    cdef const conv_axis *width = &c.walk.axis[2]
    cdef bint turned = width.source_tap < 0
    cdef int64_t last = piece.count - 1 if turned else 0
    cdef spread_shape s
    describe_spread(c, piece, lanes, &s)
    s.rows, s.y_position = row.taps, target_step
    source += piece.source + row.first * s.x_row + last * s.x_position
    target += last * target_step
    if turned:
        s.x_position, s.y_position = -s.x_position, -target_step
    list_parts(width, piece.begin + last, turned, &s)
    spread(&s, c.lanes.pairs, source, packed + row.first * s.w_row, target, fresh)


cdef inline void sum_spread(
    const LaneWalk *c, const PositionRow *row, const ColumnRun *run, const RowPart *piece, int64_t heights,
    int64_t lanes, const compute *source, const compute *target, compute *sums,
) noexcept nogil:
    """Add the products of wgrad: the pieces of a run in ``heights`` rows of positions with the same taps."""
    cdef const conv_axis *height = &c.walk.axis[1]
    cdef spread_shape s
    describe_spread(c, piece, lanes, &s)
    s.heights, s.rows, s.taps = heights, row.taps, run.taps
    s.x_height = height.source_step * c.x.axis[1]
    s.y_height, s.y_position = height.target_step * c.y.axis[1], c.walk.axis[2].target_step * c.y.axis[2]
    spread_sums(&s, source + piece.source + row.first * s.x_row + run.first * s.x_tap, target + piece.target,
                sums + row.first * s.w_row + run.first * s.w_tap)
