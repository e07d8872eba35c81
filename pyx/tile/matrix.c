/* matrix.h, in blocks of two by two tiles: four products for four loads.
 *
 * A load takes lines of constant distance from memory. Operands that lie in another way are staged in a buffer first:
 * rows of a box's different image rows, the last rows and pairs, and in wgrad every tile of a, whose neighbours along
 * the depth are not adjacent. Staging takes about as long as the products of two tiles, so there one tile of a meets
 * four tiles of b. */
#include "tile/matrix.h"

#include "tile/ukernel.h"

#if defined(HAS_MATRICES) && (defined(__AVX512F__) || defined(CONVGRAD_TILE_MODEL))

enum { SIDE = 16, ROW_BYTES = 64 }; /* rows of a tile register, and bytes of a row */

#ifdef CONVGRAD_TILE_MODEL
#include "tile_model.h"
#define MATRIX_TARGET
#else
/* Assembly: the compilers' intrinsics do not tell which memory they read. */
#define MATRIX_TARGET __attribute__((target("amx-tile,amx-bf16")))
#define TILE_CONFIGURE(config) __asm__ volatile("ldtilecfg %0" : : "m"(*(config)))
#define TILE_RELEASE() __asm__ volatile("tilerelease")
#define TILE_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile : :)
#define TILE_LOAD(tile, base, stride)                                                                                  \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(base), "r"(stride) : "memory")
#define TILE_STORE(tile, base, stride)                                                                                 \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(base), "r"(stride) : "memory")
#define TILE_MULTIPLY(c, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)
#endif

/* The operand of LDTILECFG. */
typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

typedef uint32_t tile_buffer[SIDE][SIDE] __attribute__((aligned(64)));

/* A product with the sizes of its tiles: m rows, n columns, k pairs. `adjacent`: pairs of a row of a are neighbours. */
typedef struct {
    matrix_product p;
    const uint32_t *a, *b;
    int64_t m, n, k, b_stride;
    int adjacent;
} matrices;

/* The rows of a tile, m or fewer. `even`: loads can take them from a itself, `c_even`: and the sums from c. */
typedef struct {
    int64_t first, count;
    int even, c_even;
    int64_t a_stride, c_stride; /* bytes */
} tile_rows;

static int rises_by(const int32_t *table, int64_t count, int64_t step)
{
    int wrong = 0;
    for (int64_t i = 0; i < count; i++)
        wrong |= table[i] != table[0] + i * step;
    return !wrong;
}

static int rises_evenly(const int64_t *table, int64_t count)
{
    int wrong = 0;
    for (int64_t i = 1; i < count; i++)
        wrong |= table[i] - table[i - 1] != table[1] - table[0];
    return !wrong;
}

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* `count` in parts of at most SIDE, all as long as the first, but for the last. Returns this length. */
static inline int64_t even_part(int64_t count)
{
    const int64_t parts = (count + SIDE - 1) / SIDE;
    return parts > 0 ? (count + parts - 1) / parts : 1;
}

/* to[0 .. count - 1] = of[..], and zeros behind. */
static inline void copy_words(uint32_t *to, const uint32_t *of, int64_t count)
{
#ifdef __AVX512F__
    _mm512_store_si512(to, _mm512_maskz_loadu_epi32((__mmask16)((1u << count) - 1), of));
#else
    for (int64_t i = 0; i < SIDE; i++)
        to[i] = i < count ? of[i] : 0;
#endif
}

#ifdef __AVX512F__
/* Exchanges lanes whose numbers have the bit `distance` between lines that lie this far apart. */
#define EXCHANGE(lines, distance)                                                                                      \
    UNROLLED(i, SIDE)                                                                                                  \
        if (!(i & (distance))) {                                                                                       \
            const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);               \
            const __m512i apart = _mm512_set1_epi32(distance), other = _mm512_set1_epi32(SIDE);                        \
            const __mmask16 far = _mm512_test_epi32_mask(lane, apart);                                                 \
            const __m512i low = _mm512_mask_add_epi32(lane, far, _mm512_sub_epi32(lane, apart), other);                \
            const __m512i high = _mm512_add_epi32(low, apart);                                                         \
            const __m512i near = lines[i], next = lines[i + (distance)];                                               \
            lines[i] = _mm512_permutex2var_epi32(near, low, next);                                                     \
            lines[i + (distance)] = _mm512_permutex2var_epi32(near, high, next);                                       \
        }
#endif

/* buffer[r][k] = a[a_row[r] + a_depth[k]], with zeros behind the last row and the last pair. */
static __attribute__((noinline)) void
stage_transposed(const matrices *x, const tile_rows *t, int64_t first, int64_t pairs, tile_buffer buffer)
{
    const int32_t *row = x->p.a_row + t->first, *depth = x->p.a_depth + first;
#ifdef __AVX512F__
    if (rises_by(row, t->count, 1)) {
        const __mmask16 rows = (__mmask16)((1u << t->count) - 1);
        __m512i lines[SIDE];
        UNROLLED(k, SIDE)
            lines[k] = k < pairs ? _mm512_maskz_loadu_epi32(rows, x->a + row[0] + depth[k]) : _mm512_setzero_si512();
        EXCHANGE(lines, 1)
        EXCHANGE(lines, 2)
        EXCHANGE(lines, 4)
        EXCHANGE(lines, 8)
        UNROLLED(r, SIDE)
            _mm512_store_si512(buffer[r], lines[r]);
        return;
    }
    const __mmask16 mask = (__mmask16)((1u << pairs) - 1);
    const __m512i places = _mm512_maskz_loadu_epi32(mask, depth), zero = _mm512_setzero_si512();
    for (int64_t r = 0; r < SIDE; r++)
        _mm512_store_si512(buffer[r],
                           r < t->count ? _mm512_mask_i32gather_epi32(zero, mask, places, x->a + row[r], 4) : zero);
#else
    for (int64_t r = 0; r < SIDE; r++)
        for (int64_t k = 0; k < SIDE; k++)
            buffer[r][k] = r < t->count && k < pairs ? x->a[row[r] + depth[k]] : 0;
#endif
}

/* stage_transposed for adjacent pairs. */
static __attribute__((noinline)) void
stage_rows(const matrices *x, const tile_rows *t, int64_t first, int64_t pairs, tile_buffer buffer)
{
    for (int64_t r = 0; r < SIDE; r++)
        if (r < t->count)
            copy_words(buffer[r], x->a + x->p.a_row[t->first + r] + x->p.a_depth[first], pairs);
        else
            copy_words(buffer[r], NULL, 0);
}

/* buffer[k][j] = b[b_depth[k] + j], with zeros behind the last pair. */
static __attribute__((noinline)) void
stage_lines(const matrices *x, int64_t first, int64_t pairs, int64_t column, tile_buffer buffer)
{
    for (int64_t k = 0; k < SIDE; k++)
        if (k < pairs)
            copy_words(buffer[k], x->b + x->p.b_depth[first + k] + column, x->n);
        else
            copy_words(buffer[k], NULL, 0);
}

static inline float *sums_at(const matrices *x, int64_t row, int64_t column)
{
    return x->p.c + (x->p.c_row != NULL ? x->p.c_row[row] : row * x->p.c_pitch) + column;
}

static __attribute__((noinline)) void
stage_sums(const matrices *x, const tile_rows *t, int64_t column, tile_buffer buffer)
{
    for (int64_t r = 0; r < t->count; r++)
        copy_words(buffer[r], (const uint32_t *)sums_at(x, t->first + r, column), x->n);
}

static __attribute__((noinline)) void
unstage_sums(const matrices *x, const tile_rows *t, int64_t column, tile_buffer buffer)
{
    for (int64_t r = 0; r < t->count; r++)
        memcpy(sums_at(x, t->first + r, column), buffer[r], sizeof(float) * x->n);
}

/* Where a tile is loaded from: the operand itself, or the buffer in which it was staged. */
typedef struct {
    const void *base;
    int64_t stride; /* bytes */
} place;

static inline place rows_of(const matrices *x, const tile_rows *t, int64_t k, int64_t pairs, tile_buffer buffer)
{
    if (t->even && pairs == x->k)
        return (place){x->a + x->p.a_row[t->first] + x->p.a_depth[k], t->a_stride};
    if (x->adjacent)
        stage_rows(x, t, k, pairs, buffer);
    else
        stage_transposed(x, t, k, pairs, buffer);
    return (place){buffer, ROW_BYTES};
}

static inline place lines_of(const matrices *x, int64_t column, int64_t k, int64_t pairs, tile_buffer buffer)
{
    if (pairs == x->k)
        return (place){x->b + x->p.b_depth[k] + column, x->b_stride};
    stage_lines(x, k, pairs, column, buffer);
    return (place){buffer, ROW_BYTES};
}

static inline place sums_of(const matrices *x, const tile_rows *t, int64_t column, tile_buffer buffer)
{
    if (t->c_even)
        return (place){sums_at(x, t->first, column), t->c_stride};
    stage_sums(x, t, column, buffer);
    return (place){buffer, ROW_BYTES};
}

/* Macros, because the number of a tile register is a part of the instruction. */
#define LOAD(tile, from)                                                                                               \
    do {                                                                                                               \
        const place at = from;                                                                                         \
        TILE_LOAD(tile, at.base, at.stride);                                                                           \
    } while (0)
#define BEGIN_SUMS(tile, t, column)                                                                                    \
    do {                                                                                                               \
        if (x->p.sums == FRESH)                                                                                        \
            TILE_ZERO(tile);                                                                                           \
        else                                                                                                           \
            LOAD(tile, sums_of(x, t, column, staged));                                                                 \
    } while (0)
#define END_SUMS(tile, t, column)                                                                                      \
    do {                                                                                                               \
        if ((t)->c_even) {                                                                                             \
            TILE_STORE(tile, sums_at(x, (t)->first, column), (t)->c_stride);                                           \
        } else {                                                                                                       \
            TILE_STORE(tile, staged, (int64_t)ROW_BYTES);                                                              \
            unstage_sums(x, t, column, staged);                                                                        \
        }                                                                                                              \
    } while (0)
/* A loop over the blocks: `pairs` pairs from k on. */
#define FOR_BLOCKS                                                                                                     \
    for (int64_t first = 0; first < x->p.depth; first += x->p.run)                                                     \
        for (int64_t k = first, pairs; pairs = least(x->k, first + x->p.run - k), pairs > 0; k += x->k)

/* Two tiles of rows by two of columns, or less. */
MATRIX_TARGET static void
add_square(const matrices *x, const tile_rows *t, int two_rows, int64_t column, int two_columns)
{
    const int64_t next = column + x->n;
    tile_buffer staged;
    BEGIN_SUMS(0, t, column);
    if (two_columns)
        BEGIN_SUMS(1, t, next);
    if (two_rows)
        BEGIN_SUMS(2, t + 1, column);
    if (two_rows && two_columns)
        BEGIN_SUMS(3, t + 1, next);
    FOR_BLOCKS
    {
        LOAD(4, rows_of(x, t, k, pairs, staged));
        LOAD(6, lines_of(x, column, k, pairs, staged));
        TILE_MULTIPLY(0, 4, 6);
        if (two_columns) {
            LOAD(7, lines_of(x, next, k, pairs, staged));
            TILE_MULTIPLY(1, 4, 7);
        }
        if (two_rows) {
            LOAD(5, rows_of(x, t + 1, k, pairs, staged));
            TILE_MULTIPLY(2, 5, 6);
            if (two_columns)
                TILE_MULTIPLY(3, 5, 7);
        }
    }
    END_SUMS(0, t, column);
    if (two_columns)
        END_SUMS(1, t, next);
    if (two_rows)
        END_SUMS(2, t + 1, column);
    if (two_rows && two_columns)
        END_SUMS(3, t + 1, next);
}

/* One tile of rows by `tiles` tiles of columns, at most four. */
MATRIX_TARGET static void add_line(const matrices *x, const tile_rows *t, int64_t tiles)
{
    const int64_t n = x->n;
    tile_buffer staged;
    BEGIN_SUMS(0, t, 0);
    if (tiles > 1)
        BEGIN_SUMS(1, t, n);
    if (tiles > 2)
        BEGIN_SUMS(2, t, 2 * n);
    if (tiles > 3)
        BEGIN_SUMS(3, t, 3 * n);
    FOR_BLOCKS
    {
        LOAD(4, rows_of(x, t, k, pairs, staged));
        LOAD(6, lines_of(x, 0, k, pairs, staged));
        TILE_MULTIPLY(0, 4, 6);
        if (tiles > 1) {
            LOAD(7, lines_of(x, n, k, pairs, staged));
            TILE_MULTIPLY(1, 4, 7);
        }
        if (tiles > 2) {
            LOAD(6, lines_of(x, 2 * n, k, pairs, staged));
            TILE_MULTIPLY(2, 4, 6);
        }
        if (tiles > 3) {
            LOAD(7, lines_of(x, 3 * n, k, pairs, staged));
            TILE_MULTIPLY(3, 4, 7);
        }
    }
    END_SUMS(0, t, 0);
    if (tiles > 1)
        END_SUMS(1, t, n);
    if (tiles > 2)
        END_SUMS(2, t, 2 * n);
    if (tiles > 3)
        END_SUMS(3, t, 3 * n);
}

/* The sizes for which this thread's tile registers are configured, or zeros. */
static __thread struct {
    int64_t m, n, k;
} configured;

MATRIX_TARGET static void configure(int64_t m, int64_t n, int64_t k)
{
    tile_config config = {.palette = 1};
    if (configured.m == m && configured.n == n && configured.k == k)
        return;
    for (int tile = 0; tile < 8; tile++) { /* 0 to 3 sums, 4 and 5 rows of a, 6 and 7 lines of b */
        config.rows[tile] = (uint8_t)(tile < 6 ? m : k);
        config.row_bytes[tile] = (uint16_t)(sizeof(uint32_t) * (tile == 4 || tile == 5 ? k : n));
    }
    TILE_CONFIGURE(&config);
    configured.m = m, configured.n = n, configured.k = k;
}

MATRIX_TARGET void release_matrices(void)
{
    if (configured.m == 0)
        return;
    TILE_RELEASE();
    configured.m = 0;
}

static tile_rows rows_from(const matrices *x, int64_t first)
{
    const matrix_product *p = &x->p;
    const int32_t *row = p->a_row + first;
    tile_rows t = {.first = first, .count = least(x->m, p->rows - first)};
    const int64_t pitch = t.count > 1 ? row[1] - row[0] : 0, whole = t.count == x->m;
    t.even = whole && x->adjacent && rises_by(row, t.count, pitch);
    t.a_stride = sizeof(uint32_t) * pitch;
    t.c_even = whole && (p->c_row == NULL || rises_evenly(p->c_row + first, t.count));
    t.c_stride = sizeof(float)
                 * (p->c_row == NULL ? p->c_pitch
                    : t.count > 1    ? p->c_row[first + 1] - p->c_row[first]
                                     : 0);
    return t;
}

void add_matrices(const matrix_product *product)
{
    const matrix_product *p = product;
    const int64_t n = p->columns <= SIDE / 2 ? SIDE / 2 : SIDE, tiles = (p->columns + n - 1) / n;
    const matrices x = {
        .p = *p,
        .a = (const uint32_t *)p->a,
        .b = (const uint32_t *)p->b,
        .m = even_part(p->rows),
        .n = n,
        .k = even_part(p->run),
        .b_stride = p->run > 1 ? (int64_t)sizeof(uint32_t) * (p->b_depth[1] - p->b_depth[0]) : 0,
        .adjacent = p->depth == 0 || rises_by(p->a_depth, p->run, 1),
    };
    if (p->rows == 0 || p->columns == 0)
        return;
    configure(x.m, x.n, x.k);
    for (int64_t r = 0; r < p->rows; r += x.adjacent ? 2 * x.m : x.m) {
        const int two = r + x.m < p->rows;
        const tile_rows t[2] = {rows_from(&x, r), rows_from(&x, two ? r + x.m : r)};
        if (!x.adjacent)
            add_line(&x, t, tiles);
        else
            for (int64_t tile = 0; tile < tiles; tile += 2)
                add_square(&x, t, two, tile * n, tile + 1 < tiles);
    }
}

#endif
