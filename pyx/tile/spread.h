/* The spreading tile, which slide.c compiles: groups of a few channels, side by side in vectors. */
#ifndef CONVGRAD_SPREAD_H
#define CONVGRAD_SPREAD_H

#include <stdint.h>

#include "tile/ukernel.h"

/* Taps of the width that are taken together: three neighbours whose columns the next positions see, too, or one. */
#define SPREAD_TAPS 3
/* Taps of the width at most, for each may be a part of its own. */
#define SPREAD_PARTS 16
/* Channels for which a column is loaded once. */
#define SPREAD_CHANNELS 4

typedef struct {
    int64_t taps;       /* SPREAD_TAPS or 1 */
    int64_t x, w;       /* where they begin */
    int64_t begin, end; /* the columns that lie inside x, counted from the first position's first tap */
} spread_part;

/* What the tile visits, in elements. */
typedef struct {
    int64_t vectors, channels; /* channels of a group, or pairs of them */
    int64_t heights, positions;
    int64_t rows, taps;
    int64_t x_vector, x_height, x_position, x_row, x_tap;
    int64_t y_vector, y_height, y_position;
    int64_t w_vector, w_row, w_tap;
    const int32_t *order; /* [channel][lane]: the element of a vector of x that a lane takes */
    int64_t part_count;
    spread_part part[SPREAD_PARTS];
} spread_shape;

void spread_f32(const spread_shape *s, const float *x, const float *w, float *y, int fresh);
void spread_f32_sums(const spread_shape *s, const float *x, const float *y, float *w);
#ifdef ADD_PAIRS
void spread_pairs(const spread_shape *s, const float *x, const float *w, float *y, int fresh);
#else
#define spread_pairs spread_f32
#endif

#endif
