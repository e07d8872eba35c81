/* The spreading tile: rows of a convolution of small groups. Lanes l are output channels of neighbouring groups.
 *
 *     y[p][l] += sum over r, t, i of x[r][p, t][group of l][i] * w[r][t][i][l]      with `fresh`, y begins with zeros
 *
 * r and t are rows and taps of the filter, p positions, i channels of a group.
 *
 * A vector of x has all channels of the groups of a vector of lanes. For each i, one permutation moves channel i of
 * each group to the lanes of this group. So x is read in place, and three taps need one load, and one permutation for
 * each channel. Columns in padding are skipped.
 *
 * Included with two macros defined: SPREAD (the function's name) and ADD_SPREAD(sum, a, b), which adds the products of
 * two vectors.
 */
#define SPREAD_JOIN_(a, b) a##b
#define SPREAD_JOIN(a, b) SPREAD_JOIN_(a, b)
#define COLUMNS SPREAD_JOIN(SPREAD, _columns)
#define CHUNK SPREAD_JOIN(SPREAD, _chunk)
#define POSITIONS SPREAD_JOIN(SPREAD, _positions)

/* Adds the products of the taps of a part (spread.h). In every call, taps, channels and positions are constants, so
 * that loops are unrolled. */
static inline __attribute__((always_inline)) TARGET void
COLUMNS(const int taps, const int channels, const int positions, const float *x, int64_t x_position, const float *w,
        int64_t w_tap, const int32_t *order, spread_vector *sum, int64_t begin, int64_t end)
{
    spread_order by[SPREAD_CHANNELS];
    spread_vector factor[SPREAD_TAPS][SPREAD_CHANNELS];
    UNROLLED(i, channels) {
        by[i] = ((const spread_order *)order)[i];
        UNROLLED(t, taps)
            factor[t][i] = ((const spread_vector *)(w + t * w_tap))[i];
    }
    UNROLLED(c, positions + taps - 1) {
        if (c >= begin && c < end) {
            spread_vector seen = *(const spread_vector *)x;
            KEEP_VECTOR(seen); /* otherwise each permutation would load it again */
            UNROLLED(i, channels) {
                spread_vector line = PERMUTE(seen, by[i]);
                UNROLLED(t, taps)
                    if (c >= t && c - t < positions)
                        ADD_SPREAD(sum[c - t], line, factor[t][i]);
            }
        }
        x += x_position;
    }
}

static inline __attribute__((always_inline)) TARGET void
CHUNK(const int channels, const int positions, const spread_shape *s, int64_t first, const float *x, const float *w,
      float *y, int fresh)
{
    for (int64_t v = 0; v < s->vectors; v++, x += s->x_vector, w += s->w_vector, y += s->y_vector) {
        spread_vector sum[SPREAD_POSITIONS];
        UNROLLED(p, positions)
            sum[p] = fresh ? (spread_vector){0} : *(const spread_vector *)(y + p * s->y_position);
        for (int64_t r = 0; r < s->rows; r++)
            for (const spread_part *part = s->part; part < s->part + s->part_count; part++) {
                const float *column = x + r * s->x_row + part->x, *line = w + r * s->w_row + part->w;
                const int64_t begin = part->begin - first, end = part->end - first;
                for (int64_t i = 0; i < s->channels; i += channels) {
                    const int64_t lane = i * SPREAD_LANES;
                    if (part->taps == SPREAD_TAPS)
                        COLUMNS(SPREAD_TAPS, channels, positions, column, s->x_position, line + lane, s->w_tap,
                                s->order + lane, sum, begin, end);
                    else
                        COLUMNS(1, channels, positions, column, s->x_position, line + lane, s->w_tap, s->order + lane,
                                sum, begin, end);
                }
            }
        UNROLLED(p, positions)
            *(spread_vector *)(y + p * s->y_position) = sum[p];
    }
}

#define CASE(count)                                                                                                    \
    case count:                                                                                                        \
        if (count <= SPREAD_POSITIONS)                                                                                 \
            CHUNK(channels, count, s, first, x, w, y, fresh);                                                          \
        break;

static inline __attribute__((always_inline)) TARGET void
POSITIONS(const int channels, const spread_shape *s, const float *x, const float *w, float *y, int fresh)
{
    int64_t first = 0, chunks = (s->positions + SPREAD_POSITIONS - 1) / SPREAD_POSITIONS;
    for (; chunks > 0; chunks--) { /* of nearly equal length, because a short chunk has too few independent sums */
        int64_t count = (s->positions - first + chunks - 1) / chunks;
        switch (count) {
            CASE(1)
            CASE(2)
            CASE(3)
            CASE(4)
            CASE(5)
            CASE(6)
            CASE(7)
            CASE(8)
            CASE(9)
            CASE(10)
        }
        first += count;
        x += count * s->x_position;
        y += count * s->y_position;
    }
}

#undef CASE

/* Computes one row of y. */
TARGET void SPREAD(const spread_shape *s, const float *x, const float *w, float *y, int fresh)
{
    switch (SPREAD_TOGETHER(s->channels)) {
    case 1: POSITIONS(1, s, x, w, y, fresh); break;
    case 2: POSITIONS(2, s, x, w, y, fresh); break;
    case 3: POSITIONS(3, s, x, w, y, fresh); break;
    case 4: POSITIONS(4, s, x, w, y, fresh); break;
    }
}

#undef SPREAD_JOIN_
#undef SPREAD_JOIN
#undef COLUMNS
#undef CHUNK
#undef POSITIONS
