/* Rows of bytes, copied one after the other; most are short, and a call of memcpy for each would take longer than it. */
#ifndef CONVGRAD_ROWS_H
#define CONVGRAD_ROWS_H

#include <stdint.h>
#include <string.h>

#define COPY_CASE(length)                                                                                              \
    case length:                                                                                                       \
        for (int64_t i = 0; i < rows; i++)                                                                             \
            memcpy((char *)to + i * to_row, (const char *)of + i * of_row, length);                                    \
        break;

/* to_row and of_row are in bytes. */
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
    default:
        for (int64_t i = 0; i < rows; i++)
            memcpy((char *)to + i * to_row, (const char *)of + i * of_row, (size_t)bytes);
    }
}

#undef COPY_CASE

#endif
