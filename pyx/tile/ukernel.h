/* The shape of the register tile on each instruction set, and the tiles of each compute type, compiled in ukernel.c.
 *
 * With CONVGRAD_WIDE, tiles have the shape for AVX-512 on any instruction set. This is slow, but a machine without
 * AVX-512 can then test everything that follows from the shape (windows, plans, masks, pairs).
 *
 * A full tile has TILE_ROWS x TILE_VECTORS sums in registers, and needs TILE_VECTORS registers for a line of b and one
 * for an element of a. A tile of fewer vectors has more rows, at most NARROW_ROWS, because each sum waits for its last
 * product and more sums are independent. */
#ifndef CONVGRAD_UKERNEL_H
#define CONVGRAD_UKERNEL_H

#include <stdint.h>
#include <string.h>

#include "base/unroll.h"
#include "cpu_features.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

#if defined(__AVX512F__) || defined(CONVGRAD_WIDE) /* 32 registers of 64 bytes */
#define VECTOR_BYTES 64
#define REGISTERS 32
#define TILE_VECTORS 4
#define TILE_ROWS 6
#elif defined(__AVX2__) /* 16 registers of 32 bytes */
#define VECTOR_BYTES 32
#define REGISTERS 16
#define TILE_VECTORS 2
#define TILE_ROWS 6
#elif defined(__aarch64__) /* 32 registers of 16 bytes */
#define VECTOR_BYTES 16
#define REGISTERS 32
#define TILE_VECTORS 4
#define TILE_ROWS 6
#else /* 16 registers of 16 bytes, one of them for a product */
#define VECTOR_BYTES 16
#define REGISTERS 15
#define TILE_VECTORS 2
#define TILE_ROWS 4
#endif
#if REGISTERS > 16
#define NARROW_ROWS 10
#define MOST_ROWS(vectors) ((vectors) == TILE_VECTORS ? TILE_ROWS : (vectors) == 1 ? NARROW_ROWS : 8)
#else
#define NARROW_ROWS 8
#define MOST_ROWS(vectors) ((vectors) == TILE_VECTORS ? TILE_ROWS : NARROW_ROWS)
#endif
/* A tall tile has one vector of columns and evenly spaced rows of a, whose addresses need fewer registers. So it has
 * more rows. */
#define MOST_TALL_ROWS 16
#define TALL_ROWS (VECTOR_BYTES >= 64 ? MOST_TALL_ROWS : 0)
/* Tiles of few columns use vectors of half the size, which some processors multiply 2x faster. When they walk runs,
 * they have fewer rows, because GCC would otherwise keep loop variables in vector registers. On Zen 4, tiles of eight
 * rows reach 85 % of the full tile's speed, and tiles of nine or ten rows 70 %. */
#define HALF_ROWS 8
#define HALF_VECTORS (VECTOR_BYTES >= 64)
/* WALKS_RUNS: whether a tile walks through runs without reading the depth tables. Loads limit tiles of one vector; with
 * vectors of 32 bytes, wider tiles have few products per instruction as well. LONG_RUN: the least length of such a run.
 * The ends of shorter runs are mispredicted branches. */
#define WALKS_RUNS(vectors) (VECTOR_BYTES == 32 || ((vectors) == 1 && VECTOR_BYTES > 32))
#define LONG_RUN(vectors) ((vectors) == 1 ? 8 : 64)

/* Keeps an address in a register. Arm loads two vectors at once if their offsets from a register are constants. x86
 * loads one at a time, from any sum of two registers and a constant. */
#ifdef __aarch64__
#define KEEP_ADDRESS(pointer) __asm__("" : "+r"(pointer))
#else
#define KEEP_ADDRESS(pointer) (void)(pointer)
#endif

enum { CARRIED, FRESH, ADDED, STREAMED }; /* beginning and end of a tile's sums, see ukernel_template.h */

/* Prefetches the first lines of a row that the next tile reads. The processor's own prefetcher fetches the rest. */
#define FIRST_BYTES 256
static inline void prefetch_lines(const void *first)
{
    UNROLLED(i, FIRST_BYTES / 64)
        __builtin_prefetch((const char *)first + 64 * i, 0, 3);
}

/* Some processors multiply pairs of bfloat16 and add both products in one instruction. It flushes subnormal numbers to
 * zero. PAIRS_TARGET allows a function to use it. has_pairs says whether the processor has it. */
#if defined(__AVX512F__) && (defined(__clang__) || __GNUC__ >= 10)
#define PAIRS_TARGET __attribute__((target("avx512bf16,avx512vl")))
#define ADD_PAIRS_OF(sum, a, b) _mm512_dpbf16_ps((__m512)(sum), (__m512bh)(a), (__m512bh)(b))
#define ADD_PAIRS(sum, factor, line) add_pairs((__m512)(sum), factor, (__m512)(line))
#define ADD_HALF_PAIRS(sum, factor, line) add_half_pairs((__m256)(sum), factor, (__m256)(line))
/* Assembly, because GCC broadcasts the element with a separate instruction, which takes a third as long as the product.
 * A broadcast memory operand is free. */
#define DEFINE_ADD_PAIRS(name, vector, count)                                                                          \
    PAIRS_TARGET static inline __attribute__((always_inline)) vector name(vector sum, const float *factor,             \
                                                                          vector line)                                 \
    {                                                                                                                  \
        __asm__("vdpbf16ps %2%{1to" count "%}, %1, %0" : "+v"(sum) : "v"(line), "m"(*factor));                         \
        return sum;                                                                                                    \
    }
DEFINE_ADD_PAIRS(add_pairs, __m512, "16")
DEFINE_ADD_PAIRS(add_half_pairs, __m256, "8")
static inline int has_pairs(void)
{
    return __builtin_cpu_supports("avx512bf16") != 0;
}
#elif defined(CONVGRAD_WIDE)
#define PAIRS_TARGET
#define ADD_PAIRS_OF(sum, a, b) pairs_of_wide((wide_floats)(sum), (wide_words)(a), (wide_words)(b))
#define ADD_PAIRS(sum, factor, line) wide_pairs((wide_floats)(sum), *(factor), (wide_floats)(line))
#define ADD_HALF_PAIRS(sum, factor, line) half_pairs((half_floats)(sum), *(factor), (half_floats)(line))
#define DEFINE_PAIRS(name, bytes)                                                                                      \
    typedef float name##_floats __attribute__((vector_size(bytes), may_alias));                                        \
    typedef uint32_t name##_words __attribute__((vector_size(bytes), may_alias));                                      \
    static inline name##_floats pairs_of_##name(name##_floats sum, name##_words a, name##_words b)                     \
    {                                                                                                                  \
        sum += (name##_floats)(a & 0xffff0000) * (name##_floats)(b & 0xffff0000);                                      \
        return sum + (name##_floats)(a << 16) * (name##_floats)(b << 16);                                              \
    }                                                                                                                  \
    static inline name##_floats name##_pairs(name##_floats sum, float factor, name##_floats line)                      \
    {                                                                                                                  \
        uint32_t bits; /* as a float they may be a NaN, which arithmetic would change */                               \
        memcpy(&bits, &factor, sizeof bits);                                                                           \
        return pairs_of_##name(sum, (name##_words){0} + bits, (name##_words)line);                                     \
    }
DEFINE_PAIRS(wide, VECTOR_BYTES)
DEFINE_PAIRS(half, VECTOR_BYTES / 2)
static inline int has_pairs(void)
{
    return 1;
}
#elif defined(__aarch64__) && (defined(__clang__) || __GNUC__ >= 10)
#ifdef __clang__
#define PAIRS_TARGET __attribute__((target("bf16")))
#else
#define PAIRS_TARGET __attribute__((target("arch=armv8.2-a+bf16")))
#endif
#define ADD_PAIRS_OF(sum, a, b) add_pairs_of((four_floats)(sum), (four_floats)(a), (four_floats)(b))
#define ADD_PAIRS(sum, factor, line) add_pairs((four_floats)(sum), factor, (four_floats)(line))
#define ADD_HALF_PAIRS(sum, factor, line) add_half_pairs((two_floats)(sum), factor, (two_floats)(line))
typedef float four_floats __attribute__((vector_size(16), may_alias));
typedef float two_floats __attribute__((vector_size(8), may_alias));
/* bfdot adds the two products, and then adds the result to the sum. Both additions round to odd: an inexact result is
 * the neighbour whose last bit is 1. So the error of an addition is less than one unit in the last place, not half of
 * one, and has no direction. This is so if FPCR.EBF is 0, as in the standard state (float_state.h). */
#define DEFINE_ADD_PAIRS(name, vector, factor_type, factor_value, operands)                                            \
    PAIRS_TARGET static inline __attribute__((always_inline)) vector name(vector sum, factor_type factor, vector line) \
    {                                                                                                                  \
        __asm__("bfdot " operands : "+w"(sum) : "w"(line), "w"(factor_value));                                         \
        return sum;                                                                                                    \
    }
DEFINE_ADD_PAIRS(add_pairs_of, four_floats, four_floats, factor, "%0.4s, %1.8h, %2.8h")
DEFINE_ADD_PAIRS(add_pairs, four_floats, const float *, *factor, "%0.4s, %1.8h, %2.2h[0]")
DEFINE_ADD_PAIRS(add_half_pairs, two_floats, const float *, *factor, "%0.2s, %1.4h, %2.2h[0]")
static inline int has_pairs(void)
{
    static int known; /* 0: not yet asked. Some systems take long to answer, and every row of bfloat16 asks. */
    int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (answer == 0) {
        answer = has_bf16() ? 1 : -1;
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer > 0;
}
#else
static inline int has_pairs(void)
{
    return 0;
}
#endif

/* The functions that ukernel_template.h defines for one compute type. */
#define DECLARE_TILES(name, type)                                                                                      \
    void name(int channelwise, int rows, int vectors, int64_t depth, int64_t run, const type *a, const int32_t *a_row, \
              const int32_t *a_depth, const type *b, const int32_t *b_depth, type *c, const int64_t *c_row, int sums); \
    void name##_half(int rows, int64_t depth, int64_t run, const type *a, const int32_t *a_row,                        \
                     const int32_t *a_depth, const type *b, const int32_t *b_depth, type *c, const int64_t *c_row,     \
                     int sums);                                                                                        \
    void name##_tall(int rows, int64_t depth, int64_t run, const type *a, int64_t a_pitch, const int32_t *a_depth,     \
                     const type *b, const int32_t *b_depth, type *c, const int64_t *c_row, int sums);

/* int32 is computed as uint32_t: sums wrap modulo 2^32, which signed arithmetic in C does not guarantee. */
DECLARE_TILES(tile_f32, float)
DECLARE_TILES(tile_f64, double)
DECLARE_TILES(tile_u32, uint32_t)
#ifdef ADD_PAIRS
DECLARE_TILES(tile_pairs, float)
#else
#define tile_pairs tile_f32
#define tile_pairs_half tile_f32_half
#define tile_pairs_tall tile_f32_tall
#endif

#endif
