/* Dot products of rows of adjacent elements, the kernel of long sums; compiled in dots.c for each type. */
#ifndef CONVGRAD_DOTS_H
#define CONVGRAD_DOTS_H

#include <stdint.h>

/* Adjacent elements of x and of w: offsets of the first ones, and their number. */
typedef struct {
    int64_t x, w, count;
} dot_run;

/* sums[r * outputs + o] = sum over runs and i < count of x[rows[r] + run.x + i] * w[o * w_output + run.w + i]
 *
 * Element i of a run is added in lane i % lanes, run after run. At the end the lanes are added. The order is the same
 * for all r and o. */
#define DECLARE_DOTS(name, type)                                                                                       \
    void name(const dot_run *runs, int64_t run_count, const type *x, const int64_t *rows, int64_t row_count,           \
              const type *w, int64_t w_output, int64_t outputs, type *sums);
DECLARE_DOTS(dots_f32, float)
DECLARE_DOTS(dots_f64, double)
DECLARE_DOTS(dots_u32, uint32_t)

#endif
