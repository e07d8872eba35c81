/* The register tile's shape on each instruction set, and the tiles of each compute type, which are compiled in ukernel.c.
 *
 * With CONVGRAD_WIDE the shape is that of AVX-512 whatever the instructions are: slow, but so all that follows from the
 * shape (windows, plans, masks, pairs) can be tested on a machine without AVX-512.
 *
 * A full tile has TILE_ROWS x TILE_VECTORS sums in registers, beside TILE_VECTORS registers for a line of b and one for
 * an element of a. A tile of fewer vectors has at most NARROW_ROWS rows: more independent sums, since each waits for its
 * last product.
 */
#ifndef CONVGRAD_UKERNEL_H
#define CONVGRAD_UKERNEL_H

#include <stdint.h>
#include <string.h>

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
/* A tile of one vector whose rows of a lie evenly needs fewer registers for them, and has more sums. */
#define MOST_TALL_ROWS 16
#define TALL_ROWS (VECTOR_BYTES >= 64 ? MOST_TALL_ROWS : 0)
/* Tiles of few columns have vectors of half the size, which some processors multiply at twice the rate. Through runs they walk
 * with fewer rows, or GCC would keep the loop's variables in vector registers: on Zen 4 eight reach 85 % of the rate that the
 * full tile has, nine or ten 70 %. */
#define HALF_ROWS 8
#define HALF_VECTORS (VECTOR_BYTES >= 64)
/* Loads bound tiles of one vector, and of 32 bytes wider ones have few products for an instruction, too. The ends of runs
 * of fewer steps are branches that are not foreseen. */
#define WALKS_RUNS(vectors) (VECTOR_BYTES == 32 || ((vectors) == 1 && VECTOR_BYTES > 32))
#define LONG_RUN(vectors) ((vectors) == 1 ? 8 : 64)

enum { CARRIED, FRESH, ADDED, STREAMED }; /* how a tile's sums begin and end */

/* The first lines of a row that the next tile will read: from there on the processor sees where it leads. */
#define FIRST_BYTES 256
static inline void prefetch_lines(const void *first)
{
#pragma GCC unroll 4
    for (int i = 0; i < FIRST_BYTES; i += 64)
        __builtin_prefetch((const char *)first + i, 0, 3);
}

/* Some processors multiply pairs of bfloat16 and add both products in one instruction. It takes subnormal numbers for zero. */
#if defined(__AVX512F__) && (defined(__clang__) || __GNUC__ >= 10)
#define PAIRS_TARGET __attribute__((target("avx512bf16,avx512vl")))
#define ADD_PAIRS_OF(sum, a, b) _mm512_dpbf16_ps((__m512)(sum), (__m512bh)(a), (__m512bh)(b))
#define ADD_PAIRS(sum, factor, line) add_pairs((__m512)(sum), factor, (__m512)(line))
#define ADD_HALF_PAIRS(sum, factor, line) add_half_pairs((__m256)(sum), factor, (__m256)(line))
/* An element that an instruction of its own makes a vector, as GCC does, takes a third of a product's time; an operand in memory
 * takes none. */
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
#define ADD_PAIRS(sum, factor, line) wide_pairs((wide_floats)(sum), factor, (wide_floats)(line))
#define ADD_HALF_PAIRS(sum, factor, line) half_pairs((half_floats)(sum), factor, (half_floats)(line))
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
        uint32_t bits; /* as a float it may be a NaN, which arithmetic would change */                                 \
        memcpy(&bits, &factor, sizeof bits);                                                                           \
        return pairs_of_##name(sum, (name##_words){0} + bits, (name##_words)line);                                     \
    }
DEFINE_PAIRS(wide, VECTOR_BYTES)
DEFINE_PAIRS(half, VECTOR_BYTES / 2)
static inline int has_pairs(void)
{
    return 1;
}
#else
static inline int has_pairs(void)
{
    return 0;
}
#endif

/* What ukernel_template.h defines for one compute type. */
#define DECLARE_TILES(name, type)                                                                                      \
    void name(int channelwise, int rows, int vectors, int64_t depth, int64_t run, const type *a, const int32_t *a_row, \
              const int32_t *a_depth, const type *b, const int32_t *b_depth, type *c, const int64_t *c_row, int sums); \
    void name##_half(int rows, int64_t depth, int64_t run, const type *a, const int32_t *a_row,                        \
                     const int32_t *a_depth, const type *b, const int32_t *b_depth, type *c, const int64_t *c_row,     \
                     int sums);                                                                                        \
    void name##_tall(int rows, int64_t depth, int64_t run, const type *a, int64_t a_pitch, const int32_t *a_depth,     \
                     const type *b, const int32_t *b_depth, type *c, const int64_t *c_row, int sums);

/* int32 is computed without a sign: its sums wrap modulo 2^32, which signed arithmetic in C does not promise. */
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
