/* to[offset(i) + j] = of[j * of_row + i] for 0 <= i < rows, 0 <= j < columns: four by four elements at a time.
 * offset(i) is to_rows[i] or, without that table, i * to_row. */
#ifndef CONVGRAD_TRANSPOSE_H
#define CONVGRAD_TRANSPOSE_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t four_words __attribute__((vector_size(16), aligned(4), may_alias));

static inline void transpose_words(void *to_words, const int32_t *to_rows, int64_t to_row, const void *of_words,
                                   int64_t of_row, int64_t rows, int64_t columns)
{
    uint32_t *to = to_words;
    const uint32_t *of = of_words;
    const int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
    for (int64_t j = 0; j < whole_columns; j += 4) {
        for (int64_t i = 0; i < whole_rows; i += 4) {
            const uint32_t *from = of + j * of_row + i;
            const four_words a = *(const four_words *)from, b = *(const four_words *)(from + of_row);
            const four_words c = *(const four_words *)(from + 2 * of_row), d = *(const four_words *)(from + 3 * of_row);
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
                *(four_words *)(to + (to_rows != NULL ? to_rows[i + k] : (i + k) * to_row) + j) = lines[k];
        }
        for (int64_t i = whole_rows; i < rows; i++)
            for (int64_t k = j; k < j + 4; k++)
                to[(to_rows != NULL ? to_rows[i] : i * to_row) + k] = of[k * of_row + i];
    }
    for (int64_t j = whole_columns; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            to[(to_rows != NULL ? to_rows[i] : i * to_row) + j] = of[j * of_row + i];
}

#endif
