/* to[offset(i) + j] = of[j * of_row + i] for 0 <= i < rows, 0 <= j < columns; offset(i) is to_rows[i] or, without that
 * table, i * to_row.
 *
 * Four by four elements at a time, in bands of eight rows: a band's cache lines are then filled one after the other, and
 * survive although rows a power of two apart share their place in the cache. */
#ifndef CONVGRAD_TRANSPOSE_H
#define CONVGRAD_TRANSPOSE_H

#include <stddef.h>
#include <stdint.h>

#define TRANSPOSE_BAND 8

typedef uint32_t four_words __attribute__((vector_size(16), aligned(4), may_alias));

static inline uint32_t *transpose_row(uint32_t *to, const int32_t *to_rows, int64_t to_row, int64_t i)
{
    return to + (to_rows != NULL ? to_rows[i] : i * to_row);
}

static inline void transpose_words(void *to_words, const int32_t *to_rows, int64_t to_row, const void *of_words,
                                   int64_t of_row, int64_t rows, int64_t columns)
{
    uint32_t *to = to_words;
    const uint32_t *of = of_words;
    const int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
    for (int64_t band = 0; band < whole_rows; band += TRANSPOSE_BAND) {
        const int64_t end = band + TRANSPOSE_BAND < whole_rows ? band + TRANSPOSE_BAND : whole_rows;
        for (int64_t j = 0; j < whole_columns; j += 4) {
            for (int64_t i = band; i < end; i += 4) {
                const uint32_t *from = of + j * of_row + i;
                const four_words a = *(const four_words *)from, b = *(const four_words *)(from + of_row);
                const four_words c = *(const four_words *)(from + 2 * of_row);
                const four_words d = *(const four_words *)(from + 3 * of_row);
                const four_words ab_low = __builtin_shuffle(a, b, (four_words){0, 4, 1, 5});
                const four_words ab_high = __builtin_shuffle(a, b, (four_words){2, 6, 3, 7});
                const four_words cd_low = __builtin_shuffle(c, d, (four_words){0, 4, 1, 5});
                const four_words cd_high = __builtin_shuffle(c, d, (four_words){2, 6, 3, 7});
                const four_words lines[4] = {
                    __builtin_shuffle(ab_low, cd_low, (four_words){0, 1, 4, 5}),
                    __builtin_shuffle(ab_low, cd_low, (four_words){2, 3, 6, 7}),
                    __builtin_shuffle(ab_high, cd_high, (four_words){0, 1, 4, 5}),
                    __builtin_shuffle(ab_high, cd_high, (four_words){2, 3, 6, 7}),
                };
                for (int64_t k = 0; k < 4; k++)
                    *(four_words *)(transpose_row(to, to_rows, to_row, i + k) + j) = lines[k];
            }
        }
    }
    for (int64_t i = 0; i < whole_rows; i++)
        for (int64_t j = whole_columns; j < columns; j++)
            transpose_row(to, to_rows, to_row, i)[j] = of[j * of_row + i];
    for (int64_t i = whole_rows; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            transpose_row(to, to_rows, to_row, i)[j] = of[j * of_row + i];
}

#endif
