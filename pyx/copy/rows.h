/* Copies of rows of bytes. Most rows are so short that a call of memcpy would take longer than the copy itself. */
#ifndef CONVGRAD_ROWS_H
#define CONVGRAD_ROWS_H

#include <stdint.h>
#include <string.h>

#include "copy/shuffle.h"
#include "tile/ukernel.h"

#define ROW_PIECE 32
#define SHORT_PIECE 8
#define LONG_ROW 4096
#define ROWS_AHEAD 8
#define ROWS_APART 512

/* Copies a row of at least one piece. The last piece may overlap the one before. */
static inline __attribute__((always_inline)) void
copy_pieces(char *to, const char *of, int64_t bytes, const int64_t piece)
{
    int64_t i = 0;
    for (; i < bytes - piece; i += piece)
        memcpy(to + i, of + i, (size_t)piece);
    memcpy(to + bytes - piece, of + bytes - piece, (size_t)piece);
}

/* Prefetches adjacent bytes into the L2 cache. */
static inline __attribute__((always_inline)) void fetch_run(const void *first, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)first + i, 0, 2);
}

/* Prefetches the row that is read or written ROWS_AHEAD rows later into the L2 cache. Only rows that lie far apart need
 * it: the processor's own prefetcher does not foresee them. */
static inline __attribute__((always_inline)) void fetch_row(const void *row, int64_t of_row, int64_t bytes)
{
    if (of_row >= ROWS_APART && bytes <= of_row / 2)
        fetch_run((const char *)row + ROWS_AHEAD * of_row, bytes);
}

#define COPY_CASE(length)                                                                                              \
    case length:                                                                                                       \
        for (int64_t i = 0; i < rows; i++) {                                                                           \
            fetch_row((const char *)of + i * of_row, of_row, length);                                                  \
            memcpy((char *)to + i * to_row, (const char *)of + i * of_row, length);                                    \
        }                                                                                                              \
        break;

/* Copies `rows` rows of `bytes` bytes. The strides to_row and of_row are in bytes. */
static inline void copy_rows(void *to, int64_t to_row, const void *of, int64_t of_row, int64_t rows, int64_t bytes)
{
    switch (bytes) {
        COPY_CASE(4)
        COPY_CASE(8)
        COPY_CASE(12)
        COPY_CASE(16)
        COPY_CASE(32)
        COPY_CASE(64)
        COPY_CASE(128)
        COPY_CASE(256)
    default:
        if (bytes >= ROW_PIECE && bytes < LONG_ROW) {
            for (int64_t i = 0; i < rows; i++) {
                fetch_row((const char *)of + i * of_row, of_row, bytes);
                copy_pieces((char *)to + i * to_row, (const char *)of + i * of_row, bytes, ROW_PIECE);
            }
            break;
        }
        if (bytes >= SHORT_PIECE && bytes < ROW_PIECE) {
            for (int64_t i = 0; i < rows; i++)
                copy_pieces((char *)to + i * to_row, (const char *)of + i * of_row, bytes, SHORT_PIECE);
            break;
        }
        for (int64_t i = 0; i < rows; i++)
            memcpy((char *)to + i * to_row, (const char *)of + i * of_row, (size_t)bytes);
    }
}

#undef COPY_CASE

/* to[strip][row] = of[row][strip], where a strip is as wide as a full register tile. The inner loop runs over the
 * strips of a row, because memory delivers its full bandwidth only for consecutive cache lines. Strides are in bytes.
 * */
static inline void copy_strips(void *to, int64_t to_strip, const void *of, int64_t of_row, int64_t rows, int64_t strips)
{
    const int64_t bytes = TILE_VECTORS * VECTOR_BYTES;
    for (int64_t i = 0; i < rows; i++) {
        fetch_row((const char *)of + i * of_row, of_row, strips * bytes);
        for (int64_t s = 0; s < strips; s++)
            memcpy((char *)to + s * to_strip + i * bytes, (const char *)of + i * of_row + s * bytes, bytes);
    }
}

/* Copies every second of 2 * count - 1 words of 4 bytes, the first one included. The second vector of a step begins one
 * word early, so that nothing behind the last of these words is read. The last step overlaps the one before. */
static inline void copy_every_second(void *to_words, const void *of_words, int64_t count)
{
    uint32_t *to = to_words;
    const uint32_t *of = of_words;
#if VECTOR_BYTES >= 32
    if (count >= 8) {
        for (int64_t i = 0; i < count; i += 8) {
            const int64_t k = i + 8 <= count ? i : count - 8;
            *(eight_words *)(to + k) = SHUFFLE(*(const eight_words *)(of + 2 * k),
                                               *(const eight_words *)(of + 2 * k + 7), 0, 2, 4, 6, 9, 11, 13, 15);
        }
        return;
    }
#endif
    if (count >= 4) {
        for (int64_t i = 0; i < count; i += 4) {
            const int64_t k = i + 4 <= count ? i : count - 4;
            *(four_words *)(to + k) =
                SHUFFLE(*(const four_words *)(of + 2 * k), *(const four_words *)(of + 2 * k + 3), 0, 2, 5, 7);
        }
        return;
    }
    for (int64_t i = 0; i < count; i++)
        to[i] = of[2 * i];
}

/* to[2 * i] = even[i] and to[2 * i + 1] = odd[i] for i < count, words of 4 bytes. The last step overlaps the one
 * before. */
static inline void interleave_words(void *to_words, const void *even_words, const void *odd_words, int64_t count)
{
    uint32_t *to = to_words;
    const uint32_t *even = even_words, *odd = odd_words;
#if VECTOR_BYTES >= 32
    if (count >= 8) {
        for (int64_t i = 0; i < count; i += 8) {
            const int64_t k = i + 8 <= count ? i : count - 8;
            const eight_words a = *(const eight_words *)(even + k), b = *(const eight_words *)(odd + k);
            *(eight_words *)(to + 2 * k) = SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
            *(eight_words *)(to + 2 * k + 8) = SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
        }
        return;
    }
#endif
    if (count >= 4) {
        for (int64_t i = 0; i < count; i += 4) {
            const int64_t k = i + 4 <= count ? i : count - 4;
            const four_words a = *(const four_words *)(even + k), b = *(const four_words *)(odd + k);
            *(four_words *)(to + 2 * k) = SHUFFLE(a, b, 0, 4, 1, 5);
            *(four_words *)(to + 2 * k + 4) = SHUFFLE(a, b, 2, 6, 3, 7);
        }
        return;
    }
    for (int64_t i = 0; i < count; i++)
        to[2 * i] = even[i], to[2 * i + 1] = odd[i];
}

/* to[i * step] = of[i] for i < count, words of 4 bytes. Not inlined, because in a function with many variables GCC
 * keeps this loop's variables in memory. */
static __attribute__((noinline)) void spread_words(void *to_words, int64_t step, const void *of_words, int64_t count)
{
    uint32_t *to = to_words;
    const uint32_t *of = of_words;
    for (int64_t i = 0; i < count; i++)
        to[i * step] = of[i];
}

#endif
