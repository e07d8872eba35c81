/* The register tile for one compute type: c[r][j] += sum over k of a[r][k] * b[k][j].
 * If channelwise, a has its own element for each column: c[r][j] += sum over k of a[r][k][j] * b[k][j].
 *
 * Included twice for each type with TYPE and TILE (the function's name) defined: first with HALF, for the tile of half
 * a vector, then without, for all other tiles. Tables give the offsets of elements, so that the tile can read them from
 * any tensor:
 *
 *     a[r][k] = a[a_row[r] + a_depth[k]]      one element; if channelwise, whole vectors from there on, unaligned
 *     b[k][j] = b[b_depth[k] + j]             whole vectors, unaligned
 *     c[r][j] = c[c_row[r] + j]               whole vectors, unaligned
 *
 * A *tall* tile is one vector wide, and its rows of a are evenly spaced.
 *
 * The depth (the steps k) consists of runs of `run` steps. Within a run, a_depth increases by one constant and b_depth
 * by another. If WALKS_RUNS, tiles add these constants in long runs, which saves two loads of table entries per step.
 *
 * With PAIRS, an element of a or b is a pair of bfloat16, neighbours along the depth, in the 32 bits of a float. Both
 * products of the pairs are added.
 *
 * sum_mode is CARRIED, FRESH, ADDED or STREAMED (ukernel.h). A depth may be cut into blocks, one call for each. If all
 * but the first are CARRIED, the results are bitwise identical to the results of one call. If they are ADDED, the
 * rounding error of a long depth is smaller.
 */
#define TILE_JOIN_(a, b) a##b
#define TILE_JOIN(a, b) TILE_JOIN_(a, b)
#ifdef HALF
#define NAME TILE_JOIN(TILE, _half)
#define BYTES (VECTOR_BYTES / 2)
#define MOST_VECTORS 1
#define STORE_SUM(to, sum) *(to) = (sum)
#else
#define NAME TILE
#define BYTES VECTOR_BYTES
#define MOST_VECTORS TILE_VECTORS
#define STORE_SUM(to, sum)                                                                                             \
    if (sum_mode == STREAMED)                                                                                          \
        STREAM_VECTOR(to, sum);                                                                                        \
    else                                                                                                               \
        *(to) = (sum)
#endif
#define VECTOR TILE_JOIN(NAME, _vector)
#define SUM TILE_JOIN(NAME, _sum)
#define STEP TILE_JOIN(NAME, _step)
#define ROWS TILE_JOIN(NAME, _rows)

typedef TYPE VECTOR __attribute__((vector_size(BYTES), aligned(sizeof(TYPE)), may_alias));

#ifdef PAIRS
#define TARGET PAIRS_TARGET
#ifdef HALF
#define ADD_PRODUCT(sum, factor, b) sum = (VECTOR)ADD_HALF_PAIRS(sum, factor, b)
#else
#define ADD_PRODUCT(sum, factor, b) sum = (VECTOR)ADD_PAIRS(sum, factor, b)
#endif
#else
#define TARGET
#define ADD_PRODUCT(sum, factor, b)                                                                                    \
    if (channelwise) /* no ?: operator, because clang would then not fuse the product and the sum */                   \
        sum += *(const VECTOR *)(factor) * b;                                                                          \
    else                                                                                                               \
        sum += *(factor) * b
#endif

/* One step of depth: sum[r][j] += row[r][place] * b[j]. Here and below, channelwise, rows and vectors are constants in
 * every call, so that the sums stay in registers. */
static inline __attribute__((always_inline)) TARGET void
STEP(VECTOR (*sum)[MOST_VECTORS], const int channelwise, const int rows, const int vectors, const TYPE *const *row,
     int64_t place, const TYPE *b)
{
    VECTOR b_row[MOST_VECTORS];
    if (vectors > 1)
        KEEP_ADDRESS(b);
    UNROLLED(v, vectors)
        b_row[v] = ((const VECTOR *)b)[v];
    UNROLLED(r, rows) {
        const TYPE *factor = row[r] + place;
        UNROLLED(v, vectors)
            ADD_PRODUCT(sum[r][v], factor + (channelwise ? v * (BYTES / (int)sizeof(TYPE)) : 0), b_row[v]);
    }
}

/* All steps of a tile. */
static inline __attribute__((always_inline)) TARGET void
SUM(const int channelwise, const int rows, const int vectors, int64_t depth, int64_t run, const TYPE *a,
    const int32_t *a_row, const int32_t *a_depth, const TYPE *b, const int32_t *b_depth, TYPE *c, const int64_t *c_row,
    int sum_mode)
{
    VECTOR sum[NARROW_ROWS][MOST_VECTORS];
    const TYPE *row[NARROW_ROWS];
    UNROLLED(r, rows) {
        row[r] = a + a_row[r];
        __asm__("" : "+r"(row[r])); /* otherwise a and a_row[r] take two registers, and are spilled in the loop */
        UNROLLED(v, vectors)
            sum[r][v] = sum_mode != CARRIED ? (VECTOR){0} : ((const VECTOR *)(c + c_row[r]))[v];
    }
    if (WALKS_RUNS(vectors) && !channelwise && run >= LONG_RUN(vectors)) {
        const int64_t a_step = a_depth[1] - a_depth[0], b_step = b_depth[1] - b_depth[0];
        for (int64_t k = 0; k < depth; k += run) {
            const TYPE *b_row = b + b_depth[k];
            int64_t place = a_depth[k];
            for (int64_t steps = run; steps > 0; steps--, place += a_step, b_row += b_step)
                STEP(sum, channelwise, rows, vectors, row, place, b_row);
        }
    } else {
        for (int64_t k = 0; k < depth; k++)
            STEP(sum, channelwise, rows, vectors, row, a_depth[k], b + b_depth[k]);
    }
    UNROLLED(r, rows)
        UNROLLED(v, vectors) {
            VECTOR *to = (VECTOR *)(c + c_row[r]) + v;
            if (sum_mode == ADDED)
                sum[r][v] += *to;
            STORE_SUM(to, sum[r][v]);
        }
}

#define CASE(count)                                                                                                    \
    case count:                                                                                                        \
        if (count <= MOST_ROWS(vectors))                                                                               \
            SUM(channelwise, count, vectors, depth, run, a, a_row, a_depth, b, b_depth, c, c_row, sum_mode);           \
        break;

static inline __attribute__((always_inline)) TARGET void
ROWS(const int channelwise, int rows, const int vectors, int64_t depth, int64_t run, const TYPE *a,
     const int32_t *a_row, const int32_t *a_depth, const TYPE *b, const int32_t *b_depth, TYPE *c, const int64_t *c_row,
     int sum_mode)
{
    switch (rows) {
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
}

#undef CASE
#ifdef HALF

/* 1 <= rows <= NARROW_ROWS. */
TARGET void NAME(int rows, int64_t depth, int64_t run, const TYPE *a, const int32_t *a_row, const int32_t *a_depth,
                 const TYPE *b, const int32_t *b_depth, TYPE *c, const int64_t *c_row, int sum_mode)
{
    ROWS(0, rows, 1, depth, run, a, a_row, a_depth, b, b_depth, c, c_row, sum_mode);
}

#else
#define VECTORS TILE_JOIN(NAME, _vectors)

static inline __attribute__((always_inline)) TARGET void
VECTORS(const int channelwise, int rows, int vectors, int64_t depth, int64_t run, const TYPE *a, const int32_t *a_row,
        const int32_t *a_depth, const TYPE *b, const int32_t *b_depth, TYPE *c, const int64_t *c_row, int sum_mode)
{
    switch (vectors) {
    case 1: ROWS(channelwise, rows, 1, depth, run, a, a_row, a_depth, b, b_depth, c, c_row, sum_mode); break;
    case 2: ROWS(channelwise, rows, 2, depth, run, a, a_row, a_depth, b, b_depth, c, c_row, sum_mode); break;
#if TILE_VECTORS > 2
    case 3: ROWS(channelwise, rows, 3, depth, run, a, a_row, a_depth, b, b_depth, c, c_row, sum_mode); break;
    case 4: ROWS(channelwise, rows, 4, depth, run, a, a_row, a_depth, b, b_depth, c, c_row, sum_mode); break;
#endif
    }
}

/* 1 <= vectors <= TILE_VECTORS, 1 <= rows <= MOST_ROWS(vectors). */
TARGET void
NAME(int channelwise, int rows, int vectors, int64_t depth, int64_t run, const TYPE *a, const int32_t *a_row,
     const int32_t *a_depth, const TYPE *b, const int32_t *b_depth, TYPE *c, const int64_t *c_row, int sum_mode)
{
#ifndef PAIRS
    if (channelwise)
        VECTORS(1, rows, vectors, depth, run, a, a_row, a_depth, b, b_depth, c, c_row, sum_mode);
    else
#endif
        VECTORS(0, rows, vectors, depth, run, a, a_row, a_depth, b, b_depth, c, c_row, sum_mode);
}

#undef VECTORS
#define TALL TILE_JOIN(NAME, _tall)
#define TALL_SUM TILE_JOIN(NAME, _tall_sum)

/* All steps of a tall tile. rows is a constant in every call. Four neighbouring rows share one address register. */
static inline __attribute__((always_inline)) TARGET void
TALL_SUM(const int rows, int64_t depth, int64_t run, const TYPE *a, int64_t a_pitch, const int32_t *a_depth,
         const TYPE *b, const int32_t *b_depth, TYPE *c, const int64_t *c_row, int sum_mode)
{
    const int quarters = (rows + 3) / 4, channelwise __attribute__((unused)) = 0; /* channelwise: for ADD_PRODUCT */
    const int64_t a_step = a_depth[1] - a_depth[0], b_step = b_depth[1] - b_depth[0];
    VECTOR sum[MOST_TALL_ROWS];
    const TYPE *row[MOST_TALL_ROWS / 4];
    UNROLLED(r, rows)
        sum[r] = sum_mode != CARRIED ? (VECTOR){0} : *(const VECTOR *)(c + c_row[r]);
    for (int64_t k = 0; k < depth; k += run) {
        const TYPE *b_row = b + b_depth[k];
        UNROLLED(q, quarters) {
            row[q] = a + a_depth[k] + 4 * q * a_pitch;
            __asm__("" : "+r"(row[q])); /* otherwise GCC updates the addresses of all rows in every step */
        }
        for (int64_t steps = run; steps > 0; steps--, b_row += b_step) {
            const VECTOR values = *(const VECTOR *)b_row;
            UNROLLED(r, rows)
                ADD_PRODUCT(sum[r], row[r / 4] + r % 4 * a_pitch, values);
            UNROLLED(q, quarters) {
                row[q] += a_step;
                __asm__("" : "+r"(row[q]));
            }
        }
    }
    UNROLLED(r, rows) {
        VECTOR *to = (VECTOR *)(c + c_row[r]);
        if (sum_mode == ADDED)
            sum[r] += *to;
        STORE_SUM(to, sum[r]);
    }
}

#define CASE(count)                                                                                                    \
    case count:                                                                                                        \
        if (count <= TALL_ROWS)                                                                                        \
            TALL_SUM(count, depth, run, a, a_pitch, a_depth, b, b_depth, c, c_row, sum_mode);                          \
        break;

/* One vector wide: 8 <= rows <= TALL_ROWS, a[r][k] = a[r * a_pitch + a_depth[k]], at least two steps of depth. */
TARGET void TALL(int rows, int64_t depth, int64_t run, const TYPE *a, int64_t a_pitch, const int32_t *a_depth,
                 const TYPE *b, const int32_t *b_depth, TYPE *c, const int64_t *c_row, int sum_mode)
{
    switch (rows) {
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
        CASE(13)
        CASE(14)
        CASE(15)
        CASE(16)
    }
}

#undef CASE
#undef TALL
#undef TALL_SUM
#endif

#undef TILE_JOIN_
#undef TILE_JOIN
#undef NAME
#undef BYTES
#undef MOST_VECTORS
#undef VECTOR
#undef SUM
#undef STEP
#undef ROWS
#undef TARGET
#undef ADD_PRODUCT
#undef STORE_SUM
