/* Rows of bfloat16: widened, narrowed (bit for bit as bf16_narrow), or two rows joined to one row of pairs (low half,
 * high half).
 *
 * Each loop takes the widest vectors that fit into the row. The last vector of a row may overlap the one before, so
 * there is no scalar remainder. GCC's own vectorization leaves one: half of a row of 28 columns and all of a row of 7.
 * */
#ifndef CONVGRAD_BFLOAT_H
#define CONVGRAD_BFLOAT_H

#include <stdint.h>

#include "base/scalar.h"
#include "tile/ukernel.h"

#define DEFINE_ROWS(length)                                                                                            \
    typedef uint16_t halves_##length __attribute__((vector_size(2 * length), aligned(2), may_alias));                  \
    typedef uint32_t words_##length __attribute__((vector_size(4 * length), aligned(4), may_alias));                   \
    typedef int32_t signed_##length __attribute__((vector_size(4 * length), aligned(4), may_alias));                   \
    static inline words_##length low_##length(const bf16 *of)                                                          \
    {                                                                                                                  \
        return LOW_##length(*(const halves_##length *)of);                                                             \
    }                                                                                                                  \
    static inline void widen_##length(float *to, const bf16 *of, int64_t count)                                        \
    {                                                                                                                  \
        for (int64_t first = 0; first < count; first += length) {                                                      \
            const int64_t i = first + length <= count ? first : count - length;                                        \
            *(words_##length *)(to + i) = low_##length(of + i) << 16;                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    static inline void narrow_##length(bf16 *to, const float *of, int64_t count)                                       \
    {                                                                                                                  \
        for (int64_t first = 0; first < count; first += length) {                                                      \
            const int64_t i = first + length <= count ? first : count - length;                                        \
            const words_##length bits = *(const words_##length *)(of + i), high = bits >> 16;                          \
            const words_##length rounded = (bits + 0x7fff + (high & 1)) >> 16;                                         \
            const words_##length nan = (words_##length)((signed_##length)(bits & 0x7fffffff) > 0x7f800000);            \
            const words_##length result = (nan & (high | 0x40)) | (~nan & rounded);                                    \
            *(halves_##length *)(to + i) = __builtin_convertvector(result, halves_##length);                           \
        }                                                                                                              \
    }                                                                                                                  \
    static inline void pair_##length(uint32_t *to, const bf16 *low, const bf16 *high, int64_t count)                   \
    {                                                                                                                  \
        for (int64_t first = 0; first < count; first += length) {                                                      \
            const int64_t i = first + length <= count ? first : count - length;                                        \
            *(words_##length *)(to + i) = low_##length(low + i) | low_##length(high + i) << 16;                        \
        }                                                                                                              \
    }                                                                                                                  \
    typedef uint32_t apart_##length __attribute__((vector_size(4 * length), aligned(2), may_alias));                   \
    static inline void widen_second_##length(float *to, const bf16 *of, int64_t count)                                 \
    {                                                                                                                  \
        for (int64_t first = 0; first < count; first += length) {                                                      \
            const int64_t i = first + length <= count ? first : count - length;                                        \
            *(words_##length *)(to + i) = *(const apart_##length *)(of + 2 * i) << 16;                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static inline void pair_second_##length(uint32_t *to, const bf16 *low, const bf16 *high, int64_t count)            \
    {                                                                                                                  \
        for (int64_t first = 0; first < count; first += length) {                                                      \
            const int64_t i = first + length <= count ? first : count - length;                                        \
            const words_##length near = *(const apart_##length *)(low + 2 * i) & 0xffff;                               \
            *(words_##length *)(to + i) = near | *(const apart_##length *)(high + 2 * i) << 16;                        \
        }                                                                                                              \
    }

#define LOW_4(halves) __builtin_convertvector(halves, words_4)
#define LOW_8(halves) __builtin_convertvector(halves, words_8)
#ifdef __AVX512F__ /* GCC would use five instructions instead of this one */
#define LOW_16(halves) (words_16) _mm512_cvtepu16_epi32((__m256i)(halves))
#else
#define LOW_16(halves) __builtin_convertvector(halves, words_16)
#endif
#if VECTOR_BYTES >= 64
DEFINE_ROWS(16)
#define ROW_OF_16(name, ...)                                                                                           \
    if (count >= 16) {                                                                                                 \
        name##_16(__VA_ARGS__, count);                                                                                 \
        return;                                                                                                        \
    }
#else
#define ROW_OF_16(name, ...)
#endif
#if VECTOR_BYTES >= 32
DEFINE_ROWS(8)
#define ROW_OF_8(name, ...)                                                                                            \
    if (count >= 8) {                                                                                                  \
        name##_8(__VA_ARGS__, count);                                                                                  \
        return;                                                                                                        \
    }
#else
#define ROW_OF_8(name, ...)
#endif
DEFINE_ROWS(4)
#define BY_VECTORS(name, ...)                                                                                          \
    ROW_OF_16(name, __VA_ARGS__)                                                                                       \
    ROW_OF_8(name, __VA_ARGS__)                                                                                        \
    if (count >= 4) {                                                                                                  \
        name##_4(__VA_ARGS__, count);                                                                                  \
        return;                                                                                                        \
    }

static inline void bf16_widen_row(float *to, const bf16 *of, int64_t count)
{
    BY_VECTORS(widen, to, of)
    for (int64_t i = 0; i < count; i++)
        to[i] = bf16_widen(of[i]);
}

#if defined(__AVX512F__) && defined(ADD_PAIRS)
/* The instruction flushes subnormal numbers to zero, so vectors with a subnormal number use integer arithmetic instead.
 * */
static PAIRS_TARGET void narrow_natively(bf16 *to, const float *of, int64_t count)
{
    enum { SUBNORMAL = 1 << 5 };
    for (int64_t first = 0; first < count; first += 16) {
        const int64_t i = first + 16 <= count ? first : count - 16;
        const __m512 line = _mm512_loadu_ps(of + i);
        if (__builtin_expect(_mm512_fpclass_ps_mask(line, SUBNORMAL) != 0, 0))
            narrow_16(to + i, of + i, 16);
        else
            _mm256_storeu_si256((__m256i *)(to + i), (__m256i)_mm512_cvtneps_pbh(line));
    }
}
#define LEAST_NATIVE 16
#elif defined(__aarch64__) && defined(ADD_PAIRS) && !defined(CONVGRAD_WIDE)
static PAIRS_TARGET void narrow_natively(bf16 *to, const float *of, int64_t count)
{
    for (int64_t first = 0; first < count; first += 4) {
        const int64_t i = first + 4 <= count ? first : count - 4;
        halves_4 line;
        __asm__("bfcvtn %0.4h, %1.4s" : "=w"(line) : "w"(*(const words_4 *)(of + i)));
        *(halves_4 *)(to + i) = line;
    }
}
#define LEAST_NATIVE 4
#endif
#ifdef LEAST_NATIVE
#define NARROW_NATIVELY                                                                                                \
    if (count >= LEAST_NATIVE && has_pairs()) {                                                                        \
        narrow_natively(to, of, count);                                                                                \
        return;                                                                                                        \
    }
#else
#define NARROW_NATIVELY
#endif

static inline void bf16_narrow_row(bf16 *to, const float *of, int64_t count)
{
    NARROW_NATIVELY
    BY_VECTORS(narrow, to, of)
    for (int64_t i = 0; i < count; i++)
        to[i] = bf16_narrow(of[i]);
}

/* to[i] = the pair of low[i] and high[i] */
static inline void bf16_pair_rows(uint32_t *to, const bf16 *low, const bf16 *high, int64_t count)
{
    BY_VECTORS(pair, to, low, high)
    for (int64_t i = 0; i < count; i++)
        to[i] = low[i].bits | (uint32_t)high[i].bits << 16;
}

/* to[i] = of[2 * i], read as the low half of a word. The word of the last element may end outside the array, so callers
 * convert this element by itself. */
static inline void widen_seconds(float *to, const bf16 *of, int64_t count)
{
    BY_VECTORS(widen_second, to, of)
    for (int64_t i = 0; i < count; i++)
        to[i] = bf16_widen(of[2 * i]);
}

static inline void bf16_widen_every_second(float *to, const bf16 *of, int64_t count)
{
    if (count > 0)
        to[count - 1] = bf16_widen(of[2 * (count - 1)]);
    widen_seconds(to, of, count - 1);
}

/* to[i] = the pair of low[2 * i] and high[2 * i], read as halves of words. Callers convert the last element by itself.
 * */
static inline void pair_seconds(uint32_t *to, const bf16 *low, const bf16 *high, int64_t count)
{
    BY_VECTORS(pair_second, to, low, high)
    for (int64_t i = 0; i < count; i++)
        to[i] = low[2 * i].bits | (uint32_t)high[2 * i].bits << 16;
}

static inline void bf16_pair_every_second(uint32_t *to, const bf16 *low, const bf16 *high, int64_t count)
{
    if (count > 0)
        to[count - 1] = low[2 * (count - 1)].bits | (uint32_t)high[2 * (count - 1)].bits << 16;
    pair_seconds(to, low, high, count - 1);
}

#undef NARROW_NATIVELY
#undef LEAST_NATIVE
#undef LOW_4
#undef LOW_8
#undef LOW_16
#undef DEFINE_ROWS
#undef ROW_OF_16
#undef ROW_OF_8
#undef BY_VECTORS

#endif
