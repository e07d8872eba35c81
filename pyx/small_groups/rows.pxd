"""The sums of a box of lanes, run by run of its positions, or row by row.

Groups of one channel take the sliding tile (slide_template.h), in fprop and dgrad on whole rows; others the register
tile, lane by lane. Nothing is multiplied by padding, so no infinity there can do harm.

                        rows of a tile      columns of a tile    depth
    fprop, dgrad        positions           lanes                taps and channels
    wgrad               taps and channels   lanes                positions
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport llabs

from base.memory cimport in_lines, multiples
from base.problem cimport conv_axis, conv_source, conv_target, conv_walk
from base.scalar cimport compute
from base.tensor cimport Tensor, count_taps
from copy.stream cimport end_stream, stream_lines
from direct.blocks cimport Step
from small_groups.lanes cimport LaneBox, Lanes
from small_groups.runs cimport ColumnRun, fill_tables, find_runs, find_taps, most_entries
from tile.multiply cimport Columns, Depth, Rows, Sums, multiply_strip, multiply_tile, rows_of_tile
from tile.slide cimport slide, slide_shape, slide_sums
from tile.ukernel cimport CARRIED, LANES, MOST_ROWS, NARROW_ROWS, strip_width, vectors_of, whole_vectors

cdef enum:
    POSITION_BYTES = 1024  # position_bytes of cpu/tuning/small_groups.py
    FETCH_POSITIONS = 16  # so far ahead in a row
    ROWS_BYTES = 128 * 1024  # of a source, in wgrad

cdef struct LaneWalk:
    conv_walk walk
    Tensor x, y  # the tensors themselves or their copies
    int64_t taps, channels
    int64_t slides  # from one position to the next, in taps, if the sliding tile has it: 1, 2; or 0
    int64_t line, packed  # lanes of a line of the packed filter, and where it begins
    int64_t fetches  # as in Lanes
    int64_t heights  # rows of positions that the sliding tile goes through in wgrad, the same for all layouts
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


cdef inline int64_t sliding_step(const conv_axis *width, int64_t channels) noexcept nogil:
    cdef int64_t tap = llabs(width.source_tap)
    if channels > 1 or width.taps == 0:
        return 0
    if width.taps == 1 or width.source_step == tap:
        return 1
    return 2 if width.source_step == 2 * tap else 0


cdef inline void describe_walk(LaneWalk *c, const Lanes *lanes, const Step *step, compute kind) noexcept nogil:
    cdef int64_t row
    c.walk = step.walk
    c.x = lanes.x if lanes.x_in_place else lanes.part
    c.y = lanes.y if lanes.y_in_place else lanes.result
    c.taps, c.channels = count_taps(&c.walk), lanes.channels
    c.slides = sliding_step(&c.walk.axis[2], c.channels)
    c.fetches = lanes.fetches
    c.line = whole_vectors(lanes.block, kind)
    c.run_count = find_runs(&c.walk, NULL)
    # So few that the next vector of a line finds them in the cache, where channels are adjacent.
    row = c.walk.axis[1].source_step * c.walk.axis[2].positions * c.walk.axis[2].source_step
    row *= min(lanes.lanes * <int64_t>sizeof(compute), <int64_t>POSITION_BYTES)
    c.heights = max(<int64_t>1, ROWS_BYTES // max(row, <int64_t>1))


cdef inline int64_t walk_tables_size(const LaneWalk *c, const Lanes *lanes) noexcept nogil:
    """Bytes of its tables at most."""
    cdef int64_t entries = most_entries(&c.walk, c.run_count, c.channels) + lanes.extent[2]
    return in_lines((c.run_count + 1) * sizeof(ColumnRun) + 2 * entries * sizeof(int32_t))


cdef inline void make_walk_tables(
    LaneWalk *c, const Lanes *lanes, char *memory, int64_t filter_pitch
) noexcept nogil:
    cdef int64_t positions = lanes.extent[2]
    c.runs = <ColumnRun *>memory
    find_runs(&c.walk, c.runs)
    c.position_source = <int32_t *>(c.runs + c.run_count + 1)
    c.position_target = c.position_source + positions
    c.tap_source = c.position_target + positions
    c.tap_filter = c.tap_source + c.runs[c.run_count].table * c.channels
    multiples(c.position_source, c.walk.axis[2].source_step * c.x.axis[2], positions)
    multiples(c.position_target, c.walk.axis[2].target_step * c.y.axis[2], positions)
    fill_tables(&c.walk, &c.x, c.runs, c.run_count, c.channels, c.line,
                c.tap_source, c.tap_filter, filter_pitch)


cdef inline void find_row(const LaneWalk *c, int64_t d, int64_t h, PositionRow *row) noexcept nogil:
    find_taps(&c.walk.axis[0], d, &row.depth, &row.depths)
    find_taps(&c.walk.axis[1], h, &row.first, &row.taps)
    row.source = (conv_source(&c.walk.axis[0], d, row.depth) * c.x.axis[0]
                  + conv_source(&c.walk.axis[1], h, 0) * c.x.axis[1])
    row.target = (conv_target(&c.walk.axis[0], d) * c.y.axis[0] + conv_target(&c.walk.axis[1], h) * c.y.axis[1])


cdef inline bint find_piece(
    const LaneWalk *c, const LaneBox *box, const PositionRow *row, const ColumnRun *run, RowPart *piece
) noexcept nogil:
    """Whether the box has a part of a run."""
    cdef int64_t begin = max(run.begin, box.begin[2])
    piece.count = min(run.begin + run.count, box.begin[2] + box.count[2]) - begin
    piece.begin = begin
    piece.source = row.source + conv_source(&c.walk.axis[2], begin, 0) * c.x.axis[2]
    piece.target = row.target + conv_target(&c.walk.axis[2], begin) * c.y.axis[2]
    piece.table = (run.table + row.first * run.taps) * c.channels
    piece.depth = row.taps * run.taps * c.channels
    return piece.count > 0


cdef inline int64_t rows_alike(const LaneWalk *c, int64_t h, int64_t end, const PositionRow *row) noexcept nogil:
    """Rows from h on that have the taps of the first, at most up to ``end``."""
    cdef int64_t count = 1, first, taps
    while h + count < end:
        find_taps(&c.walk.axis[1], h + count, &first, &taps)
        if first != row.first or taps != row.taps:
            break
        count += 1
    return count


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
    s.new_rows = min(row.taps, height.source_step) if c.fetches else 0
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
    if c.fetches > 1 and height.positions > 1:
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


cdef inline void correlate_rows(
    const LaneWalk *c, const LaneBox *box, const compute *source, const compute *packed, compute *target,
    compute *sums, bint streamed
) noexcept nogil:
    """target = the sums of a box. The packed filter is [tap][channel][lane]; the tables' pitch is that of its lines.

    ``source`` and ``target`` point at where the coordinates are zero. Where ``streamed``, those of a run are
    formed in ``sums`` first.
    """
    cdef int64_t d, h, r, t, area = c.walk.axis[1].taps * c.walk.axis[2].taps * c.channels * c.line
    cdef int64_t step = c.walk.axis[2].target_step * c.y.axis[2], tap = c.walk.axis[0].source_tap * c.x.axis[0]
    cdef int64_t made_step = box.lanes if streamed else step
    cdef compute *made = sums
    cdef PositionRow row
    cdef RowPart piece
    cdef ColumnRun whole  # of a row: the sliding tile leaves out taps itself
    cdef const ColumnRun *runs = &whole if c.slides else c.runs
    whole.begin, whole.count, whole.first, whole.taps, whole.table = 0, c.walk.axis[2].positions, 0, 0, 0
    for d in range(box.begin[0], min(box.begin[0] + box.count[0], c.walk.axis[0].positions)):
        for h in range(box.begin[1], min(box.begin[1] + box.count[1], c.walk.axis[1].positions)):
            find_row(c, d, h, &row)
            for r in range(1 if c.slides else c.run_count):
                if not find_piece(c, box, &row, &runs[r], &piece):
                    continue
                if not streamed:
                    made = target + piece.target
                if not row.depths:
                    piece.depth = row.taps = 0
                for t in range(max(row.depths, <int64_t>1)):
                    if c.slides:
                        slide_piece(c, &row, &piece, box.lanes, source + t * tap,
                                    packed + (row.depth + t) * area, made, made_step, t == 0)
                    else:
                        multiply_piece(c, &piece, box.lanes, piece.depth, source + t * tap,
                                       packed + (row.depth + t) * area, made, made_step, t == 0)
                if streamed:
                    for t in range(piece.count):
                        stream_lines(target + piece.target + t * step, sums + t * box.lanes,
                                     box.lanes * sizeof(compute))
    if streamed:
        end_stream()


cdef inline void sum_piece(
    const LaneWalk *c, const PositionRow *row, const ColumnRun *run, const RowPart *piece, int64_t heights,
    int64_t lanes, const compute *source, const compute *target, compute *sums, int64_t sums_row,
) noexcept nogil:
    """The sliding tile on the pieces of a run in so many rows of positions, which have the same taps."""
    cdef const conv_axis *width = &c.walk.axis[2]
    cdef const conv_axis *height = &c.walk.axis[1]
    cdef slide_shape s
    s.lanes, s.heights, s.positions, s.rows, s.taps = lanes, heights, piece.count, row.taps, run.taps
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


cdef inline void accumulate_rows(
    const LaneWalk *c, const LaneBox *box, const compute *source, const compute *target, compute *sums,
    int64_t sums_row,
) noexcept nogil:
    """sums[tap, channel][lane] += the products of a box; the tables' pitch is one.

    ``source`` and ``target`` point at where the coordinates are zero.
    """
    cdef int64_t d, h, r, t, heights, area = c.walk.axis[1].taps * c.walk.axis[2].taps * c.channels * sums_row
    cdef int64_t tap = c.walk.axis[0].source_tap * c.x.axis[0]
    cdef int64_t end = min(box.begin[1] + box.count[1], c.walk.axis[1].positions)
    cdef bint slides = c.channels == 1
    cdef PositionRow row
    cdef RowPart piece
    for d in range(box.begin[0], min(box.begin[0] + box.count[0], c.walk.axis[0].positions)):
        h = box.begin[1]
        while h < end:
            find_row(c, d, h, &row)
            heights = rows_alike(c, h, min(end, h + c.heights), &row) if slides else 1
            for r in range(c.run_count):
                if not find_piece(c, box, &row, &c.runs[r], &piece):
                    continue
                for t in range(row.depths):
                    if slides:
                        sum_piece(c, &row, &c.runs[r], &piece, heights, box.lanes, source + t * tap, target,
                                  sums + (row.depth + t) * area, sums_row)
                    else:
                        accumulate_piece(c, &piece, box.lanes, source + t * tap, target,
                                         sums + (row.depth + t) * area, sums_row)
            h += heights
