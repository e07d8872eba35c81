/* The spreading tile, compiled in slide.c: vectors hold the channels of several neighbouring groups. */
#ifndef CONVGRAD_SPREAD_H
#define CONVGRAD_SPREAD_H

#include <stdint.h>

#include "tile/ukernel.h"

/* Taps of the width that are taken together if neighbouring positions read the same columns; otherwise one. */
#define SPREAD_TAPS 3
/* Greatest number of taps of the width, because each may be a part of its own. */
#define SPREAD_PARTS 16
/* Greatest number of channels that share one load of a column. */
#define SPREAD_CHANNELS 4

typedef struct {
    int64_t taps;       /* SPREAD_TAPS or 1 */
    int64_t x, w;       /* offsets of the first tap */
    int64_t begin, end; /* range of columns that lie in x; column 0 is the first position's first tap */
} spread_part;

/* Extents and strides of a call, in elements. */
typedef struct {
    int64_t vectors, channels; /* channels of a group, or pairs of channels */
    int64_t heights, positions;
    int64_t rows, taps;
    int64_t x_vector, x_height, x_position, x_row, x_tap;
    int64_t y_vector, y_height, y_position;
    int64_t w_vector, w_row, w_tap;
    const int32_t *order; /* [channel][lane]: index of the lane's channel in a vector of x */
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
