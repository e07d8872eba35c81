/* The sliding tile of each compute type, for depthwise convolutions (slide_template.h). Compiled in slide.c. */
#ifndef CONVGRAD_SLIDE_H
#define CONVGRAD_SLIDE_H

#include <stdint.h>

/* Extents and strides of a call, in elements. A lane is a channel. A column is a position of x in a row. */
typedef struct {
    int64_t lanes;
    int64_t heights, positions; /* rows of y (only for slide_*_sums), and positions of a row */
    int64_t rows, taps;         /* of the filter, and taps of a row */
    int64_t step;               /* columns from one position of y to the next */
    int64_t begin, end;         /* range of columns that lie in x; other columns are padding and are skipped */
    int64_t new_row, new_rows;  /* rows of x to prefetch, their first and their number: the row of y reads them first */
    int64_t ahead;              /* distance of the prefetch */
    int64_t x_height, x_position, x_row, x_tap;
    int64_t y_height, y_position;
    int64_t w_row, w_tap;
} slide_shape;

#define SLIDE_TAPS 7 /* maximum taps of a row */

/* The functions that slide_template.h defines for one compute type. */
#define DECLARE_SLIDE(name, type)                                                                                      \
    void name(const slide_shape *s, const type *x, const type *w, type *y, int fresh);                                 \
    void name##_sums(const slide_shape *s, const type *x, const type *y, type *w);
DECLARE_SLIDE(slide_f32, float)
DECLARE_SLIDE(slide_f64, double)
DECLARE_SLIDE(slide_u32, uint32_t)

#endif
