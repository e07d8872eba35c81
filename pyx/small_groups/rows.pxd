"""The sums of a box of lanes, run by run of its positions, or row by row.

Nothing is multiplied by padding, so no infinity there can do harm.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport llabs

from base.memory cimport in_lines, multiples
from base.problem cimport conv_axis, conv_source, conv_target
from base.scalar cimport compute
from base.tensor cimport count_taps
from copy.stream cimport end_stream, stream_lines
from direct.blocks cimport Step
from small_groups.lanes cimport LaneBox, Lanes
from small_groups.pieces cimport (
    LaneWalk, PositionRow, RowPart, accumulate_piece, multiply_piece, slide_piece, sum_piece,
)
from small_groups.runs cimport ColumnRun, fill_tables, find_runs, find_taps, most_entries
from small_groups.spread cimport spread_piece, sum_spread
from tile.ukernel cimport vector_length

cdef inline int64_t sliding_step(const conv_axis *width, int64_t channels) noexcept nogil:
    cdef int64_t tap = llabs(width.source_tap)
    if channels > 1 or width.taps == 0:
        return 0
    if width.taps == 1 or width.source_step == tap:
        return 1
    return 2 if width.source_step == 2 * tap else 0


cdef inline void describe_walk(LaneWalk *c, const Lanes *lanes, const Step *step, compute kind) noexcept nogil:
    c.walk = step.walk
    c.x = lanes.x if lanes.x_in_place else lanes.part
    c.y = lanes.y if lanes.y_in_place else lanes.result
    c.lanes, c.taps, c.channels = lanes, count_taps(&c.walk), lanes.channels
    c.slides = sliding_step(&c.walk.axis[2], c.channels)
    c.prefetch = lanes.prefetch
    c.line = lanes.vectors * vector_length(kind)
    c.width = vector_length(kind) if lanes.spreads else c.line
    c.run_count = find_runs(&c.walk, NULL)


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
    """Rows from h on that have the taps of the first and are summed together, whatever boxes there are."""
    cdef int64_t count = 1, first, taps
    end = min(end, (h // c.lanes.heights + 1) * c.lanes.heights)
    while h + count < end:
        find_taps(&c.walk.axis[1], h + count, &first, &taps)
        if first != row.first or taps != row.taps:
            break
        count += 1
    return count


cdef inline void correlate_rows(
    const LaneWalk *c, const LaneBox *box, const compute *source, const compute *packed, compute *target,
    compute *sums, bint streamed
) noexcept nogil:
    """target = the sums of a box. The packed filter is [tap][channel][lane]; the tables' pitch is that of its lines.

    That of the spreading tile is [vector][tap][channel][lane]. ``source`` and ``target`` point at where the coordinates
    are zero. Where ``streamed``, those of a run are formed in ``sums`` first.
    """
    cdef int64_t d, h, r, t, area = c.walk.axis[1].taps * c.walk.axis[2].taps * c.lanes.words * c.width
    cdef int64_t step = c.walk.axis[2].target_step * c.y.axis[2], tap = c.walk.axis[0].source_tap * c.x.axis[0]
    cdef int64_t made_step = box.lanes if streamed else step
    cdef compute *made = sums
    cdef PositionRow row
    cdef RowPart piece
    cdef ColumnRun whole  # of a row: tiles that leave out taps themselves
    cdef bint spreads = c.lanes.spreads, leaves_out = c.slides or spreads
    cdef const ColumnRun *runs = &whole if leaves_out else c.runs
    whole.begin, whole.count, whole.first, whole.taps, whole.table = 0, c.walk.axis[2].positions, 0, 0, 0
    for d in range(box.begin[0], min(box.begin[0] + box.count[0], c.walk.axis[0].positions)):
        for h in range(box.begin[1], min(box.begin[1] + box.count[1], c.walk.axis[1].positions)):
            find_row(c, d, h, &row)
            for r in range(1 if leaves_out else c.run_count):
                if not find_piece(c, box, &row, &runs[r], &piece):
                    continue
                if not streamed:
                    made = target + piece.target
                if not row.depths:
                    piece.depth = row.taps = 0
                for t in range(max(row.depths, <int64_t>1)):
                    if spreads:
                        spread_piece(c, &row, &piece, box.lanes, source + t * tap, packed + (row.depth + t) * area,
                                     made, made_step, t == 0)
                    elif c.slides:
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


cdef inline void accumulate_rows(
    const LaneWalk *c, const LaneBox *box, const compute *source, const compute *target, compute *sums,
) noexcept nogil:
    """sums[tap, channel][lane] += the products of a box; the tables' pitch is one.

    Those of the spreading tile are [vector][tap, channel][lane]. ``source`` and ``target`` point at where the
    coordinates are zero.
    """
    cdef int64_t d, h, r, t, heights, area = c.walk.axis[1].taps * c.walk.axis[2].taps * c.channels * c.width
    cdef int64_t tap = c.walk.axis[0].source_tap * c.x.axis[0]
    cdef int64_t end = min(box.begin[1] + box.count[1], c.walk.axis[1].positions)
    cdef bint spreads = c.lanes.spreads, slides = c.channels == 1 and not spreads
    cdef PositionRow row
    cdef RowPart piece
    for d in range(box.begin[0], min(box.begin[0] + box.count[0], c.walk.axis[0].positions)):
        h = box.begin[1]
        while h < end:
            find_row(c, d, h, &row)
            heights = rows_alike(c, h, end, &row) if slides or spreads else 1
            for r in range(c.run_count):
                if not find_piece(c, box, &row, &c.runs[r], &piece):
                    continue
                for t in range(row.depths):
                    if spreads:
                        sum_spread(c, &row, &c.runs[r], &piece, heights, box.lanes, source + t * tap, target,
                                   sums + (row.depth + t) * area)
                    elif slides:
                        sum_piece(c, &row, &c.runs[r], &piece, heights, box.lanes, source + t * tap, target,
                                  sums + (row.depth + t) * area, c.width)
                    else:
                        accumulate_piece(c, &piece, box.lanes, source + t * tap, target,
                                         sums + (row.depth + t) * area, c.width)
            h += heights
