/* Transposed copies of 32-bit elements. They are compiled in a unit of their own, transpose.c: GCC's specializations
 * for the calls of one source make them 10 % slower. */
#ifndef CONVGRAD_TRANSPOSE_H
#define CONVGRAD_TRANSPOSE_H

#include <stdint.h>

void transpose_words(void *to, const int32_t *to_rows, int64_t to_row, const void *of, int64_t of_row, int64_t rows,
                     int64_t columns);

#endif
