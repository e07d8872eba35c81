/* Non-temporal stores, for results so large that they would evict operands that are still to be read. */
#ifndef CONVGRAD_STREAM_H
#define CONVGRAD_STREAM_H

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <immintrin.h>
#endif

/* Copies bytes with non-temporal stores. `to` and `bytes` are multiples of 64. */
static inline void stream_lines(void *to, const void *of, int64_t bytes)
{
#if defined(__AVX512F__)
    for (int64_t i = 0; i < bytes; i += 64)
        _mm512_stream_si512((void *)((char *)to + i), _mm512_loadu_si512((const char *)of + i));
#elif defined(__AVX__)
    for (int64_t i = 0; i < bytes; i += 32)
        _mm256_stream_si256((__m256i *)((char *)to + i), _mm256_loadu_si256((const __m256i *)((const char *)of + i)));
#elif defined(__SSE2__)
    for (int64_t i = 0; i < bytes; i += 16)
        _mm_stream_si128((__m128i *)((char *)to + i), _mm_loadu_si128((const __m128i *)((const char *)of + i)));
#else
    memcpy(to, of, (size_t)bytes);
#endif
}

/* Orders the non-temporal stores before all later stores; needed before another thread may read the result. */
static inline void end_stream(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

#endif
