"""Depthwise convolution of adjacent channels: source and target are read and written in place, run by run.

                        rows of a tile      columns of a tile    depth
    fprop, dgrad        positions           channels             taps
    wgrad               taps                channels             positions

Nothing is multiplied by padding, so no infinity there can do harm.
"""

from libc.stdint cimport int64_t

from convolution cimport Convolution
from problem cimport conv_source
from runs cimport Run, find_taps
from scalar cimport compute
from tensor cimport target_offset
from ukernel cimport NARROW_ROWS, multiply_strip, multiply_tile, rows_of_tile, strip_width, vectors_of
from window cimport Box

cdef struct Row:  # one row of positions: what its runs have in common
    int64_t source, target  # where it begins: its first position and tap (height, width) 0
    int64_t first, taps  # of the height
    int64_t depth, depths  # taps of the depth


cdef struct Piece:  # of a run: what a box has of it
    int64_t source, target
    int64_t count, table, depth  # positions; taps of the height and width


cdef inline void find_row(const Convolution *c, const Box *box, int64_t n, int64_t d, int64_t h, Row *row) noexcept nogil:
    n, d, h = box.begin[0] + n, box.begin[1] + d, box.begin[2] + h
    find_taps(&c.walk.axis[0], d, &row.depth, &row.depths)
    find_taps(&c.walk.axis[1], h, &row.first, &row.taps)
    row.source = (n * c.x.batch + conv_source(&c.walk.axis[0], d, row.depth) * c.x.axis[0]
                  + conv_source(&c.walk.axis[1], h, 0) * c.x.axis[1])
    row.target = target_offset(&c.y, &c.walk, n, d, h, 0)


cdef inline bint find_piece(const Convolution *c, const Box *box, const Row *row, const Run *run, Piece *piece) noexcept nogil:
    """Whether the box has a part of a run."""
    cdef int64_t begin = max(run.begin, box.begin[3])
    piece.count = min(run.begin + run.count, box.begin[3] + box.count[3]) - begin
    piece.source = row.source + conv_source(&c.walk.axis[2], begin, 0) * c.x.axis[2]
    piece.target = row.target + begin * c.walk.axis[2].target_step * c.y.axis[2]
    piece.table = run.table + row.first * run.taps
    piece.depth = row.taps * run.taps
    return piece.count > 0


cdef inline void correlate_rows(
    const Convolution *c, const Box *box, const compute *source, compute *target, const compute *packed,
    int64_t outputs,
) noexcept nogil:
    """target = the sums of a box; the packed filter is [strip][t][channel], its tables' pitch the strip's width."""
    cdef int64_t n, d, h, r, t, j, width = strip_width(target[0]), area = c.walk.axis[1].taps * c.walk.axis[2].taps
    cdef int64_t step = c.walk.axis[2].target_step * c.y.axis[2], tap = c.walk.axis[0].source_tap * c.x.axis[0]
    cdef Row row
    cdef Piece piece
    for n in range(box.count[0]):
        for d in range(box.count[1]):
            for h in range(box.count[2]):
                find_row(c, box, n, d, h, &row)
                for r in range(c.run_count):
                    if not find_piece(c, box, &row, &c.runs[r], &piece):
                        continue
                    j = 0
                    while j < outputs:
                        for t in range(max(row.depths, 1)):
                            multiply_strip(
                                True, piece.count, min(width, outputs - j), piece.depth if row.depths else 0,
                                source + piece.source + t * tap + j, c.position_source, c.tap_source + piece.table,
                                packed + j * c.taps + (row.depth + t) * area * width, c.tap_filter + piece.table,
                                target + piece.target + j, step, t == 0,
                            )
                        j += width


cdef inline void accumulate_rows(
    const Convolution *c, const Box *box, const compute *source, const compute *target, compute *sums, int64_t sums_row,
    int64_t outputs,
) noexcept nogil:
    """sums[t][channel] += the products of a box; the tables' pitch is one."""
    cdef int64_t n, d, h, r, t, i, j, k, width = strip_width(sums[0]), area = c.walk.axis[1].taps * c.walk.axis[2].taps
    cdef int64_t tap = c.walk.axis[0].source_tap * c.x.axis[0]
    cdef int64_t[NARROW_ROWS] sum_rows
    cdef int vectors, rows
    cdef Row row
    cdef Piece piece
    for n in range(box.count[0]):
        for d in range(box.count[1]):
            for h in range(box.count[2]):
                find_row(c, box, n, d, h, &row)
                for r in range(c.run_count):
                    if not find_piece(c, box, &row, &c.runs[r], &piece):
                        continue
                    j = 0
                    while j < outputs:
                        vectors = vectors_of(min(width, outputs - j), sums[0])
                        for t in range(row.depths):
                            i = 0
                            while i < piece.depth:
                                rows = rows_of_tile(piece.depth - i, vectors)
                                for k in range(rows):
                                    sum_rows[k] = ((row.depth + t) * area + c.tap_filter[piece.table + i + k]) * sums_row
                                multiply_tile(
                                    True, rows, vectors, piece.count, source + piece.source + t * tap + j,
                                    c.tap_source + piece.table + i, c.position_source,
                                    target + piece.target + j, c.position_target, sums + j, sum_rows, False,
                                )
                                i += rows
                        j += width
