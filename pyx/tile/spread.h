/* The spreading tile, for convolutions of small groups (spread_template.h). A vector has the channels of several
 * neighbouring groups. Compiled in slide.c. */
#ifndef CONVGRAD_SPREAD_H
#define CONVGRAD_SPREAD_H

#include <stdint.h>

#include "tile/ukernel.h"

/* The taps of a row of the filter are divided into parts. A part has SPREAD_TAPS taps if neighbouring positions read
 * the same columns of x, otherwise one tap. */
#define SPREAD_TAPS 3
/* Maximum parts of a row. A part may have one tap, so this is also the maximum number of taps of a row. */
#define SPREAD_PARTS 16
/* Maximum channels that share one load of a column. */
#define SPREAD_CHANNELS 4

/* Taps of a row that are computed together. */
typedef struct {
    int64_t taps;       /* SPREAD_TAPS or 1 */
    int64_t x, w;       /* offsets of the first tap in x and in the filter */
    int64_t begin, end; /* range of columns that lie in x; the first tap of the first position reads column 0 */
} spread_part;

/* Extents and strides of a call, in elements. */
typedef struct {
    int64_t vectors, channels; /* vectors of lanes; channels of a group, or pairs of channels */
    int64_t heights, positions;
    int64_t rows, taps;
    int64_t x_vector, x_height, x_position, x_row, x_tap;
    int64_t y_vector, y_height, y_position;
    int64_t w_vector, w_row, w_tap;
    const int32_t *order; /* [channel][lane]: the index, in a vector of x, of this channel of the lane's group */
    int64_t part_count;
    spread_part part[SPREAD_PARTS];
} spread_shape;

void spread_f32(const spread_shape *s, const float *x, const float *w, float *y, int fresh);
void spread_f32_sums(const spread_shape *s, const float *x, const float *y, float *w);
#ifdef ADD_PAIRS
void spread_pairs(const spread_shape *s, const float *x, const float *w, float *y, int fresh);
#else /* not called; the name lets callers compile */
#define spread_pairs spread_f32
#endif

#endif
