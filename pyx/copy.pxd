"""Copies between tensors of a storage type and blocks of the compute type.

    block[p * block_p + q * block_q]  =  tensor[p * tensor_p + q * tensor_q]      widened   (load_block)
    tensor[p * tensor_p + q * tensor_q]  =  block[p * block_p + q * block_q]      narrowed  (store_block)
"""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport llabs
from libc.string cimport memcpy, memset

from scalar cimport bf16, compute, f16, narrow, narrow_row, scalar, widen, widen_row

cdef extern from "transpose.h" nogil:
    void transpose_words(void *to, const int32_t *to_rows, int64_t to_row, const void *of, int64_t of_row,
                         int64_t rows, int64_t columns)


cdef enum:
    PIECE = 64  # elements of a row that are widened or narrowed before they are transposed
    ROWS = 16


cdef inline void load_halves_transposed(
    float *block, const int32_t *block_rows, int64_t block_row, const scalar *tensor, int64_t tensor_row, int64_t rows,
    int64_t columns,
) noexcept nogil:
    """block[row i + j] = tensor[j * tensor_row + i] for i < rows, j < columns, in pieces that are widened first."""
    cdef float[ROWS * PIECE] wide
    cdef int64_t i0 = 0, j0, j, count, lines
    while i0 < rows:
        count = min(<int64_t>PIECE, rows - i0)
        j0 = 0
        while j0 < columns:
            lines = min(<int64_t>ROWS, columns - j0)
            for j in range(lines):
                widen_row(<float *>wide + j * PIECE, tensor + (j0 + j) * tensor_row + i0, count)
            if block_rows == NULL:
                transpose_words(block + i0 * block_row + j0, NULL, block_row, <float *>wide, PIECE, count, lines)
            else:
                transpose_words(block + j0, block_rows + i0, 0, <float *>wide, PIECE, count, lines)
            j0 += lines
        i0 += count


cdef inline void store_halves_transposed(
    scalar *tensor, int64_t tensor_row, const float *block, int64_t block_row, int64_t rows, int64_t columns
) noexcept nogil:
    """tensor[i * tensor_row + j] = block[j * block_row + i] for i < rows, j < columns, in pieces then narrowed."""
    cdef float[ROWS * PIECE] wide
    cdef int64_t i0 = 0, i, j0, count, lines
    while i0 < rows:
        lines = min(<int64_t>ROWS, rows - i0)
        j0 = 0
        while j0 < columns:
            count = min(<int64_t>PIECE, columns - j0)
            transpose_words(<float *>wide, NULL, PIECE, block + j0 * block_row + i0, block_row, lines, count)
            for i in range(lines):
                narrow_row(tensor + (i0 + i) * tensor_row + j0, <float *>wide + i * PIECE, count)
            j0 += count
        i0 += lines


cdef inline void load_block(
    compute *block, int64_t block_p, int64_t block_q,
    const scalar *tensor, int64_t tensor_p, int64_t tensor_q, int64_t positions, int64_t columns,
) noexcept nogil:
    """The loop along the block's adjacent elements innermost."""
    cdef int64_t p, q
    cdef compute *to
    cdef const scalar *of
    if (scalar is float and compute is float) or (scalar is int and compute is int):
        if block_q == 1 and tensor_p == 1 and tensor_q != 1 and columns > 1:
            transpose_words(block, NULL, block_p, tensor, tensor_q, positions, columns)
            return
        if block_p == 1 and tensor_q == 1 and tensor_p != 1 and positions > 1:
            transpose_words(block, NULL, block_q, tensor, tensor_p, columns, positions)
            return
    elif (scalar is f16 or scalar is bf16) and compute is float:
        if block_q == 1 and tensor_p == 1 and tensor_q != 1 and columns > 1:
            load_halves_transposed(block, NULL, block_p, tensor, tensor_q, positions, columns)
            return
        if block_p == 1 and tensor_q == 1 and tensor_p != 1 and positions > 1:
            load_halves_transposed(block, NULL, block_q, tensor, tensor_p, columns, positions)
            return
    if block_q == tensor_q == 1 and block_p == tensor_p == columns:  # all in one piece: a row of few channels
        widen_row(block, tensor, positions * columns)
    elif block_q == 1:
        for p in range(positions):
            to = block + p * block_p
            of = tensor + p * tensor_p
            if tensor_q == 1:
                widen_row(to, of, columns)
            else:
                for q in range(columns):
                    to[q] = widen(of[q * tensor_q], to[0])
    else:
        for q in range(columns):
            to = block + q * block_q
            of = tensor + q * tensor_q
            if block_p == 1 and tensor_p == 1:
                widen_row(to, of, positions)
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
        load_halves_transposed(block, block_rows, 0, tensor, tensor_row, rows, columns)
    else:
        for i in range(rows):
            for j in range(columns):
                block[block_rows[i] + j] = widen(tensor[j * tensor_row + i], block[0])


cdef inline int64_t words_of(int64_t channels, bint pairs) noexcept nogil:
    """Elements of the compute type that hold the channels."""
    return (channels + 1) // 2 if pairs else channels


cdef inline void load_pairs(
    compute *block, int64_t block_p, const scalar *tensor, int64_t tensor_p, int64_t tensor_q, int64_t positions,
    int64_t columns,
) noexcept nogil:
    """block[p * block_p + q], its low half from tensor[p * tensor_p + 2 * q * tensor_q], its high half the next."""
    cdef int64_t p, q, p0 = 0, q0, count, lines
    cdef uint32_t *word
    cdef uint32_t[ROWS * PIECE] words
    cdef const scalar *low
    cdef const scalar *high
    if scalar is bf16:
        if tensor_q == 1:
            for p in range(positions):
                word = <uint32_t *>(block + p * block_p)
                memcpy(word, tensor + p * tensor_p, columns // 2 * 4)
                if columns % 2:
                    word[columns // 2] = tensor[p * tensor_p + columns - 1].bits
            return
        while p0 < positions:  # as much as fits on the stack, interleaved and then transposed
            count = min(<int64_t>PIECE, positions - p0)
            q0 = 0
            while 2 * q0 < columns:
                lines = min(<int64_t>ROWS, (columns + 1) // 2 - q0)
                for q in range(lines):
                    word = <uint32_t *>words + q * PIECE
                    low = tensor + p0 * tensor_p + 2 * (q0 + q) * tensor_q
                    high = low + tensor_q
                    if 2 * (q0 + q) + 1 == columns:
                        for p in range(count):
                            word[p] = low[p * tensor_p].bits
                    elif tensor_p == 1:
                        for p in range(count):
                            word[p] = low[p].bits | <uint32_t>high[p].bits << 16
                    else:
                        for p in range(count):
                            word[p] = low[p * tensor_p].bits | <uint32_t>high[p * tensor_p].bits << 16
                transpose_words(block + p0 * block_p + q0, NULL, block_p, words, PIECE, count, lines)
                q0 += lines
            p0 += count


cdef inline void join_lines(compute *to, const compute *low, const compute *high, int64_t length) noexcept nogil:
    """to[i] = the pair of low[i] and high[i], which are exact in bfloat16; ``to`` may be ``low`` or before it."""
    cdef int64_t i
    cdef uint32_t *word = <uint32_t *>to
    cdef const uint32_t *first = <const uint32_t *>low
    cdef const uint32_t *second = <const uint32_t *>high
    if compute is float:
        for i in range(length):
            word[i] = first[i] >> 16 | second[i] & <uint32_t>0xffff0000


cdef inline void shift_line(compute *to, const compute *low, int64_t length) noexcept nogil:
    """As ``join_lines`` with a line of zeros."""
    cdef int64_t i
    if compute is float:
        for i in range(length):
            (<uint32_t *>to)[i] = (<const uint32_t *>low)[i] >> 16


cdef inline void zero_block(
    compute *block, int64_t block_p, int64_t block_q, int64_t positions, int64_t columns
) noexcept nogil:
    cdef int64_t p, q
    if block_q == 1:
        for p in range(positions):
            memset(block + p * block_p, 0, columns * sizeof(compute))
    else:
        for q in range(columns):
            for p in range(positions):
                block[p * block_p + q * block_q] = 0


cdef inline void store_block(
    scalar *tensor, int64_t tensor_p, int64_t tensor_q,
    const compute *block, int64_t block_p, int64_t block_q, int64_t positions, int64_t columns,
) noexcept nogil:
    """The loop along the tensor's nearer elements innermost."""
    cdef int64_t p, q
    cdef scalar *to
    cdef const compute *of
    if (scalar is float and compute is float) or (scalar is int and compute is int):
        if tensor_p == 1 and block_q == 1 and tensor_q != 1 and columns > 1:
            transpose_words(tensor, NULL, tensor_q, block, block_p, columns, positions)
            return
        if tensor_q == 1 and block_p == 1 and tensor_p != 1 and positions > 1:
            transpose_words(tensor, NULL, tensor_p, block, block_q, positions, columns)
            return
    elif (scalar is f16 or scalar is bf16) and compute is float:
        if tensor_p == 1 and block_q == 1 and tensor_q != 1 and columns > 1:
            store_halves_transposed(tensor, tensor_q, block, block_p, columns, positions)
            return
        if tensor_q == 1 and block_p == 1 and tensor_p != 1 and positions > 1:
            store_halves_transposed(tensor, tensor_p, block, block_q, positions, columns)
            return
    if llabs(tensor_q) <= llabs(tensor_p):
        for p in range(positions):
            to = tensor + p * tensor_p
            of = block + p * block_p
            if tensor_q == 1 and block_q == 1:
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
