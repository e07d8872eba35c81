"""Gather a panel of a matrix, widened to the compute type.

    panel[(p - p0) * panel_p + (q - q0) * panel_q] = m(p, q)        p0 <= p < p1, q0 <= q < q1

with zero where m(p, q) is padding. panel_p and panel_q lay the panel out as the tile wants it: rows of a in either
order, or a strip of b, whose columns are adjacent.
"""

from libc.stdint cimport int64_t
from libc.string cimport memset

from matrix cimport Matrix, Run, Tap, channels_between, column_of, position_stride
from scalar cimport compute, scalar, widen
from ukernel cimport strip_width, whole_vectors

cdef extern from "transpose.h" nogil:
    void transpose_words(void *to, int64_t to_row, const void *of, int64_t of_row, int64_t rows, int64_t columns)


cdef inline void copy_block(
    compute *panel, int64_t panel_p, int64_t panel_q,
    const scalar *tensor, int64_t tensor_p, int64_t tensor_q, int64_t positions, int64_t columns,
) noexcept nogil:
    """A block without padding, the loop along the panel's adjacent elements innermost, or else the tensor's."""
    cdef int64_t p, q
    cdef compute *to
    cdef const scalar *of
    if (scalar is float and compute is float) or (scalar is int and compute is int):
        if panel_q == 1 and tensor_p == 1 and tensor_q != 1:
            transpose_words(panel, panel_p, tensor, tensor_q, positions, columns)
            return
        if panel_p == 1 and tensor_q == 1 and tensor_p != 1:
            transpose_words(panel, panel_q, tensor, tensor_p, columns, positions)
            return
    if panel_q == 1 and (tensor_q == 1 or columns >= positions):
        for p in range(positions):
            to = panel + p * panel_p
            of = tensor + p * tensor_p
            if tensor_q == 1:
                for q in range(columns):
                    to[q] = widen(of[q], to[0])
            else:
                for q in range(columns):
                    to[q] = widen(of[q * tensor_q], to[0])
    elif panel_p == 1:
        for q in range(columns):
            to = panel + q * panel_q
            of = tensor + q * tensor_q
            if tensor_p == 1:
                for p in range(positions):
                    to[p] = widen(of[p], to[0])
            else:
                for p in range(positions):
                    to[p] = widen(of[p * tensor_p], to[0])
    else:
        for q in range(columns):
            to = panel + q * panel_q
            of = tensor + q * tensor_q
            for p in range(positions):
                to[p * panel_p] = widen(of[p * tensor_p], to[0])


cdef inline void zero_block(
    compute *panel, int64_t panel_p, int64_t panel_q, int64_t positions, int64_t columns
) noexcept nogil:
    cdef int64_t p, q
    if panel_q == 1:
        for p in range(positions):
            memset(panel + p * panel_p, 0, columns * sizeof(compute))
    else:
        for q in range(columns):
            for p in range(positions):
                panel[p * panel_p + q * panel_q] = 0


cdef inline void existing(
    const Matrix *m, const Run *run, const Tap *tap, int64_t *first, int64_t *last
) noexcept nogil:
    """Positions first .. last - 1 of the run are those whose tap lies inside the tensor."""
    cdef int axis
    cdef int64_t coordinate, step = m.step[2]
    first[0] = 0
    last[0] = run.length
    if not m.padded:
        return
    for axis in range(2):
        coordinate = run.coordinate[axis] + tap.coordinate[axis]
        if coordinate < 0 or coordinate >= m.size[axis]:
            last[0] = 0
            return
    coordinate = run.coordinate[2] + tap.coordinate[2]
    if coordinate < 0:
        first[0] = -coordinate if step == 1 else (step - 1 - coordinate) // step
    if coordinate + (run.length - 1) * step >= m.size[2]:
        last[0] = m.size[2] - coordinate if step == 1 else (m.size[2] - coordinate + step - 1) // step
    first[0] = min(first[0], run.length)
    last[0] = max(last[0], first[0])


cdef inline void gather(
    compute *panel, int64_t panel_p, int64_t panel_q, const scalar *tensor, const Matrix *m,
    const Run *runs, int64_t run_count, int64_t p0, int64_t p1, int64_t q0, int64_t q1,
) noexcept nogil:
    cdef int64_t t, c, columns, column_step = panel_q * m.taps if m.taps_fastest else panel_q
    cdef int64_t r, begin, end, first, last
    cdef const scalar *of
    cdef const Run *run
    cdef compute *to
    for t in range(m.taps):
        columns = channels_between(m, t, q0, q1, &c)
        if columns <= 0:
            continue
        to = panel + (column_of(m, t, c) - q0) * panel_q
        for r in range(run_count):
            run = runs + r
            begin = max(p0, run.begin)
            end = min(p1, run.begin + run.length)
            if begin >= end:
                continue
            existing(m, run, &m.tap[t], &first, &last)
            first = min(max(first + run.begin, begin), end)
            last = min(max(last + run.begin, first), end)
            of = tensor + run.offset + m.tap[t].offset + c * m.channel_stride + (first - run.begin) * position_stride(m)
            zero_block(to + (begin - p0) * panel_p, panel_p, column_step, first - begin, columns)
            copy_block(to + (first - p0) * panel_p, panel_p, column_step,
                       of, position_stride(m), m.channel_stride, last - first, columns)
            zero_block(to + (last - p0) * panel_p, panel_p, column_step, end - last, columns)


cdef inline void gather_strips(
    compute *panel, bint columns_are_positions, const scalar *tensor, const Matrix *m,
    const Run *runs, int64_t run_count, int64_t p0, int64_t p1, int64_t q0, int64_t q1,
) noexcept nogil:
    """Pack m(p0 .. p1, q0 .. q1) as b of ``multiply``, its columns the positions or the columns of m."""
    cdef int64_t columns = p1 - p0 if columns_are_positions else q1 - q0
    cdef int64_t depth = q1 - q0 if columns_are_positions else p1 - p0
    cdef int64_t j = 0, width, last
    cdef compute *strip
    while j < columns:
        width = min(strip_width(panel[0]), whole_vectors(columns - j, panel[0]))
        last = min(j + width, columns)
        strip = panel + j * depth
        if last - j < width:
            memset(strip, 0, depth * width * sizeof(compute))
        if columns_are_positions:
            gather(strip, 1, width, tensor, m, runs, run_count, p0 + j, p0 + last, q0, q1)
        else:
            gather(strip, width, 1, tensor, m, runs, run_count, p0, p1, q0 + j, q0 + last)
        j += width
