"""Copies between tensors of a storage type and blocks of the compute type.

    block[p * block_p + q * block_q]  =  tensor[p * tensor_p + q * tensor_q]      widened   (load_block)
    tensor[p * tensor_p + q * tensor_q]  =  block[p * block_p + q * block_q]      narrowed  (store_block)
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport llabs
from libc.string cimport memcpy, memset

from scalar cimport compute, narrow, scalar, widen

cdef extern from "transpose.h" nogil:
    void transpose_words(void *to, const int32_t *to_rows, int64_t to_row, const void *of, int64_t of_row,
                         int64_t rows, int64_t columns)


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
        if block_q == 1 and tensor_q == 1:
            if block_p == columns and tensor_p == columns:
                positions, columns = min(positions, <int64_t>1), positions * columns
            for p in range(positions):
                memcpy(block + p * block_p, tensor + p * tensor_p, columns * sizeof(compute))
            return
    if block_q == 1:
        for p in range(positions):
            to = block + p * block_p
            of = tensor + p * tensor_p
            if tensor_q == 1:
                for q in range(columns):
                    to[q] = widen(of[q], to[0])
            else:
                for q in range(columns):
                    to[q] = widen(of[q * tensor_q], to[0])
    else:
        for q in range(columns):
            to = block + q * block_q
            of = tensor + q * tensor_q
            if block_p == 1 and tensor_p == 1:
                for p in range(positions):
                    to[p] = widen(of[p], to[0])
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
    if llabs(tensor_q) <= llabs(tensor_p):
        for p in range(positions):
            to = tensor + p * tensor_p
            of = block + p * block_p
            if tensor_q == 1 and block_q == 1:
                for q in range(columns):
                    to[q] = narrow(of[q], to[0])
            else:
                for q in range(columns):
                    to[q * tensor_q] = narrow(of[q * block_q], to[0])
    else:
        for q in range(columns):
            to = tensor + q * tensor_q
            of = block + q * block_q
            if tensor_p == 1 and block_p == 1:
                for p in range(positions):
                    to[p] = narrow(of[p], to[0])
            else:
                for p in range(positions):
                    to[p * tensor_p] = narrow(of[p * block_p], to[0])
