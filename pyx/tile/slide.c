/* The sliding and the spreading tiles, compiled once for each instruction set. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-unswitch-loops") /* code for `fresh` and for prefetches once, not twice: 10 kB of a wheel */
#endif
#include "tile/slide.h"
#include "tile/spread.h"
#include "tile/ukernel.h"

/* Limits of taps of a row, positions of a chunk and rows of a block of sums. Their vectors stay in registers, in
 * addition to one for a column of x. */
#define SLIDE_MOST 12
#define SLIDE_ROWS 4
#define SLIDE_AT_MOST_(most, count) ((count) < (most) ? (count) : (most))
#define SLIDE_POSITIONS(step, taps) SLIDE_AT_MOST_((step) == 1 ? SLIDE_MOST : 8, REGISTERS - 1 - (taps))
/* Positions of a chunk whose columns lie in few sets of the L1 cache. */
#define SLIDE_FEW(step, taps) SLIDE_AT_MOST_(3, SLIDE_POSITIONS(step, taps))
/* One CASE for each number of taps. */
#define SLIDE_CASES CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7)
#define SLIDE_BLOCK(taps) SLIDE_AT_MOST_(SLIDE_ROWS, (REGISTERS - 2) / (taps))
/* Positions of y whose products are added to a block of sums together. Their vectors stay in registers, too. With few
 * registers, or with few taps at step 2, loading x for each product is as fast. */
#define SLIDE_COLUMNS (REGISTERS > 16 ? 4 : 1)
#define SLIDE_SHARED(step, rows, taps)                                                                                 \
    SLIDE_AT_MOST_((step) == 1  ? SLIDE_COLUMNS                                                                        \
                   : (taps) > 3 ? (SLIDE_COLUMNS + 1) / 2                                                              \
                                : 1,                                                                                   \
                   REGISTERS - 1 - (rows) * (taps))

/* Keeps a vector in a register, so that the instructions that use it do not load it again. With CONVGRAD_WIDE a vector
 * may be wider than registers. */
#if defined(CONVGRAD_WIDE)
#define KEEP_VECTOR(vector)
#elif defined(__x86_64__)
#define KEEP_VECTOR(vector) __asm__("" : "+v"(vector))
#elif defined(__aarch64__)
#define KEEP_VECTOR(vector) __asm__("" : "+w"(vector))
#else
#define KEEP_VECTOR(vector)
#endif

/* Addresses with the same last 12 bits are in one set of the L1 cache, and processors let a load wait for an earlier
 * store to such an address. Columns that are half as far apart share two sets. */
#define SLIDE_ALIAS 2048

/* Whether loads of x, from the first lane to the last, would soon reach the alias of a line of y just stored. */
static inline int runs_into(uintptr_t x, uintptr_t y)
{
    const uintptr_t ahead = (y - x) % SLIDE_ALIAS;
    return ahead > 0 && ahead <= SLIDE_ALIAS / 2;
}

/* Whether the columns of a single row are in few sets: a long chunk would evict them before the next one reads them.
 * With several rows, a short chunk has too few independent sums. */
static inline int few_sets(const slide_shape *s, size_t itemsize)
{
    return s->rows == 1 && s->x_tap * (int64_t)itemsize % SLIDE_ALIAS == 0;
}

/* Lanes of float32 run in either direction. The other types would add 20 kB to the wheel. */
#define SLIDE_BOTH_WAYS 1
#define TYPE float
#define SLIDE slide_f32
#include "tile/slide_template.h"
#undef TYPE
#undef SLIDE
#undef SLIDE_BOTH_WAYS
#define SLIDE_BOTH_WAYS 0

#define TYPE double
#define SLIDE slide_f64
#include "tile/slide_template.h"
#undef TYPE
#undef SLIDE

#define TYPE uint32_t
#define SLIDE slide_u32
#include "tile/slide_template.h"
#undef TYPE
#undef SLIDE

/* Limits of positions of a chunk and taps of a block of sums of the spreading tile. Their vectors stay in registers. */
#define SPREAD_POSITIONS (REGISTERS > 16 ? 10 : 6)
#if REGISTERS > 16
#define SPREAD_SUM_TAPS SPREAD_TAPS
#else
#define SPREAD_SUM_TAPS 2
#endif
#define SPREAD_LANES (VECTOR_BYTES / (int)sizeof(float))
/* Channels that are taken together, a divisor of a group's channels. */
#define SPREAD_TOGETHER(channels) ((channels) % 4 == 0 ? 4 : (channels) % 3 == 0 ? 3 : (channels) % 2 == 0 ? 2 : 1)

typedef float spread_vector __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef int32_t spread_order __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

#if VECTOR_BYTES == 64 && defined(__AVX512F__)
#define PERMUTE(vector, order) (spread_vector) _mm512_permutexvar_ps((__m512i)(order), (__m512)(vector))
#elif VECTOR_BYTES == 32 && defined(__AVX2__)
#define PERMUTE(vector, order) (spread_vector) _mm256_permutevar8x32_ps((__m256)(vector), (__m256i)(order))
#else
#define PERMUTE(vector, order) permute(vector, order)
static inline spread_vector permute(spread_vector vector, spread_order order)
{
    spread_vector result;
    for (int l = 0; l < SPREAD_LANES; l++)
        result[l] = vector[order[l]];
    return result;
}
#endif

#include "tile/spread_sums.h"

#define TARGET
#define SPREAD spread_f32
#define ADD_SPREAD(sum, a, b) sum += (a) * (b)
#include "tile/spread_template.h"
#undef TARGET
#undef SPREAD
#undef ADD_SPREAD

#ifdef ADD_PAIRS
#define TARGET PAIRS_TARGET
#define SPREAD spread_pairs
#define ADD_SPREAD(sum, a, b) sum = (spread_vector)ADD_PAIRS_LANEWISE(sum, a, b)
#include "tile/spread_template.h"
#undef TARGET
#undef SPREAD
#undef ADD_SPREAD
#endif
