"""Copies between tensors of a storage type and blocks of the compute type.

    block[p * block_p + q * block_q]  =  tensor[p * tensor_p + q * tensor_q]      widened   (load_block)
    tensor[p * tensor_p + q * tensor_q]  =  block[p * block_p + q * block_q]      narrowed  (store_block)
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport llabs
from libc.string cimport memset

from base.scalar cimport bf16, compute, f16, narrow, narrow_row, scalar, widen, widen_row

cdef extern from "copy/transpose.h" nogil:
    void transpose_words(void *to, const int32_t *to_rows, int64_t to_row, const void *of, int64_t of_row,
                         int64_t rows, int64_t columns)


cdef extern from "base/scalar.h" nogil:
    void f16_widen_every_second(float *to, const f16 *of, int64_t count)

cdef extern from "base/bfloat.h" nogil:
    void bf16_widen_every_second(float *to, const bf16 *of, int64_t count)

cdef extern from "copy/rows.h" nogil:
    void copy_every_second(void *to, const void *of, int64_t count)
    void copy_rows(void *to, int64_t to_row, const void *of, int64_t of_row, int64_t rows, int64_t bytes)
    void copy_strips(void *to, int64_t to_strip, const void *of, int64_t of_row, int64_t rows, int64_t strips)
    void fetch_run(const void *first, int64_t bytes)
    void fetch_row(const void *row, int64_t of_row, int64_t bytes)
    void spread_words(void *to, int64_t step, const void *of, int64_t count)


cdef enum:
    PIECE = 64  # elements of a row that are gathered, widened or narrowed before they are transposed
    # Distance of prefetches, in elements. Transposed rows lie so far apart that the processor's own prefetcher does not
    # foresee the next piece of a row. The prefetch starts at the next piece's second cache line, because its first one
    # is also the last line of this piece.
    AHEAD = PIECE + 32
    ROWS = 16  # rows of the staging buffer
    FEW = 8  # positions: for fewer, a loop is faster than one memset per column
    MANY = 8  # 16-bit elements: fewer are copied faster one by one


cdef inline void widen_every_second(compute *to, const scalar *of, int64_t count) noexcept nogil:
    """to[i] = of[2 * i]. Nothing behind of[2 * (count - 1)] is read."""
    if scalar is f16 and compute is float:
        f16_widen_every_second(to, of, count)
    elif scalar is bf16 and compute is float:
        bf16_widen_every_second(to, of, count)
    else:
        copy_every_second(to, of, count)


cdef inline void widen_apart(compute *to, const scalar *of, int64_t of_step, int64_t count) noexcept nogil:
    """to[i] = of[i * of_step]"""
    cdef int64_t i
    if of_step == 1:
        widen_row(to, of, count)
    elif of_step == 2 and (sizeof(scalar) == 4 or sizeof(scalar) == 2 and count >= MANY):
        widen_every_second(to, of, count)
    else:
        for i in range(count):
            to[i] = widen(of[i * of_step], to[0])


cdef inline void load_pieces_transposed(
    compute *block, const int32_t *block_rows, int64_t block_row, const scalar *tensor, int64_t tensor_step,
    int64_t tensor_row, int64_t rows, int64_t columns,
) noexcept nogil:
    """block[row(i) + j] = tensor[j * tensor_row + i * tensor_step] for i < rows, j < columns.

    row(i) is block_rows[i], or i * block_row without that table. Compute types of 32 bits only.
    """
    cdef compute[ROWS * PIECE] wide
    cdef int64_t i0 = 0, j0, j, count, lines
    cdef const scalar *of
    while i0 < rows:
        count = min(<int64_t>PIECE, rows - i0)
        j0 = 0
        while j0 < columns:
            lines = min(<int64_t>ROWS, columns - j0)
            for j in range(lines):
                of = tensor + (j0 + j) * tensor_row + i0 * tensor_step
                if tensor_step == 1:
                    fetch_run(of + AHEAD, count * sizeof(scalar))
                widen_apart(<compute *>wide + j * PIECE, of, tensor_step, count)
            if block_rows == NULL:
                transpose_words(block + i0 * block_row + j0, NULL, block_row, <compute *>wide, PIECE, count, lines)
            else:
                transpose_words(block + j0, block_rows + i0, 0, <compute *>wide, PIECE, count, lines)
            j0 += lines
        i0 += count


cdef inline void store_pieces_transposed(
    scalar *tensor, int64_t tensor_row, int64_t tensor_step, const compute *block, int64_t block_row, int64_t rows,
    int64_t columns,
) noexcept nogil:
    """tensor[i * tensor_row + j * tensor_step] = block[j * block_row + i] for i < rows, j < columns.

    Compute types of 32 bits only.
    """
    cdef compute[ROWS * PIECE] wide
    cdef int64_t i0 = 0, i, j0, j, count, lines
    cdef scalar *to
    cdef const compute *of
    while i0 < rows:
        lines = min(<int64_t>ROWS, rows - i0)
        j0 = 0
        while j0 < columns:
            count = min(<int64_t>PIECE, columns - j0)
            transpose_words(<compute *>wide, NULL, PIECE, block + j0 * block_row + i0, block_row, lines, count)
            for i in range(lines):
                to = tensor + (i0 + i) * tensor_row + j0 * tensor_step
                of = <compute *>wide + i * PIECE
                if tensor_step == 1:
                    fetch_run(to + AHEAD, count * sizeof(scalar))
                    narrow_row(to, of, count)
                elif sizeof(scalar) == 4:
                    spread_words(to, tensor_step, of, count)
                else:
                    for j in range(count):
                        to[j * tensor_step] = narrow(of[j], to[0])
            j0 += count
        i0 += lines


cdef inline bint crosses(
    int64_t near, int64_t far, int64_t block_near, int64_t block_far, int64_t nears, int64_t fars
) noexcept nogil:
    """Whether the tensor's inner axis is the block's outer axis, so the copy is a transposition."""
    return block_far == 1 and block_near != 1 and far != 1 and llabs(near) < llabs(far) and nears > 1 and fars > 1


cdef inline void load_crossed(
    compute *block, int64_t block_row, const scalar *tensor, int64_t tensor_step, int64_t tensor_row, int64_t rows,
    int64_t columns,
) noexcept nogil:
    """block[i * block_row + j] = tensor[j * tensor_row + i * tensor_step] for i < rows, j < columns.

    Compute types of 32 bits only.
    """
    if (scalar is float and compute is float) or (scalar is int and compute is int):
        if tensor_step == 1:
            transpose_words(block, NULL, block_row, tensor, tensor_row, rows, columns)
            return
    load_pieces_transposed(block, NULL, block_row, tensor, tensor_step, tensor_row, rows, columns)


cdef inline void store_crossed(
    scalar *tensor, int64_t tensor_row, int64_t tensor_step, const compute *block, int64_t block_row, int64_t rows,
    int64_t columns,
) noexcept nogil:
    """tensor[i * tensor_row + j * tensor_step] = block[j * block_row + i] for i < rows, j < columns.

    Compute types of 32 bits only.
    """
    if (scalar is float and compute is float) or (scalar is int and compute is int):
        if tensor_step == 1:
            transpose_words(tensor, NULL, tensor_row, block, block_row, rows, columns)
            return
    store_pieces_transposed(tensor, tensor_row, tensor_step, block, block_row, rows, columns)


cdef inline void load_block(
    compute *block, int64_t block_p, int64_t block_q,
    const scalar *tensor, int64_t tensor_p, int64_t tensor_q, int64_t positions, int64_t columns,
) noexcept nogil:
    """Copy tensor to block, widened. The inner loop runs along the block's adjacent elements."""
    cdef int64_t p, q
    cdef compute *to
    cdef const scalar *of
    if compute is not double and scalar is not double:
        if crosses(tensor_p, tensor_q, block_p, block_q, positions, columns):
            load_crossed(block, block_p, tensor, tensor_p, tensor_q, positions, columns)
            return
        if crosses(tensor_q, tensor_p, block_q, block_p, columns, positions):
            load_crossed(block, block_q, tensor, tensor_q, tensor_p, columns, positions)
            return
    if block_q == tensor_q == 1 and block_p == tensor_p == columns:  # one contiguous run on both sides
        widen_row(block, tensor, positions * columns)
        return
    if scalar is compute:
        if block_q == tensor_q == 1:
            copy_rows(block, block_p * sizeof(compute), tensor, tensor_p * sizeof(scalar), positions,
                      columns * sizeof(compute))
            return
        if block_p == tensor_p == 1:
            copy_rows(block, block_q * sizeof(compute), tensor, tensor_q * sizeof(scalar), columns,
                      positions * sizeof(compute))
            return
    if block_q == 1:
        for p in range(positions):
            to = block + p * block_p
            of = tensor + p * tensor_p
            if tensor_q == 1:
                fetch_row(of, tensor_p * sizeof(scalar), columns * sizeof(scalar))
            widen_apart(to, of, tensor_q, columns)
    else:
        for q in range(columns):
            to = block + q * block_q
            of = tensor + q * tensor_q
            if block_p == 1:
                widen_apart(to, of, tensor_p, positions)
            else:
                for p in range(positions):
                    to[p * block_p] = widen(of[p * tensor_p], to[0])


cdef inline void load_transposed(
    compute *block, const int32_t *block_rows, const scalar *tensor, int64_t tensor_row, int64_t rows, int64_t columns
) noexcept nogil:
    """block[block_rows[i] + j] = tensor[j * tensor_row + i] for i < rows, j < columns."""
    cdef int64_t i, j
    if (scalar is float and compute is float) or (scalar is int and compute is int):
        transpose_words(block, block_rows, 0, tensor, tensor_row, rows, columns)
    elif (scalar is f16 or scalar is bf16) and compute is float:
        load_pieces_transposed(block, block_rows, 0, tensor, 1, tensor_row, rows, columns)
    else:
        for i in range(rows):
            for j in range(columns):
                block[block_rows[i] + j] = widen(tensor[j * tensor_row + i], block[0])


cdef inline void zero_block(
    compute *block, int64_t block_p, int64_t block_q, int64_t positions, int64_t columns
) noexcept nogil:
    cdef int64_t p, q
    if block_q == 1:
        for p in range(positions):
            memset(block + p * block_p, 0, columns * sizeof(compute))
    elif positions < FEW:  # as in the padding: one memset per column would take longer
        for p in range(positions):
            for q in range(columns):
                block[p * block_p + q * block_q] = 0
    else:
        for q in range(columns):
            for p in range(positions):
                block[p * block_p + q * block_q] = 0


cdef inline void store_block(
    scalar *tensor, int64_t tensor_p, int64_t tensor_q,
    const compute *block, int64_t block_p, int64_t block_q, int64_t positions, int64_t columns,
) noexcept nogil:
    """Copy block to tensor, narrowed. The inner loop runs along the tensor's smaller stride."""
    cdef int64_t p, q
    cdef scalar *to
    cdef const compute *of
    if compute is not double and scalar is not double:
        if crosses(tensor_p, tensor_q, block_p, block_q, positions, columns):
            store_crossed(tensor, tensor_q, tensor_p, block, block_p, columns, positions)
            return
        if crosses(tensor_q, tensor_p, block_q, block_p, columns, positions):
            store_crossed(tensor, tensor_p, tensor_q, block, block_q, positions, columns)
            return
    if scalar is compute:
        if block_q == tensor_q == 1:
            copy_rows(tensor, tensor_p * sizeof(scalar), block, block_p * sizeof(compute), positions,
                      columns * sizeof(compute))
            return
    if llabs(tensor_q) <= llabs(tensor_p):
        for p in range(positions):
            to = tensor + p * tensor_p
            of = block + p * block_p
            if tensor_q == 1 and block_q == 1:
                fetch_row(to, tensor_p * sizeof(scalar), columns * sizeof(scalar))
                narrow_row(to, of, columns)
            else:
                for q in range(columns):
                    to[q * tensor_q] = narrow(of[q * block_q], to[0])
    else:
        for q in range(columns):
            to = tensor + q * tensor_q
            of = block + q * block_q
            if tensor_p == 1 and block_p == 1:
                narrow_row(to, of, positions)
            else:
                for p in range(positions):
                    to[p * tensor_p] = narrow(of[p * block_p], to[0])
