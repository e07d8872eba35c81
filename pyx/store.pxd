"""Scatter a block of sums into a matrix, narrowed once to the storage type.

    m(p, q) = sums[(p - p0) * sums_p + (q - q0) * sums_q]           every position of the runs, q0 <= q < q1
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport llabs

from matrix cimport Matrix, Run, channels_between, column_of, position_stride
from scalar cimport compute, narrow, scalar


cdef inline void store_block(
    scalar *tensor, int64_t tensor_p, int64_t tensor_q,
    const compute *sums, int64_t sums_p, int64_t sums_q, int64_t positions, int64_t columns,
) noexcept nogil:
    """The loop along the tensor's nearer elements innermost."""
    cdef int64_t p, q
    cdef scalar *to
    cdef const compute *of
    if llabs(tensor_q) <= llabs(tensor_p):
        for p in range(positions):
            to = tensor + p * tensor_p
            of = sums + p * sums_p
            if tensor_q == 1 and sums_q == 1:
                for q in range(columns):
                    to[q] = narrow(of[q], to[0])
            else:
                for q in range(columns):
                    to[q * tensor_q] = narrow(of[q * sums_q], to[0])
    else:
        for q in range(columns):
            to = tensor + q * tensor_q
            of = sums + q * sums_q
            if tensor_p == 1 and sums_p == 1:
                for p in range(positions):
                    to[p] = narrow(of[p], to[0])
            else:
                for p in range(positions):
                    to[p * tensor_p] = narrow(of[p * sums_p], to[0])


cdef inline void scatter(
    scalar *tensor, const Matrix *m, const compute *sums, int64_t sums_p, int64_t sums_q,
    const Run *runs, int64_t run_count, int64_t q0, int64_t q1,
) noexcept nogil:
    cdef int64_t t, c, columns, r, column_step = sums_q * m.taps if m.taps_fastest else sums_q
    cdef const compute *of
    cdef scalar *to
    for t in range(m.taps):
        columns = channels_between(m, t, q0, q1, &c)
        if columns <= 0:
            continue
        to = tensor + m.tap[t].offset + c * m.channel_stride
        of = sums + (column_of(m, t, c) - q0) * sums_q
        for r in range(run_count):
            store_block(to + runs[r].offset, position_stride(m), m.channel_stride,
                        of + runs[r].begin * sums_p, sums_p, column_step, runs[r].length, columns)
