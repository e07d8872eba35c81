"""The sums of a box of lanes, run by run of its positions.

                        rows of a tile      columns of a tile    depth
    fprop, dgrad        positions           lanes                taps and channels
    wgrad               taps and channels   lanes                positions

Nothing is multiplied by padding, so no infinity there can do harm.
"""

from libc.stdint cimport int32_t, int64_t

from blocks cimport Step, in_lines, multiples
from lanes cimport LaneBox, Lanes
from problem cimport conv_source, conv_target, conv_walk
from runs cimport Run, fill_tables, find_runs, find_taps, most_entries
from scalar cimport compute
from stream cimport end_stream, stream_lines
from tensor cimport Tensor, count_taps
from ukernel cimport LANES, NARROW_ROWS, multiply_strip, multiply_tile, rows_of_tile, vectors_of, whole_vectors

cdef struct LaneWalk:
    conv_walk walk
    Tensor x, y  # the tensors themselves or their copies
    int64_t taps, channels
    int64_t line, packed  # lanes of a line of the packed filter, and where it begins
    int64_t run_count
    Run *runs
    int32_t *tap_source
    int32_t *tap_filter
    int32_t *position_source
    int32_t *position_target

cdef struct Row:  # one row of positions: what its runs have in common
    int64_t source, target  # where it begins: its first position and tap (height, width) 0
    int64_t first, taps  # of the height
    int64_t depth, depths  # taps of the depth

cdef struct Piece:  # of a run: what a box has of it
    int64_t source, target
    int64_t count, table, depth  # positions; taps of the height and width, and channels


cdef inline void describe_walk(LaneWalk *c, const Lanes *lanes, const Step *step, compute kind) noexcept nogil:
    c.walk = step.walk
    c.x = lanes.x if lanes.x_in_place else lanes.part
    c.y = lanes.y if lanes.y_in_place else lanes.result
    c.taps, c.channels = count_taps(&c.walk), lanes.channels
    c.line = whole_vectors(lanes.block, kind)
    c.run_count = find_runs(&c.walk, NULL)


cdef inline int64_t walk_tables_size(const LaneWalk *c, const Lanes *lanes) noexcept nogil:
    """Bytes of its tables at most."""
    cdef int64_t entries = most_entries(&c.walk, c.run_count, c.channels) + lanes.extent[2]
    return in_lines((c.run_count + 1) * sizeof(Run) + 2 * entries * sizeof(int32_t))


cdef inline void make_walk_tables(
    LaneWalk *c, const Lanes *lanes, char *memory, int64_t filter_pitch
) noexcept nogil:
    cdef int64_t positions = lanes.extent[2]
    c.runs = <Run *>memory
    find_runs(&c.walk, c.runs)
    c.position_source = <int32_t *>(c.runs + c.run_count + 1)
    c.position_target = c.position_source + positions
    c.tap_source = c.position_target + positions
    c.tap_filter = c.tap_source + c.runs[c.run_count].table * c.channels
    multiples(c.position_source, c.walk.axis[2].source_step * c.x.axis[2], positions)
    multiples(c.position_target, c.walk.axis[2].target_step * c.y.axis[2], positions)
    fill_tables(&c.walk, &c.x, c.runs, c.run_count, c.channels, c.line,
                c.tap_source, c.tap_filter, filter_pitch)


cdef inline void find_row(const LaneWalk *c, int64_t d, int64_t h, Row *row) noexcept nogil:
    find_taps(&c.walk.axis[0], d, &row.depth, &row.depths)
    find_taps(&c.walk.axis[1], h, &row.first, &row.taps)
    row.source = (conv_source(&c.walk.axis[0], d, row.depth) * c.x.axis[0]
                  + conv_source(&c.walk.axis[1], h, 0) * c.x.axis[1])
    row.target = (conv_target(&c.walk.axis[0], d) * c.y.axis[0] + conv_target(&c.walk.axis[1], h) * c.y.axis[1])


cdef inline bint find_piece(
    const LaneWalk *c, const LaneBox *box, const Row *row, const Run *run, Piece *piece
) noexcept nogil:
    """Whether the box has a part of a run."""
    cdef int64_t begin = max(run.begin, box.begin[2])
    piece.count = min(run.begin + run.count, box.begin[2] + box.count[2]) - begin
    piece.source = row.source + conv_source(&c.walk.axis[2], begin, 0) * c.x.axis[2]
    piece.target = row.target + conv_target(&c.walk.axis[2], begin) * c.y.axis[2]
    piece.table = (run.table + row.first * run.taps) * c.channels
    piece.depth = row.taps * run.taps * c.channels
    return piece.count > 0


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
    cdef Row row
    cdef Piece piece
    for d in range(box.begin[0], min(box.begin[0] + box.count[0], c.walk.axis[0].positions)):
        for h in range(box.begin[1], min(box.begin[1] + box.count[1], c.walk.axis[1].positions)):
            find_row(c, d, h, &row)
            for r in range(c.run_count):
                if not find_piece(c, box, &row, &c.runs[r], &piece):
                    continue
                for t in range(max(row.depths, <int64_t>1)):
                    multiply_strip(
                        LANES, piece.count, box.lanes, piece.depth if row.depths else 0,
                        source + piece.source + t * tap, c.position_source, c.tap_source + piece.table,
                        packed + (row.depth + t) * area, c.tap_filter + piece.table,
                        sums if streamed else target + piece.target, box.lanes if streamed else step, t == 0,
                    )
                if streamed:
                    for t in range(piece.count):
                        stream_lines(target + piece.target + t * step, sums + t * box.lanes,
                                     box.lanes * sizeof(compute))
    if streamed:
        end_stream()


cdef inline void accumulate_rows(
    const LaneWalk *c, const LaneBox *box, const compute *source, const compute *target, compute *sums,
    int64_t sums_row,
) noexcept nogil:
    """sums[tap, channel][lane] += the products of a box; the tables' pitch is one.

    ``source`` and ``target`` point at where the coordinates are zero.
    """
    cdef int64_t d, h, r, t, i, k, area = c.walk.axis[1].taps * c.walk.axis[2].taps * c.channels
    cdef int64_t tap = c.walk.axis[0].source_tap * c.x.axis[0]
    cdef int64_t[NARROW_ROWS] sum_rows
    cdef int rows, vectors = vectors_of(box.lanes, sums[0])
    cdef Row row
    cdef Piece piece
    for d in range(box.begin[0], min(box.begin[0] + box.count[0], c.walk.axis[0].positions)):
        for h in range(box.begin[1], min(box.begin[1] + box.count[1], c.walk.axis[1].positions)):
            find_row(c, d, h, &row)
            for r in range(c.run_count):
                if not find_piece(c, box, &row, &c.runs[r], &piece):
                    continue
                for t in range(row.depths):
                    i = 0
                    while i < piece.depth:
                        rows = rows_of_tile(piece.depth - i, vectors)
                        for k in range(rows):
                            sum_rows[k] = ((row.depth + t) * area + c.tap_filter[piece.table + i + k]) * sums_row
                        multiply_tile(
                            LANES, rows, vectors, piece.count, source + piece.source + t * tap,
                            c.tap_source + piece.table + i, c.position_source,
                            target + piece.target, c.position_target, sums, sum_rows, False,
                        )
                        i += rows
