/* Transposed copies of 32-bit elements, compiled by themselves in transpose.c: where GCC fits them to the calls of one source,
 * they take a tenth longer. */
#ifndef CONVGRAD_TRANSPOSE_H
#define CONVGRAD_TRANSPOSE_H

#include <stdint.h>

void transpose_words(void *to, const int32_t *to_rows, int64_t to_row, const void *of, int64_t of_row, int64_t rows,
                     int64_t columns);

#endif
