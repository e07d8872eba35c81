"""A piece of a row of positions, by the sliding tile or by the register tile.

Groups of one channel take the sliding tile (slide_template.h), in fprop and dgrad on whole rows; others the register
tile, lane by lane, where they do not take the spreading tile (spread.pxd).

                        rows of a tile      columns of a tile    depth
    fprop, dgrad        positions           lanes                taps and channels
    wgrad               taps and channels   lanes                positions
"""

from libc.stdint cimport int32_t, int64_t

from base.problem cimport conv_axis, conv_walk
from base.scalar cimport compute
from base.tensor cimport Tensor
from small_groups.lanes cimport Lanes
from small_groups.runs cimport ColumnRun, find_taps
from tile.multiply cimport Columns, Depth, Rows, Sums, multiply_strip, multiply_tile, rows_of_tile
from tile.slide cimport slide, slide_shape, slide_sums
from tile.ukernel cimport CARRIED, LANES, MOST_ROWS, NARROW_ROWS, strip_width, vectors_of

cdef enum:
    FETCH_POSITIONS = 16  # so far ahead in a row

cdef struct LaneWalk:
    conv_walk walk
    Tensor x, y  # the tensors themselves or their copies
    const Lanes *lanes
    int64_t taps, channels
    int64_t slides  # from one position to the next, in taps, if the sliding tile has it: 1, 2; or 0
    int64_t line, width, packed  # elements of the packed filter for a factor, and from it to the next; where it begins
    int64_t prefetch  # as in Lanes
    int64_t run_count
    ColumnRun *runs
    int32_t *tap_source
    int32_t *tap_filter
    int32_t *position_source
    int32_t *position_target

cdef struct PositionRow:  # one row of positions: what its runs have in common
    int64_t source, target  # where it begins: its first position and tap (height, width) 0
    int64_t first, taps  # of the height
    int64_t depth, depths  # taps of the depth

cdef struct RowPart:  # of a run: what a box has of it
    int64_t source, target
    int64_t begin, count, table, depth  # positions; taps of the height and width, and channels


cdef inline void slide_piece(
    const LaneWalk *c, const PositionRow *row, const RowPart *piece, int64_t lanes, const compute *source,
    const compute *packed, compute *target, int64_t target_step, bint fresh,
) noexcept nogil:
    """The sliding tile on a piece of a row. Its taps may lie the other way round than its positions."""
    cdef const conv_axis *width = &c.walk.axis[2]
    cdef const conv_axis *height = &c.walk.axis[1]
    cdef conv_axis columns = width[0]  # of the source, seen as the taps of the first position
    cdef int64_t position = width.source_step * c.x.axis[2], begin = piece.begin
    cdef slide_shape s
    s.lanes, s.positions, s.rows, s.taps = lanes, piece.count, row.taps, width.taps
    s.x_row, s.x_tap, s.step = height.source_tap * c.x.axis[1], width.source_tap * c.x.axis[2], c.slides
    s.w_row, s.w_tap, s.y_position = width.taps * c.line, c.line, target_step
    s.new_rows = min(row.taps, height.source_step) if c.prefetch else 0
    s.new_row = row.taps - s.new_rows if height.source_tap > 0 else 0
    source += piece.source + row.first * s.x_row
    packed += row.first * s.w_row
    if width.taps == 1:
        s.x_tap, columns.source_tap = position, width.source_step
    elif width.source_tap < 0:
        begin += piece.count - 1
        source += (piece.count - 1) * position
        target += (piece.count - 1) * target_step
        s.y_position = -target_step
    s.ahead = FETCH_POSITIONS * c.slides * s.x_tap
    if c.prefetch > 1 and height.positions > 1:
        s.ahead = height.source_step * c.x.axis[1]
    if row.taps == 0:
        s.taps = s.step = 1
    columns.taps = (s.positions - 1) * s.step + s.taps
    find_taps(&columns, begin, &s.begin, &s.end)
    s.end += s.begin
    slide(&s, source, packed, target, fresh)


cdef inline void multiply_piece(
    const LaneWalk *c, const RowPart *piece, int64_t lanes, int64_t depth, const compute *source, const compute *packed,
    compute *target, int64_t target_step, bint fresh,
) noexcept nogil:
    """The register tile on the piece of a run."""
    cdef int64_t lane = 0, columns
    while lane < lanes:
        columns = min(strip_width(target[0]), lanes - lane)
        multiply_strip(
            Depth(LANES, depth, 1), source + piece.source + lane,
            Rows(c.position_source, c.tap_source + piece.table, piece.count, 0, True), packed + lane,
            Columns(c.tap_filter + piece.table, columns), target + lane, Sums(0, NULL, target_step, fresh),
        )
        lane += columns


cdef inline void sum_piece(
    const LaneWalk *c, const PositionRow *row, const ColumnRun *run, const RowPart *piece, int64_t heights,
    int64_t lanes, const compute *source, const compute *target, compute *sums, int64_t sums_row,
) noexcept nogil:
    """The sliding tile on the pieces of a run in so many rows of positions, which have the same taps."""
    cdef const conv_axis *width = &c.walk.axis[2]
    cdef const conv_axis *height = &c.walk.axis[1]
    cdef slide_shape s
    s.lanes, s.heights, s.positions, s.rows, s.taps = lanes, heights, piece.count, row.taps, run.taps
    s.step = c.slides if run.taps > 1 else 0
    s.x_height, s.x_position = height.source_step * c.x.axis[1], width.source_step * c.x.axis[2]
    s.x_row, s.x_tap = height.source_tap * c.x.axis[1], width.source_tap * c.x.axis[2]
    s.y_height, s.y_position = height.target_step * c.y.axis[1], width.target_step * c.y.axis[2]
    s.w_row, s.w_tap = width.taps * sums_row, sums_row
    slide_sums(&s, source + piece.source + row.first * s.x_row + run.first * s.x_tap, target + piece.target,
               sums + row.first * s.w_row + run.first * s.w_tap)


cdef inline void accumulate_piece(
    const LaneWalk *c, const RowPart *piece, int64_t lanes, const compute *source, const compute *target, compute *sums,
    int64_t sums_row,
) noexcept nogil:
    """The register tile on the piece of a run."""
    cdef int64_t lane = 0, i, k, columns
    cdef int64_t[NARROW_ROWS] sum_rows
    cdef int rows
    while lane < lanes:
        columns = min(strip_width(sums[0]), lanes - lane)
        i = 0
        while i < piece.depth:
            rows = rows_of_tile(piece.depth - i, MOST_ROWS(vectors_of(columns, sums[0])))
            for k in range(rows):
                sum_rows[k] = c.tap_filter[piece.table + i + k] * sums_row
            multiply_tile(
                Depth(LANES, piece.count, 1), source + piece.source + lane,
                Rows(c.tap_source + piece.table + i, c.position_source, rows, 0, False), target + piece.target + lane,
                Columns(c.position_target, columns), sums + lane, Sums(0, <const int64_t *>sum_rows, 0, CARRIED),
            )
            i += rows
        lane += columns
