"""Sums that came out as NaN, formed again from the terms that exist.

The panels hold zero where a tap lies in padding, and zero times infinity is NaN, but by the definition there is no such
term. A NaN in a block of sums that padding took part in is therefore formed again, one term after the other; a NaN that
belongs there comes back at its first term that is NaN.
"""

from libc.stdint cimport int64_t

from matrix cimport (
    Matrix, Run, channel_of, column_of, column_offset, exists, find_runs, position_stride, positions_of, tap_of,
)
from pack cimport existing
from scalar cimport real, scalar, widen


cdef inline bint any_nan(const real *sums, int64_t rows, int64_t columns, int64_t row_stride) noexcept nogil:
    cdef int64_t r, j
    cdef int found = 0
    for r in range(rows):
        for j in range(columns):
            found |= sums[r * row_stride + j] != sums[r * row_stride + j]
    return found


cdef inline real filter_sum(
    const scalar *source, const Matrix *x, const Run *position, const scalar *filter, const Matrix *w, real kind
) noexcept nogil:
    """Sum over q of source(position, q) * filter(o, q), where ``filter`` points at output channel o."""
    cdef int64_t t, c
    cdef real total = 0
    for t in range(x.taps):
        if not exists(x, position, &x.tap[t]):
            continue
        for c in range(x.channels):
            total += (widen(source[position.offset + x.tap[t].offset + c * x.channel_stride], kind)
                      * widen(filter[column_offset(w, column_of(x, t, c))], kind))
        if total != total:
            break
    return total


cdef inline void repair_positions(
    real *sums, int64_t sums_p, int64_t sums_o, int64_t o0, int64_t o1,
    const scalar *source, const Matrix *x, const Run *runs, int64_t run_count, const scalar *filter, const Matrix *w,
) noexcept nogil:
    """Sums of fprop and dgrad: target(p, o) for the positions of the runs of x, o0 <= o < o1."""
    cdef int64_t r, i, o
    cdef real *sum
    cdef Run position
    for r in range(run_count):
        position = runs[r]
        for i in range(runs[r].length):
            for o in range(o0, o1):
                sum = sums + (runs[r].begin + i) * sums_p + (o - o0) * sums_o
                if sum[0] != sum[0]:
                    sum[0] = filter_sum(source, x, &position, filter + o * w.stride[2], w, sum[0])
            position.offset += position_stride(x)
            position.coordinate[2] += x.step[2]


cdef inline real position_sum(
    const scalar *source, const Matrix *x, int64_t q, const scalar *target, const Matrix *y, Run *runs, int64_t room,
    real kind,
) noexcept nogil:
    """Sum over p of target(p, o) * source(p, q), where ``target`` points at channel o."""
    cdef int64_t begin = 0, end, r, run_count, first, last, i, positions = positions_of(x), t = tap_of(x, q)
    cdef real total = 0
    cdef const scalar *of
    cdef Run row
    while begin < positions:
        end = min(begin + room, positions)
        run_count = find_runs(x, begin, end, runs)
        for r in range(run_count):
            existing(x, &runs[r], &x.tap[t], &first, &last)
            if first == last:
                continue
            find_runs(y, begin + runs[r].begin, begin + runs[r].begin + 1, &row)
            of = source + runs[r].offset + column_offset(x, q)
            for i in range(first, last):
                total += (widen(of[i * position_stride(x)], kind)
                          * widen(target[row.offset + i * position_stride(y)], kind))
            if total != total:
                return total
        begin = end
    return total


cdef inline void repair_filter(
    real *sums, int64_t sums_o, int64_t sums_q, int64_t o0, int64_t o1, int64_t q0, int64_t q1,
    const scalar *source, const Matrix *x, const scalar *target, const Matrix *y, Run *runs, int64_t room,
) noexcept nogil:
    """Sums of wgrad: filter(o, q) for o0 <= o < o1, q0 <= q < q1. ``runs`` has room for ``room`` of them."""
    cdef int64_t o, q
    cdef real *sum
    for o in range(o0, o1):
        for q in range(q0, q1):
            sum = sums + (o - o0) * sums_o + (q - q0) * sums_q
            if sum[0] != sum[0]:
                sum[0] = position_sum(source, x, q, target + o * y.channel_stride, y, runs, room, sum[0])
