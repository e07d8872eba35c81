/* The sums of dots.h for one type: a register tile of rows of x by outputs of w, with one vector of sums for each pair.
 * */
#define DOTS_JOIN_(a, b) a##b
#define DOTS_JOIN(a, b) DOTS_JOIN_(a, b)
#define VECTOR DOTS_JOIN(DOTS, _vector)
#define LOAD_SOME DOTS_JOIN(DOTS, _load_some)
#define STEP DOTS_JOIN(DOTS, _step)
#define TILE DOTS_JOIN(DOTS, _tile)
#define OUTPUTS DOTS_JOIN(DOTS, _outputs)
#define LANES (VECTOR_BYTES / (int)sizeof(TYPE))

typedef TYPE VECTOR __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(TYPE)), may_alias));

/* The first `count` elements of a vector, 1 <= count < LANES, and zeros. Nothing else is read. */
static inline __attribute__((always_inline)) VECTOR LOAD_SOME(const TYPE *of, int64_t count)
{
    LOAD_PART(of, count)
}

/* Adds the products of one vector of each row and each output. `count` is LANES, or less at the end of a run. */
static inline __attribute__((always_inline)) void
STEP(const int rows, const int outputs, VECTOR sum[DOT_ROWS][DOT_OUTPUTS], const TYPE *const *x, const TYPE *const *w,
     int64_t x0, int64_t w0, int64_t count)
{
    VECTOR line[DOT_OUTPUTS];
    UNROLLED(o, outputs)
        line[o] = count == LANES ? *(const VECTOR *)(w[o] + w0) : LOAD_SOME(w[o] + w0, count);
    UNROLLED(r, rows) {
        VECTOR seen = count == LANES ? *(const VECTOR *)(x[r] + x0) : LOAD_SOME(x[r] + x0, count);
        UNROLLED(o, outputs)
            sum[r][o] += seen * line[o];
    }
}

/* The sums of one tile. `rows` and `outputs` are constants in every call, so that the loops over them are unrolled. */
static inline __attribute__((always_inline)) void
TILE(const int rows, const int outputs, const dot_run *runs, int64_t run_count, const TYPE *x, const int64_t *x_rows,
     const TYPE *w, int64_t w_output, int64_t all_outputs, TYPE *sums)
{
    VECTOR sum[DOT_ROWS][DOT_OUTPUTS];
    const TYPE *x_of[DOT_ROWS], *w_of[DOT_OUTPUTS];
    UNROLLED(r, rows)
        x_of[r] = x + x_rows[r];
    UNROLLED(o, outputs)
        w_of[o] = w + o * w_output;
    UNROLLED(r, rows)
        UNROLLED(o, outputs)
            sum[r][o] = (VECTOR){0};
    for (int64_t i = 0; i < run_count; i++) {
        const int64_t x0 = runs[i].x, w0 = runs[i].w, count = runs[i].count;
        int64_t k = 0;
        for (; k + LANES <= count; k += LANES)
            STEP(rows, outputs, sum, x_of, w_of, x0 + k, w0 + k, LANES);
        if (k < count)
            STEP(rows, outputs, sum, x_of, w_of, x0 + k, w0 + k, count - k);
    }
    UNROLLED(r, rows)
        UNROLLED(o, outputs) {
            TYPE lane[LANES];
            memcpy(lane, &sum[r][o], sizeof lane);
#pragma GCC unroll 4
            for (int half = LANES / 2; half > 0; half /= 2)
                for (int l = 0; l < half; l++)
                    lane[l] += lane[l + half];
            sums[r * all_outputs + o] = lane[0];
        }
}

#define CASE(count)                                                                                                    \
    case count:                                                                                                        \
        if (count <= DOT_ROWS)                                                                                         \
            TILE(count, outputs, runs, run_count, x, rows, w, w_output, all_outputs, sums);                            \
        break;

/* The sums of all rows and a few outputs. `outputs` is a constant in every call. */
static inline __attribute__((always_inline)) void
OUTPUTS(const int outputs, const dot_run *runs, int64_t run_count, const TYPE *x, const int64_t *rows,
        int64_t row_count, const TYPE *w, int64_t w_output, int64_t all_outputs, TYPE *sums)
{
    while (row_count > 0) {
        const int64_t count = row_count < DOT_ROWS ? row_count : DOT_ROWS;
        switch (count) {
            CASE(1)
            CASE(2)
            CASE(3)
            CASE(4)
        }
        row_count -= count;
        rows += count;
        sums += count * all_outputs;
    }
}

#undef CASE
#define CASE(count)                                                                                                    \
    case count:                                                                                                        \
        if (count <= DOT_OUTPUTS)                                                                                      \
            OUTPUTS(count, runs, run_count, x, rows, row_count, w, w_output, outputs, sums);                           \
        break;

void DOTS(const dot_run *runs, int64_t run_count, const TYPE *x, const int64_t *rows, int64_t row_count, const TYPE *w,
          int64_t w_output, int64_t outputs, TYPE *sums)
{
    int64_t left = outputs, blocks = (left + DOT_OUTPUTS - 1) / DOT_OUTPUTS;
    for (; blocks > 0; blocks--) { /* of nearly equal width: a narrow block has many loads per product */
        const int64_t count = (left + blocks - 1) / blocks;
        switch (count) {
            CASE(1)
            CASE(2)
            CASE(3)
            CASE(4)
            CASE(5)
            CASE(6)
        }
        left -= count;
        w += count * w_output;
        sums += count;
    }
}

#undef CASE
#undef DOTS_JOIN_
#undef DOTS_JOIN
#undef VECTOR
#undef LOAD_SOME
#undef STEP
#undef TILE
#undef OUTPUTS
#undef LANES
