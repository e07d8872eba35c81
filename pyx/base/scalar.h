/* The two 16-bit types and their conversions. Widening is exact. Narrowing rounds to nearest even.
 *
 * Conversions are integer arithmetic without branches, so compilers vectorize loops over them for every instruction
 * set. Every Arm processor has an instruction for a float16. The types are structs because Cython cannot tell two
 * typedefs of one integer type apart. */
#ifndef CONVGRAD_SCALAR_H
#define CONVGRAD_SCALAR_H

#include <stdint.h>
#include <string.h>

typedef struct {
    uint16_t bits; /* sign 1, exponent 5, fraction 10 */
} f16;

typedef struct {
    uint16_t bits; /* sign 1, exponent 8, fraction 7: the upper half of a float */
} bf16;

static inline uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#ifdef __aarch64__

static inline float f16_widen(f16 half)
{
    __fp16 value;
    memcpy(&value, &half, sizeof value);
    return (float)value;
}

static inline f16 f16_narrow(float value)
{
    const __fp16 rounded = (__fp16)value;
    f16 half;
    memcpy(&half, &rounded, sizeof half);
    return half;
}

#else

static inline float f16_widen(f16 half)
{
    const uint32_t sign = (uint32_t)(half.bits & 0x8000) << 16, magnitude = half.bits & 0x7fff;
    const uint32_t subnormal = float_bits((float)(int32_t)magnitude * 0x1p-24f);
    const uint32_t rebias = magnitude >= 0x7c00 ? (255 - 31) << 23 : (127 - 15) << 23;
    return bits_float(sign | (magnitude < 0x0400 ? subnormal : (magnitude << 13) + rebias));
}

static inline f16 f16_narrow(float value)
{
    const uint32_t bits = float_bits(value), magnitude = bits & 0x7fffffff;
    const uint32_t normal = (magnitude - ((127 - 15) << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    /* Adding one half puts the unit of the last place at 2^-24, the step of the subnormals. */
    const uint32_t subnormal = float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000;
    const uint32_t special = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
    const uint32_t finite = magnitude < (127 - 14) << 23 ? subnormal : normal;
    return (f16){(uint16_t)((bits >> 16 & 0x8000) | (magnitude >= 0x477ff000 ? special : finite))};
}

#endif

static inline float bf16_widen(bf16 half)
{
    return bits_float((uint32_t)half.bits << 16);
}

static inline bf16 bf16_narrow(float value)
{
    const uint32_t bits = float_bits(value);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (bf16){(uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded)};
}

/* Rows of adjacent elements. Processors with float16 instructions convert several times faster. They give the same
 * values, except that a NaN keeps more of its payload. */
#if defined(__F16C__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

static inline void f16_widen_row(float *to, const f16 *of, int64_t count)
{
    int64_t i = 0;
#ifdef __AVX512F__
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(of + i))));
#endif
#ifdef __F16C__
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(of + i))));
#elif defined(__aarch64__)
    for (; i + 4 <= count; i += 4)
        vst1q_f32(to + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&of[i].bits))));
#endif
    for (; i < count; i++)
        to[i] = f16_widen(of[i]);
}

/* to[i] = of[2 * i], read as the low half of a word. The word of the last element may end outside the array, so the
 * scalar loop converts it. */
static inline void f16_widen_every_second(float *to, const f16 *of, int64_t count)
{
    int64_t i = 0;
#ifdef __AVX512F__
    for (; i + 16 < count; i += 16)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_loadu_si512(of + 2 * i))));
#endif
#ifdef __F16C__
    for (; i + 4 < count; i += 4) {
        const __m128i words = _mm_and_si128(_mm_loadu_si128((const __m128i *)(of + 2 * i)), _mm_set1_epi32(0xffff));
        _mm_storeu_ps(to + i, _mm_cvtph_ps(_mm_packus_epi32(words, words)));
    }
#endif
    for (; i < count; i++)
        to[i] = f16_widen(of[2 * i]);
}

static inline void f16_narrow_row(f16 *to, const float *of, int64_t count)
{
    int64_t i = 0;
#ifdef __AVX512F__
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256((__m256i *)(to + i), _mm512_cvtps_ph(_mm512_loadu_ps(of + i), _MM_FROUND_TO_NEAREST_INT));
#endif
#ifdef __F16C__
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(of + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__aarch64__)
    for (; i + 4 <= count; i += 4)
        vst1_u16(&to[i].bits, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(of + i))));
#endif
    for (; i < count; i++)
        to[i] = f16_narrow(of[i]);
}

#endif
