/* Rows of adjacent elements, added to other rows. Most rows are short, so the last vector of a row overlaps the one
 * before it instead of a scalar remainder. */
#ifndef CONVGRAD_ADD_H
#define CONVGRAD_ADD_H

#include <stdint.h>
#include <string.h>

/* Adds rows of at least one vector. The sum of the last vector is formed before any other is stored, because they
 * overlap. */
#define ADD_PIECES(type, lanes)                                                                                        \
    if (count >= lanes) {                                                                                              \
        typedef type piece __attribute__((vector_size(lanes * sizeof(type))));                                         \
        const int64_t last = count - lanes;                                                                            \
        for (; rows > 0; rows--, to += to_row, of += of_row) {                                                         \
            piece one, two, end;                                                                                       \
            memcpy(&end, to + last, sizeof(piece));                                                                    \
            memcpy(&two, of + last, sizeof(piece));                                                                    \
            end += two;                                                                                                \
            for (int64_t i = 0; i < last; i += lanes) {                                                                \
                memcpy(&one, to + i, sizeof(piece));                                                                   \
                memcpy(&two, of + i, sizeof(piece));                                                                   \
                one += two;                                                                                            \
                memcpy(to + i, &one, sizeof(piece));                                                                   \
            }                                                                                                          \
            memcpy(to + last, &end, sizeof(piece));                                                                    \
        }                                                                                                              \
        return;                                                                                                        \
    }

#define ADD_ROWS(type)                                                                                                 \
    /* to[r * to_row + i] += of[r * of_row + i] for r < rows, i < count. Rows of `to` must not overlap each other. */  \
    static inline void add_##type##_rows(type *to, int64_t to_row, const type *of, int64_t of_row, int64_t rows,       \
                                         int64_t count)                                                                \
    {                                                                                                                  \
        ADD_PIECES(type, 16)                                                                                           \
        ADD_PIECES(type, 8)                                                                                            \
        ADD_PIECES(type, 4)                                                                                            \
        ADD_PIECES(type, 2)                                                                                            \
        for (int64_t i = 0; count > 0 && i < rows; i++)                                                                \
            to[i * to_row] += of[i * of_row];                                                                          \
    }

ADD_ROWS(float)
ADD_ROWS(double)
ADD_ROWS(int)

#endif
