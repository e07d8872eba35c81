/* to[offset(i) + j] = of[j * of_row + i] for 0 <= i < rows, 0 <= j < columns. offset(i) is to_rows[i] or, without that
 * table, i * to_row.
 *
 * The copy goes by squares of 16 x 16, 8 x 8 or 4 x 4 elements, the largest that vectors and extents allow. A remainder
 * on an axis takes smaller squares, which may overlap others.
 *
 * Order of the squares. Rows a page or more apart are in many pages and may fall into the same cache set, which holds
 * eight lines. If the target has such rows, or a table, squares follow each other along rows of the target. Otherwise
 * they follow each other along rows of the source, which may have such rows instead.
 *
 * Prefetch. Both orders read from more streams than the processor's own prefetcher follows, so a later band is
 * prefetched into the L2 cache. By columns this is done if the source's rows are further apart than consecutive lines.
 * By rows it is done if there is a table, because the source is then a filter, which comes from memory. The prefetch
 * may go beyond the last column, where the next copy usually begins. */
#include "copy/transpose.h"

#include <stddef.h>

#include "copy/shuffle.h"
#include "tile/ukernel.h"

#define PAGE_WORDS 1024
#define LINE_WORDS 16
#define APART_WORDS 32
#define BANDS_AHEAD 2

typedef struct {
    uint32_t *to;
    const int32_t *to_rows;
    int64_t to_row;
    const uint32_t *of;
    int64_t of_row;
} transposition;

static inline uint32_t *transpose_row(const transposition *t, int64_t i)
{
    return t->to + (t->to_rows != NULL ? t->to_rows[i] : i * t->to_row);
}

#if VECTOR_BYTES >= 32
/* An 8 x 8 square at (i, j). The halves of lines k and k + 4 are joined first. Then each half of a vector holds 4 x 4
 * squares, which are transposed independently. */
static inline __attribute__((always_inline)) void transpose_eight(const transposition *t, int64_t i, int64_t j)
{
    const uint32_t *from = t->of + j * t->of_row + i;
    eight_words joined[2][4];
#pragma GCC unroll 4
    for (int64_t k = 0; k < 4; k++) {
        const eight_words near = *(const eight_words *)(from + k * t->of_row);
        const eight_words far = *(const eight_words *)(from + (k + 4) * t->of_row);
        joined[0][k] = SHUFFLE(near, far, 0, 1, 2, 3, 8, 9, 10, 11);
        joined[1][k] = SHUFFLE(near, far, 4, 5, 6, 7, 12, 13, 14, 15);
    }
#pragma GCC unroll 2
    for (int64_t half = 0; half < 2; half++) {
        const eight_words a = joined[half][0], b = joined[half][1], c = joined[half][2], d = joined[half][3];
        const eight_words ab_low = SHUFFLE(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
        const eight_words ab_high = SHUFFLE(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
        const eight_words cd_low = SHUFFLE(c, d, 0, 8, 1, 9, 4, 12, 5, 13);
        const eight_words cd_high = SHUFFLE(c, d, 2, 10, 3, 11, 6, 14, 7, 15);
        const eight_words lines[4] = {
            SHUFFLE(ab_low, cd_low, 0, 1, 8, 9, 4, 5, 12, 13),
            SHUFFLE(ab_low, cd_low, 2, 3, 10, 11, 6, 7, 14, 15),
            SHUFFLE(ab_high, cd_high, 0, 1, 8, 9, 4, 5, 12, 13),
            SHUFFLE(ab_high, cd_high, 2, 3, 10, 11, 6, 7, 14, 15),
        };
#pragma GCC unroll 4
        for (int64_t k = 0; k < 4; k++)
            *(eight_words *)(transpose_row(t, i + 4 * half + k) + j) = lines[k];
    }
}
#endif

#if VECTOR_BYTES >= 64
typedef uint32_t sixteen_words __attribute__((vector_size(64), aligned(4), may_alias));

/* A 16 x 16 square at (i, j), whole cache lines on both sides if aligned. First 4 x 4 squares are transposed in each
 * quarter of a vector, then the quarters change places. */
static inline __attribute__((always_inline)) void transpose_sixteen(const transposition *t, int64_t i, int64_t j)
{
    const uint32_t *from = t->of + j * t->of_row + i;
    sixteen_words quarters[4][4];
#pragma GCC unroll 4
    for (int64_t k = 0; k < 4; k++) {
        const sixteen_words a = *(const sixteen_words *)(from + 4 * k * t->of_row);
        const sixteen_words b = *(const sixteen_words *)(from + (4 * k + 1) * t->of_row);
        const sixteen_words c = *(const sixteen_words *)(from + (4 * k + 2) * t->of_row);
        const sixteen_words d = *(const sixteen_words *)(from + (4 * k + 3) * t->of_row);
        const sixteen_words ab_low = SHUFFLE(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
        const sixteen_words ab_high = SHUFFLE(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
        const sixteen_words cd_low = SHUFFLE(c, d, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
        const sixteen_words cd_high = SHUFFLE(c, d, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
        quarters[0][k] = SHUFFLE(ab_low, cd_low, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        quarters[1][k] = SHUFFLE(ab_low, cd_low, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        quarters[2][k] = SHUFFLE(ab_high, cd_high, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        quarters[3][k] = SHUFFLE(ab_high, cd_high, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
#pragma GCC unroll 4
    for (int64_t k = 0; k < 4; k++) {
        const sixteen_words a = quarters[k][0], b = quarters[k][1], c = quarters[k][2], d = quarters[k][3];
        const sixteen_words ab_first = SHUFFLE(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        const sixteen_words ab_last = SHUFFLE(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        const sixteen_words cd_first = SHUFFLE(c, d, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        const sixteen_words cd_last = SHUFFLE(c, d, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        const sixteen_words lines[4] = {
            SHUFFLE(ab_first, cd_first, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27),
            SHUFFLE(ab_first, cd_first, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31),
            SHUFFLE(ab_last, cd_last, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27),
            SHUFFLE(ab_last, cd_last, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31),
        };
#pragma GCC unroll 4
        for (int64_t quarter = 0; quarter < 4; quarter++)
            *(sixteen_words *)(transpose_row(t, i + 4 * quarter + k) + j) = lines[quarter];
    }
}
#endif

static inline __attribute__((always_inline)) void transpose_four(const transposition *t, int64_t i, int64_t j)
{
    const uint32_t *from = t->of + j * t->of_row + i;
    const four_words a = *(const four_words *)from, b = *(const four_words *)(from + t->of_row);
    const four_words c = *(const four_words *)(from + 2 * t->of_row), d = *(const four_words *)(from + 3 * t->of_row);
    const four_words ab_low = SHUFFLE(a, b, 0, 4, 1, 5);
    const four_words ab_high = SHUFFLE(a, b, 2, 6, 3, 7);
    const four_words cd_low = SHUFFLE(c, d, 0, 4, 1, 5);
    const four_words cd_high = SHUFFLE(c, d, 2, 6, 3, 7);
    const four_words lines[4] = {
        SHUFFLE(ab_low, cd_low, 0, 1, 4, 5),
        SHUFFLE(ab_low, cd_low, 2, 3, 6, 7),
        SHUFFLE(ab_high, cd_high, 0, 1, 4, 5),
        SHUFFLE(ab_high, cd_high, 2, 3, 6, 7),
    };
    for (int64_t k = 0; k < 4; k++)
        *(four_words *)(transpose_row(t, i + k) + j) = lines[k];
}

/* Prefetches the first line of each of `count` rows. Not inlined: inlined into the loops below, it makes squares of
 * four 25 % slower even when it is not called. */
static __attribute__((noinline)) void fetch_lines(const uint32_t *from, int64_t row, int64_t count)
{
    for (int64_t k = 0; k < count; k++)
        __builtin_prefetch(from + k * row, 0, 2);
}

/* Transposes rows i .. rows - 1 of columns j .. columns - 1 by squares of size x size elements, in bands of `size`
 * columns (by_columns) or rows. There is at least one square on each axis. The last square of an axis may overlap the
 * one before. */
static inline __attribute__((always_inline)) void
transpose_squares(const transposition *t, void (*square)(const transposition *, int64_t, int64_t), const int64_t size,
                  int by_columns, int64_t i, int64_t rows, int64_t j, int64_t columns)
{
    if (by_columns) {
        const int fetches = t->of_row >= APART_WORDS && rows - i >= LINE_WORDS;
        for (int64_t column = j; column < columns; column += size)
            for (int64_t row = i; row < rows; row += size) {
                if (fetches && (row - i) % LINE_WORDS == 0)
                    fetch_lines(t->of + (column + BANDS_AHEAD * size) * t->of_row + row, t->of_row, size);
                square(t, row < rows - size ? row : rows - size, column < columns - size ? column : columns - size);
            }
    } else {
        for (int64_t row = i; row < rows; row += size)
            for (int64_t column = j; column < columns; column += size) {
                if (t->to_rows != NULL && row + size < rows)
                    fetch_lines(t->of + column * t->of_row + row + size, t->of_row, size);
                square(t, row < rows - size ? row : rows - size, column < columns - size ? column : columns - size);
            }
    }
}

static inline __attribute__((always_inline)) void transpose_part(const transposition *t, int64_t size, int by_columns,
                                                                 int64_t i, int64_t rows, int64_t j, int64_t columns)
{
    switch (size) {
#if VECTOR_BYTES >= 64
    case 16: transpose_squares(t, transpose_sixteen, 16, by_columns, i, rows, j, columns); break;
#endif
#if VECTOR_BYTES >= 32
    case 8: transpose_squares(t, transpose_eight, 8, by_columns, i, rows, j, columns); break;
#endif
    case 4: transpose_squares(t, transpose_four, 4, by_columns, i, rows, j, columns); break;
    }
}

/* The size of the smallest square that has at least `rows` rows. */
static inline int64_t square_that_holds(int64_t rows)
{
    return rows <= 4 ? 4 : rows <= 8 ? 8 : 16;
}

void transpose_words(void *to, const int32_t *to_rows, int64_t to_row, const void *of, int64_t of_row, int64_t rows,
                     int64_t columns)
{
    const transposition t = {to, to_rows, to_row, of, of_row};
    const int64_t least = rows < columns ? rows : columns;
    if (least < 4) {
        for (int64_t row = 0; row < rows; row++) {
            uint32_t *line = transpose_row(&t, row);
            for (int64_t column = 0; column < columns; column++)
                line[column] = t.of[column * of_row + row];
        }
        return;
    }
    const int64_t size = VECTOR_BYTES >= 64 && least >= 16 ? 16 : VECTOR_BYTES >= 32 && least >= 8 ? 8 : 4;
    const int64_t row_end = rows - rows % size, column_end = columns - columns % size;
    const int by_columns = to_rows == NULL && to_row < PAGE_WORDS;
    transpose_part(&t, size, by_columns, 0, row_end, 0, column_end);
    if (row_end < rows) {
        const int64_t last = square_that_holds(rows - row_end);
        transpose_part(&t, last, by_columns, rows - last, rows, 0, columns);
    }
    if (column_end < columns) {
        const int64_t last = square_that_holds(columns - column_end);
        transpose_part(&t, last, by_columns, 0, row_end, columns - last, columns);
    }
}
