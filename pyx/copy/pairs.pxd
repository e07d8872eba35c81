"""Pairs of bfloat16 in 32-bit words: neighbours along the depth of a product, operands of dot-product instructions."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uintptr_t

from base.scalar cimport bf16, compute, scalar
from copy.load_store cimport AHEAD, MANY, PIECE, ROWS, copy_rows, fetch_row, fetch_run, transpose_words

cdef extern from "base/bfloat.h" nogil:
    void bf16_pair_rows(uint32_t *to, const bf16 *low, const bf16 *high, int64_t count)
    void bf16_pair_every_second(uint32_t *to, const bf16 *low, const bf16 *high, int64_t count)


cdef inline int64_t words_of(int64_t channels, bint pairs) noexcept nogil:
    """Elements of the compute type that hold the channels."""
    return (channels + 1) // 2 if pairs else channels


cdef inline void load_pairs(
    compute *block, const int32_t *places, int64_t block_p, const scalar *tensor, int64_t tensor_p, int64_t tensor_q,
    int64_t positions, int64_t columns,
) noexcept nogil:
    """Fill block[p * block_p + q] with a pair of neighbours along q.

        low half:  tensor[p * tensor_p + 2 * q * tensor_q]
        high half: tensor[p * tensor_p + (2 * q + 1) * tensor_q], or zero behind the last column

    With ``places`` the word goes to block[places[p] + q] instead. ``places`` requires tensor_q != 1.
    """
    cdef int64_t p, q, p0 = 0, q0, count, lines
    cdef uint32_t *word
    cdef uint32_t[ROWS * PIECE] words
    cdef const scalar *low
    cdef const scalar *high
    if scalar is bf16:
        if tensor_q == 1:
            copy_rows(block, block_p * sizeof(compute), tensor, tensor_p * sizeof(scalar), positions,
                      columns // 2 * sizeof(uint32_t))
            for p in range(positions if columns % 2 else 0):
                (<uint32_t *>(block + p * block_p))[columns // 2] = tensor[p * tensor_p + columns - 1].bits
            return
        while p0 < positions:  # pieces that fit on the stack are interleaved and then transposed
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
                        fetch_run(low + AHEAD, count * sizeof(scalar))
                        fetch_run(high + AHEAD, count * sizeof(scalar))
                        bf16_pair_rows(word, low, high, count)
                    elif tensor_p == 2 and count >= MANY:
                        bf16_pair_every_second(word, low, high, count)
                    else:
                        for p in range(count):
                            word[p] = low[p * tensor_p].bits | <uint32_t>high[p * tensor_p].bits << 16
                if places == NULL:
                    transpose_words(block + p0 * block_p + q0, NULL, block_p, words, PIECE, count, lines)
                else:
                    transpose_words(block + q0, places + p0, 0, words, PIECE, count, lines)
                q0 += lines
            p0 += count


cdef inline void load_paired_rows(
    compute *block, int64_t block_row, const scalar *tensor, int64_t tensor_p, int64_t tensor_q, int64_t positions,
    int64_t columns,
) noexcept nogil:
    """Fill block[p * block_row + q] with a pair of neighbours along p.

        low half:  tensor[2 * p * tensor_p + q * tensor_q]
        high half: tensor[(2 * p + 1) * tensor_p + q * tensor_q], or zero behind the last position
    """
    cdef int64_t p, q, p0 = 0, q0, count, lines, words = (positions + 1) // 2
    cdef uint32_t *word
    cdef uint32_t[ROWS * PIECE] staged
    cdef const scalar *low
    if scalar is bf16:
        if tensor_p == 1:  # a pair is one word of the tensor, so the copy is a transposition
            if tensor_q % 2 == 0 and <uintptr_t>tensor % sizeof(uint32_t) == 0:  # otherwise words are not aligned
                p0 = positions // 2
                transpose_words(block, NULL, block_row, tensor, tensor_q // 2, p0, columns)
            while p0 < words:
                count = min(<int64_t>PIECE, words - p0)
                q0 = 0
                while q0 < columns:
                    lines = min(<int64_t>ROWS, columns - q0)
                    copy_rows(<uint32_t *>staged, PIECE * sizeof(uint32_t), tensor + 2 * p0 + q0 * tensor_q,
                              tensor_q * sizeof(scalar), lines, min(2 * count, positions - 2 * p0) * sizeof(scalar))
                    if 2 * (p0 + count) > positions:
                        for q in range(lines):
                            staged[q * PIECE + count - 1] &= 0xffff
                    transpose_words(block + p0 * block_row + q0, NULL, block_row, <uint32_t *>staged, PIECE, count,
                                    lines)
                    q0 += lines
                p0 += count
            return
        for p in range(words):
            word = <uint32_t *>(block + p * block_row)
            low = tensor + 2 * p * tensor_p
            if 2 * p + 1 == positions:
                for q in range(columns):
                    word[q] = low[q * tensor_q].bits
            elif tensor_q == 1:
                fetch_row(low, tensor_p * sizeof(scalar), columns * sizeof(scalar))
                fetch_row(low + tensor_p, tensor_p * sizeof(scalar), columns * sizeof(scalar))
                bf16_pair_rows(word, low, low + tensor_p, columns)
            else:
                for q in range(columns):
                    word[q] = low[q * tensor_q].bits | <uint32_t>low[q * tensor_q + tensor_p].bits << 16


cdef inline void load_paired_taps(
    compute *block, int64_t width, const scalar *tensor, int64_t tensor_channel, int64_t tensor_row, int64_t taps,
    int64_t channels, int64_t columns,
) noexcept nogil:
    """Fill block[(t * words + i) * width + j] with a pair of neighbouring channels; taps are adjacent in the tensor.

        low half:  tensor[2 * i * tensor_channel + j * tensor_row + t]
        high half: tensor[(2 * i + 1) * tensor_channel + j * tensor_row + t], or zero behind the last channel

    There are at most PIECE taps.
    """
    cdef int64_t i, i0 = 0, t, j, j0, count, lines, words = words_of(channels, True), most = PIECE // taps
    cdef uint32_t *word
    cdef uint32_t[ROWS * PIECE] staged
    cdef int32_t[PIECE] places
    cdef const scalar *low
    if scalar is bf16:
        while i0 < words:
            count = min(most, words - i0)
            for i in range(count):
                for t in range(taps):
                    places[i * taps + t] = <int32_t>((t * words + i0 + i) * width)
            j0 = 0
            while j0 < columns:
                lines = min(<int64_t>ROWS, columns - j0)
                for j in range(lines):
                    for i in range(count):
                        word = <uint32_t *>staged + j * PIECE + i * taps
                        low = tensor + 2 * (i0 + i) * tensor_channel + (j0 + j) * tensor_row
                        if 2 * (i0 + i) + 1 < channels:
                            bf16_pair_rows(word, low, low + tensor_channel, taps)
                        else:
                            for t in range(taps):
                                word[t] = low[t].bits
                transpose_words(block + j0, <int32_t *>places, 0, <uint32_t *>staged, PIECE, count * taps, lines)
                j0 += lines
            i0 += count


cdef inline void join_lines(compute *to, const compute *low, const compute *high, int64_t length) noexcept nogil:
    """to[i] = the pair of low[i] and high[i], which are exact in bfloat16. ``to`` may start at ``low`` or before it."""
    cdef int64_t i
    cdef uint32_t *word = <uint32_t *>to
    cdef const uint32_t *first = <const uint32_t *>low
    cdef const uint32_t *second = <const uint32_t *>high
    if compute is float:
        for i in range(length):
            word[i] = first[i] >> 16 | second[i] & <uint32_t>0xffff0000


cdef inline void shift_line(compute *to, const compute *low, int64_t length) noexcept nogil:
    """to[i] = the pair of low[i] and zero."""
    cdef int64_t i
    if compute is float:
        for i in range(length):
            (<uint32_t *>to)[i] = (<const uint32_t *>low)[i] >> 16
