/* The sliding tile of each compute type. */
#ifndef CONVGRAD_SLIDE_H
#define CONVGRAD_SLIDE_H

#include <stdint.h>

#include "ukernel.h"

/* What it visits, in elements. */
typedef struct {
    int64_t lanes;
    int64_t heights, positions; /* of y; heights in sums only */
    int64_t rows, taps;         /* of the filter */
    int64_t step;               /* between positions, in taps */
    int64_t begin, end;         /* columns of a row of x that there are; others are left out */
    int64_t new_row, new_rows;  /* those that no row of y has seen before, where x is far away: they are fetched, */
    int64_t ahead;              /* so many elements ahead */
    int64_t x_height, x_position, x_row, x_tap;
    int64_t y_height, y_position;
    int64_t w_row, w_tap;
} slide_shape;

/* Taps of a row, positions of a chunk and rows of a block of sums: all are in registers, beside one for a column. */
#define SLIDE_TAPS 7
#define SLIDE_MOST 12
#define SLIDE_ROWS 4
#define SLIDE_AT_MOST_(most, count) ((count) < (most) ? (count) : (most))
#define SLIDE_POSITIONS(step, taps) SLIDE_AT_MOST_((step) == 1 ? SLIDE_MOST : 8, REGISTERS - 1 - (taps))
/* What CASE makes of each number of taps. */
#define SLIDE_CASES CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7)
#define SLIDE_BLOCK(taps) SLIDE_AT_MOST_(SLIDE_ROWS, (REGISTERS - 2) / (taps))

/* A vector of its own: not a part of the instructions that use it. With CONVGRAD_WIDE, no register may hold one. */
#if defined(CONVGRAD_WIDE)
#define KEEP_VECTOR(vector)
#elif defined(__x86_64__)
#define KEEP_VECTOR(vector) __asm__("" : "+v"(vector))
#elif defined(__aarch64__)
#define KEEP_VECTOR(vector) __asm__("" : "+w"(vector))
#else
#define KEEP_VECTOR(vector)
#endif

#define TYPE float
#define SLIDE slide_f32
#include "slide_template.h"
#undef TYPE
#undef SLIDE

#define TYPE double
#define SLIDE slide_f64
#include "slide_template.h"
#undef TYPE
#undef SLIDE

#define TYPE uint32_t
#define SLIDE slide_u32
#include "slide_template.h"
#undef TYPE
#undef SLIDE

#endif
