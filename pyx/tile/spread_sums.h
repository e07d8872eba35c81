/* wgrad by the spreading tile (spread_template.h). Lanes l are output channels of neighbouring groups.
 *
 *     w[r][t][i][l] += sum over h, p of x[h, r][p, t][group of l][i] * y[h][p][l]
 */

/* Computes a block of sums in registers. In every call, taps and channels are constants. */
static inline __attribute__((always_inline)) void
spread_block(const int taps, const int channels, const spread_shape *s, const int32_t *order, const float *x,
             const float *y, float *w)
{
    spread_order by[SPREAD_CHANNELS];
    spread_vector sum[SPREAD_TAPS][SPREAD_CHANNELS];
    UNROLLED(i, channels) {
        by[i] = ((const spread_order *)order)[i];
        UNROLLED(t, taps)
            sum[t][i] = ((const spread_vector *)(w + t * s->w_tap))[i];
    }
    for (int64_t h = 0; h < s->heights; h++, x += s->x_height, y += s->y_height) {
        const float *column = x, *grad = y;
        for (int64_t p = 0; p < s->positions; p++, column += s->x_position, grad += s->y_position) {
            const spread_vector line = *(const spread_vector *)grad;
            UNROLLED(t, taps) {
                spread_vector seen = *(const spread_vector *)(column + t * s->x_tap);
                KEEP_VECTOR(seen);
                UNROLLED(i, channels)
                    sum[t][i] += PERMUTE(seen, by[i]) * line;
            }
        }
    }
    UNROLLED(i, channels)
        UNROLLED(t, taps)
            ((spread_vector *)(w + t * s->w_tap))[i] = sum[t][i];
}

static inline __attribute__((always_inline)) void
spread_taps(const int channels, const spread_shape *s, const float *x, const float *y, float *w)
{
    for (int64_t v = 0; v < s->vectors; v++, x += s->x_vector, y += s->y_vector, w += s->w_vector)
        for (int64_t r = 0; r < s->rows; r++)
            for (int64_t i = 0; i < s->channels; i += channels) {
                const float *column = x + r * s->x_row;
                const int32_t *order = s->order + i * SPREAD_LANES;
                float *to = w + r * s->w_row + i * SPREAD_LANES;
                int64_t left = s->taps, count;
                for (; left > 0; left -= count, column += count * s->x_tap, to += count * s->w_tap) {
                    count = left == SPREAD_SUM_TAPS + 1 ? 2 : left < SPREAD_SUM_TAPS ? left : SPREAD_SUM_TAPS;
                    switch (count) {
                    case 1: spread_block(1, channels, s, order, column, y, to); break;
                    case 2: spread_block(2, channels, s, order, column, y, to); break;
#if SPREAD_SUM_TAPS > 2
                    case 3: spread_block(3, channels, s, order, column, y, to); break;
#endif
                    }
                }
            }
}

/* Adds the products of `heights` rows of y to the sums. All taps must lie in x. */
void spread_f32_sums(const spread_shape *s, const float *x, const float *y, float *w)
{
    switch (SPREAD_TOGETHER(s->channels)) {
    case 1: spread_taps(1, s, x, y, w); break;
    case 2: spread_taps(2, s, x, y, w); break;
    case 3: spread_taps(3, s, x, y, w); break;
    case 4: spread_taps(4, s, x, y, w); break;
    }
}
