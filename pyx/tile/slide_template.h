/* The sliding tile for one compute type: rows of a depthwise convolution.
 *
 *     y[p][l] += sum over r, t of x[r][p * step + t][l] * w[r][t][l]        SLIDE; with `fresh`, y begins with zeros
 *     w[r][t][l] += sum over h, p of x[h, r][p, t][l] * y[h][p][l]          SLIDE_SUMS (wgrad)
 *
 * r and t are rows and taps of the filter, p positions, h rows of y, l lanes (channels).
 *
 * Neighbouring positions read the same columns of x. SLIDE keeps the taps of a row in registers, and loads each column
 * once for all of its products. So three taps need one load; in the channelwise register tile, they would need three.
 * Each y adds its products in the order of r and t, like all tiles. Columns in padding are skipped.
 */
#define SLIDE_JOIN_(a, b) a##b
#define SLIDE_JOIN(a, b) SLIDE_JOIN_(a, b)
#define VECTOR SLIDE_JOIN(SLIDE, _vector)
#define CHUNK SLIDE_JOIN(SLIDE, _chunk)
#define TAPS SLIDE_JOIN(SLIDE, _taps)
#define STEP SLIDE_JOIN(SLIDE, _step)
#define ADD SLIDE_JOIN(SLIDE, _add)
#define ADD_SHARED SLIDE_JOIN(SLIDE, _add_shared)
#define SUMS SLIDE_JOIN(SLIDE, _block)
#define SUM_TAPS SLIDE_JOIN(SLIDE, _block_taps)
#define SUM_STEP SLIDE_JOIN(SLIDE, _block_step)
#define SLIDE_SUMS SLIDE_JOIN(SLIDE, _sums)
#define LOAD(address) (*(const VECTOR *)(address))
#define LINE (64 / (int)sizeof(TYPE)) /* elements of a cache line */
#define VECTOR_LANES (VECTOR_BYTES / (int)sizeof(TYPE))

typedef TYPE VECTOR __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(TYPE)), may_alias));

/* The sums of a chunk of positions. In every call, step, taps and positions are constants, so that loops are
 * unrolled. */
static inline __attribute__((always_inline)) void
CHUNK(const int step, const int taps, const int positions, const slide_shape *s, const TYPE *x, const TYPE *w, TYPE *y,
      int64_t to_next, int64_t begin, int64_t end, int fresh)
{
    for (int64_t left = s->lanes; left > 0; left -= VECTOR_LANES, x += to_next, w += to_next, y += to_next) {
        VECTOR sum[SLIDE_MOST], factor[SLIDE_TAPS];
        const TYPE *x_row = x, *w_row = w;
        if (s->new_rows && left % LINE == 0) /* prefetch columns that later positions read */
            for (int64_t r = s->new_row; r < s->new_row + s->new_rows; r++) {
                const TYPE *next = x_row + r * s->x_row + s->ahead;
                ROLLED for (int i = 0; i < positions * step; i++, next += s->x_tap) __builtin_prefetch(next, 0, 3);
            }
        UNROLLED(p, positions)
            sum[p] = fresh ? (VECTOR){0} : LOAD(y + p * s->y_position);
        for (int64_t r = 0; r < s->rows; r++) {
            const TYPE *column = x_row;
            UNROLLED(t, taps)
                factor[t] = LOAD(w_row + t * s->w_tap);
            UNROLLED(i, (positions - 1) * step + taps) {
                if (i >= begin && i < end) {
                    VECTOR seen = LOAD(column);
                    KEEP_VECTOR(seen); /* otherwise each product would load it again */
                    UNROLLED(t, taps)
                        if (i >= t && (i - t) % step == 0 && (i - t) / step < positions)
                            sum[(i - t) / step] += seen * factor[t];
                }
                column += s->x_tap;
            }
            x_row += s->x_row;
            w_row += s->w_row;
        }
        UNROLLED(p, positions)
            *(VECTOR *)(y + p * s->y_position) = sum[p];
    }
}

#define CASE(count)                                                                                                    \
    case count:                                                                                                        \
        if (count <= SLIDE_POSITIONS(step, taps))                                                                      \
            CHUNK(step, taps, count, s, x, w, y, to_next, begin, end, fresh);                                          \
        break;

static inline __attribute__((always_inline)) void
TAPS(const int step, const int taps, const slide_shape *s, const TYPE *x, const TYPE *w, TYPE *y, int64_t to_next,
     int fresh)
{
    const int64_t most =
        SLIDE_BOTH_WAYS && few_sets(s, sizeof(TYPE)) ? SLIDE_FEW(step, taps) : SLIDE_POSITIONS(step, taps);
    int64_t left = s->positions, chunks = (left + most - 1) / most;
    int64_t begin = s->begin, end = s->end;
    for (; chunks > 0; chunks--) { /* of nearly equal length, because a short chunk has too few independent sums */
        int64_t count = (left + chunks - 1) / chunks;
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
            CASE(11)
            CASE(12)
        }
        left -= count;
        begin -= count * step;
        end -= count * step;
        x += count * step * s->x_tap;
        y += count * s->y_position;
    }
}

#undef CASE
#define CASE(count)                                                                                                    \
    case count: TAPS(step, count, s, x, w, y, to_next, fresh); break;

static inline __attribute__((always_inline)) void
STEP(const int step, const slide_shape *s, const TYPE *x, const TYPE *w, TYPE *y, int64_t to_next, int fresh)
{
    switch (s->taps) {
        SLIDE_CASES
    }
}

#undef CASE

/* Computes one row of y. 1 <= step <= 2, 1 <= taps <= SLIDE_TAPS. */
void SLIDE(const slide_shape *s, const TYPE *x, const TYPE *w, TYPE *y, int fresh)
{
    int64_t to_next = VECTOR_LANES;
    if (SLIDE_BOTH_WAYS && s->lanes > 0 && runs_into((uintptr_t)x, (uintptr_t)y)) { /* from the last lanes on */
        const int64_t last = (s->lanes - 1) / VECTOR_LANES * VECTOR_LANES;
        x += last, w += last, y += last;
        to_next = -to_next;
    }
    if (s->step == 1)
        STEP(1, s, x, w, y, to_next, fresh);
    else
        STEP(2, s, x, w, y, to_next, fresh);
}

/* Adds the products of one position to a block of sums. */
static inline __attribute__((always_inline)) void
ADD(const int rows, const int taps, const slide_shape *s, const TYPE **row, const TYPE *grad,
    VECTOR sum[SLIDE_ROWS][SLIDE_TAPS])
{
    VECTOR line = LOAD(grad);
    UNROLLED(r, rows) {
        UNROLLED(t, taps)
            sum[r][t] += LOAD(row[r] + t * s->x_tap) * line;
        row[r] += s->x_position;
    }
}

/* Adds the products of several neighbouring positions to a block of sums. Each column of x is loaded only once. */
static inline __attribute__((always_inline)) void
ADD_SHARED(const int step, const int rows, const int taps, const int positions, const slide_shape *s, const TYPE **row,
           const TYPE *grad, VECTOR sum[SLIDE_ROWS][SLIDE_TAPS])
{
    VECTOR line[SLIDE_COLUMNS];
    UNROLLED(p, positions)
        line[p] = LOAD(grad + p * s->y_position);
    UNROLLED(i, (positions - 1) * step + taps)
        UNROLLED(r, rows) {
            VECTOR seen = LOAD(row[r] + i * s->x_tap);
            KEEP_VECTOR(seen);
            UNROLLED(t, taps)
                if (i >= t && (i - t) % step == 0 && (i - t) / step < positions)
                    sum[r][t] += seen * line[(i - t) / step];
        }
    UNROLLED(r, rows)
        row[r] += positions * s->x_position;
}

/* Computes a block of rows x taps sums. In every call, step, positions, rows and taps are constants. */
static inline __attribute__((always_inline)) void
SUMS(const int step, const int positions, const int rows, const int taps, const slide_shape *s, const TYPE *x,
     const TYPE *y, TYPE *w)
{
    for (int64_t lane = 0; lane < s->lanes; lane += VECTOR_LANES) {
        VECTOR sum[SLIDE_ROWS][SLIDE_TAPS];
        UNROLLED(r, rows)
            UNROLLED(t, taps)
                sum[r][t] = LOAD(w + lane + r * s->w_row + t * s->w_tap);
        for (int64_t h = 0; h < s->heights; h++) {
            const TYPE *grad = y + lane + h * s->y_height, *row[SLIDE_ROWS];
            int64_t p = 0;
            UNROLLED(r, rows)
                row[r] = x + lane + h * s->x_height + r * s->x_row;
            if (positions > 1)
                for (; p <= s->positions - positions; p += positions, grad += positions * s->y_position)
                    ADD_SHARED(step, rows, taps, positions, s, row, grad, sum);
            for (; p < s->positions; p++, grad += s->y_position)
                ADD(rows, taps, s, row, grad, sum);
        }
        UNROLLED(r, rows)
            UNROLLED(t, taps)
                *(VECTOR *)(w + lane + r * s->w_row + t * s->w_tap) = sum[r][t];
    }
}

/* With ADD_SHARED, the remaining positions of a row need a second loop. So it is not used for rows of few positions. */
#define CASE(count)                                                                                                    \
    case count:                                                                                                        \
        if (count > SLIDE_BLOCK(taps))                                                                                 \
            break;                                                                                                     \
        if (shared && SLIDE_SHARED(step, count, taps) > 1 && s->positions >= 2 * SLIDE_SHARED(step, count, taps))      \
            SUMS(step, SLIDE_SHARED(step, count, taps), count, taps, s, x, y, w);                                      \
        else                                                                                                           \
            SUMS(step, 1, count, taps, s, x, y, w);                                                                    \
        break;

static inline __attribute__((always_inline)) void
SUM_TAPS(const int step, const int shared, const int taps, const slide_shape *s, const TYPE *x, const TYPE *y, TYPE *w)
{
    int64_t left = s->rows, blocks = (left + SLIDE_BLOCK(taps) - 1) / SLIDE_BLOCK(taps);
    for (; blocks > 0; blocks--) {
        int64_t count = (left + blocks - 1) / blocks;
        switch (count) {
            CASE(1)
            CASE(2)
            CASE(3)
            CASE(4)
        }
        left -= count;
        x += count * s->x_row;
        w += count * s->w_row;
    }
}

#undef CASE
#define CASE(count)                                                                                                    \
    case count: SUM_TAPS(step, shared, count, s, x, y, w); break;

static inline __attribute__((always_inline)) void
SUM_STEP(const int step, const int shared, const slide_shape *s, const TYPE *x, const TYPE *y, TYPE *w)
{
    switch (s->taps) {
        SLIDE_CASES
    }
}

/* Adds the products of `heights` rows of y to the sums. 1 <= taps <= SLIDE_TAPS. step is 1 or 2, or 0 if no two
 * positions share a column. */
void SLIDE_SUMS(const slide_shape *s, const TYPE *x, const TYPE *y, TYPE *w)
{
    if (s->step == 1)
        SUM_STEP(1, 1, s, x, y, w);
    else if (s->step == 2)
        SUM_STEP(2, 1, s, x, y, w);
    else
        SUM_STEP(1, 0, s, x, y, w);
}

#undef CASE
#undef SLIDE_JOIN_
#undef SLIDE_JOIN
#undef VECTOR
#undef CHUNK
#undef TAPS
#undef STEP
#undef ADD
#undef ADD_SHARED
#undef SUMS
#undef SUM_TAPS
#undef SUM_STEP
#undef SLIDE_SUMS
#undef LOAD
#undef LINE
#undef VECTOR_LANES
