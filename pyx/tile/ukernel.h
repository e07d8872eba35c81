/* The shape of the register tile on each instruction set, and the functions for each compute type (ukernel.c).
 *
 * A tile adds the matrix product of a and b to sums c (ukernel_template.h). A full tile keeps TILE_ROWS x TILE_VECTORS
 * vectors of sums in registers, TILE_VECTORS vectors of a row of b, and one element of a. A tile of fewer vectors has
 * more rows, at most NARROW_ROWS: each addition to a sum waits for the previous one, so a tile needs enough independent
 * sums.
 *
 * With CONVGRAD_WIDE, tiles have the shape for AVX-512 on any instruction set. This is slow, but a machine without
 * AVX-512 can then test everything that depends on the shape (windows, plans, masks, pairs). */
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
#else /* 16 registers of 16 bytes. Without fused multiply-add, one of them holds a product. */
#define VECTOR_BYTES 16
#define REGISTERS 15
#define TILE_VECTORS 2
#define TILE_ROWS 4
#endif
/* NARROW_ROWS: maximum rows of a tile of one vector. MOST_ROWS: maximum rows of a tile of this number of vectors. */
#if REGISTERS > 16
#define NARROW_ROWS 10
#define MOST_ROWS(vectors) ((vectors) == TILE_VECTORS ? TILE_ROWS : (vectors) == 1 ? NARROW_ROWS : 8)
#else
#define NARROW_ROWS 8
#define MOST_ROWS(vectors) ((vectors) == TILE_VECTORS ? TILE_ROWS : NARROW_ROWS)
#endif
/* A tall tile has one vector of columns and evenly spaced rows of a. Their addresses need fewer registers, so it has
 * more rows. TALL_ROWS: maximum rows of a tall tile on this instruction set; 0 if it has none. MOST_TALL_ROWS: maximum
 * on all instruction sets, the length of arrays for rows. */
#define MOST_TALL_ROWS 16
#define TALL_ROWS (VECTOR_BYTES >= 64 ? MOST_TALL_ROWS : 0)
/* If the columns fill at most half of one vector, a tile uses vectors of half the size, which some processors multiply
 * 2x faster. HALF_VECTORS: whether there are such tiles. HALF_ROWS: their maximum rows if runs of the depth have more
 * than one step. With more rows, GCC would keep loop variables in vector registers. On Zen 4, tiles of eight rows reach
 * 85 % of the full tile's speed, and tiles of nine or ten rows reach 70 %. */
#define HALF_ROWS 8
#define HALF_VECTORS (VECTOR_BYTES >= 64)
/* The depth of a product consists of runs. Within a run, the offsets in both depth tables increase by constants.
 * WALKS_RUNS: whether tiles add these constants instead of reading the tables. The speed of tiles of one vector is
 * limited by loads; with vectors of 32 bytes, the speed of wider tiles is, too. LONG_RUN: the minimum length of a run
 * for this. The end of a run is a mispredicted branch, which costs more than a shorter run saves. */
#define WALKS_RUNS(vectors) (VECTOR_BYTES == 32 || ((vectors) == 1 && VECTOR_BYTES > 32))
#define LONG_RUN(vectors) ((vectors) == 1 ? 8 : 64)

/* Makes the compiler keep an address in a register. Arm can load two vectors with one instruction, if they have
 * constant offsets from one register. x86 needs no such help: it loads single vectors from the sum of two registers and
 * a constant. */
#ifdef __aarch64__
#define KEEP_ADDRESS(pointer) __asm__("" : "+r"(pointer))
#else
#define KEEP_ADDRESS(pointer) (void)(pointer)
#endif

/* The values of `sum_mode`: how a tile begins its sums, and how it stores them in c. */
enum {
    CARRIED,  /* begin with the values in c, and replace them */
    FRESH,    /* begin with zeros, and replace the values in c */
    ADDED,    /* begin with zeros, and add the sums to the values in c */
    STREAMED, /* as FRESH, with non-temporal stores of whole, aligned vectors */
};

/* Prefetches the first FIRST_BYTES of a row of a that the next tile reads. The hardware prefetcher fetches the rest. */
#define FIRST_BYTES 256
static inline void prefetch_lines(const void *first)
{
    UNROLLED(i, FIRST_BYTES / 64)
        __builtin_prefetch((const char *)first + 64 * i, 0, 3);
}

/* Some processors have an instruction that multiplies two pairs of bfloat16 in each 32-bit lane and adds both products
 * to a float. It flushes subnormal numbers to zero. PAIRS_TARGET is the attribute of functions that use it. has_pairs
 * returns whether the processor has it.
 *
 * ADD_PAIRS(sum, factor, b): each lane of the vector b has a pair; `factor` points to one pair, for all lanes.
 * ADD_HALF_PAIRS: this, with vectors of half the size.
 * ADD_PAIRS_LANEWISE(sum, a, b): each lane of the vectors a and b has a pair. */
#if defined(__AVX512F__) && (defined(__clang__) || __GNUC__ >= 10)
#define PAIRS_TARGET __attribute__((target("avx512bf16,avx512vl")))
#define ADD_PAIRS_LANEWISE(sum, a, b) _mm512_dpbf16_ps((__m512)(sum), (__m512bh)(a), (__m512bh)(b))
#define ADD_PAIRS(sum, factor, b) add_pairs((__m512)(sum), factor, (__m512)(b))
#define ADD_HALF_PAIRS(sum, factor, b) add_half_pairs((__m256)(sum), factor, (__m256)(b))
/* Assembly, because GCC broadcasts the pair with a separate instruction, which takes a third as long as the product. A
 * broadcast memory operand is free. */
#define DEFINE_ADD_PAIRS(name, vector, count)                                                                          \
    PAIRS_TARGET static inline __attribute__((always_inline)) vector name(vector sum, const float *factor, vector b)   \
    {                                                                                                                  \
        __asm__("vdpbf16ps %2%{1to" count "%}, %1, %0" : "+v"(sum) : "v"(b), "m"(*factor));                            \
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
#define ADD_PAIRS_LANEWISE(sum, a, b) lanewise_pairs_wide((wide_floats)(sum), (wide_words)(a), (wide_words)(b))
#define ADD_PAIRS(sum, factor, b) wide_pairs((wide_floats)(sum), *(factor), (wide_floats)(b))
#define ADD_HALF_PAIRS(sum, factor, b) half_pairs((half_floats)(sum), *(factor), (half_floats)(b))
#define DEFINE_PAIRS(name, bytes)                                                                                      \
    typedef float name##_floats __attribute__((vector_size(bytes), may_alias));                                        \
    typedef uint32_t name##_words __attribute__((vector_size(bytes), may_alias));                                      \
    static inline name##_floats lanewise_pairs_##name(name##_floats sum, name##_words a, name##_words b)               \
    {                                                                                                                  \
        sum += (name##_floats)(a & 0xffff0000) * (name##_floats)(b & 0xffff0000);                                      \
        return sum + (name##_floats)(a << 16) * (name##_floats)(b << 16);                                              \
    }                                                                                                                  \
    static inline name##_floats name##_pairs(name##_floats sum, float factor, name##_floats b)                         \
    {                                                                                                                  \
        uint32_t bits; /* not a float: the pair may look like a NaN, which arithmetic could change */                  \
        memcpy(&bits, &factor, sizeof bits);                                                                           \
        return lanewise_pairs_##name(sum, (name##_words){0} + bits, (name##_words)b);                                  \
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
#define ADD_PAIRS_LANEWISE(sum, a, b) add_pairs_lanewise((four_floats)(sum), (four_floats)(a), (four_floats)(b))
#define ADD_PAIRS(sum, factor, b) add_pairs((four_floats)(sum), factor, (four_floats)(b))
#define ADD_HALF_PAIRS(sum, factor, b) add_half_pairs((two_floats)(sum), factor, (two_floats)(b))
typedef float four_floats __attribute__((vector_size(16), may_alias));
typedef float two_floats __attribute__((vector_size(8), may_alias));
/* bfdot adds the two products, and then adds the result to the sum. Both additions round to odd: of the two neighbours
 * of an inexact result, they return the one whose last bit is 1. The error of an addition may be almost one unit in the
 * last place (half a unit with rounding to nearest), and it is not biased. This holds if FPCR.EBF is 0, as in the
 * standard state (float_state.h). */
#define DEFINE_ADD_PAIRS(name, vector, factor_type, factor_value, operands)                                            \
    PAIRS_TARGET static inline __attribute__((always_inline)) vector name(vector sum, factor_type factor, vector b)    \
    {                                                                                                                  \
        __asm__("bfdot " operands : "+w"(sum) : "w"(b), "w"(factor_value));                                            \
        return sum;                                                                                                    \
    }
DEFINE_ADD_PAIRS(add_pairs_lanewise, four_floats, four_floats, factor, "%0.4s, %1.8h, %2.8h")
DEFINE_ADD_PAIRS(add_pairs, four_floats, const float *, *factor, "%0.4s, %1.8h, %2.2h[0]")
DEFINE_ADD_PAIRS(add_half_pairs, two_floats, const float *, *factor, "%0.2s, %1.4h, %2.2h[0]")
static inline int has_pairs(void)
{
    static int known; /* 0 until the first call. The query takes long on some systems, and bfloat.h calls it per row. */
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

/* The functions of ukernel_template.h for one compute type: `name` for tiles of whole vectors, `name`_half for tiles of
 * half a vector, `name`_tall for tall tiles. The template explains a, b, c, their tables of offsets, and `run`.
 *
 * channelwise: a has its own element for each column.
 * rows, vectors: the size of the tile.
 * depth: steps of the sum, in runs of `run` steps.
 * a_pitch: the distance of the rows of a, which a tall tile uses instead of a_row.
 * sum_mode: CARRIED, FRESH, ADDED or STREAMED. */
#define DECLARE_TILES(name, type)                                                                                      \
    void name(int channelwise, int rows, int vectors, int64_t depth, int64_t run, const type *a, const int32_t *a_row, \
              const int32_t *a_depth, const type *b, const int32_t *b_depth, type *c, const int64_t *c_row,            \
              int sum_mode);                                                                                           \
    void name##_half(int rows, int64_t depth, int64_t run, const type *a, const int32_t *a_row,                        \
                     const int32_t *a_depth, const type *b, const int32_t *b_depth, type *c, const int64_t *c_row,     \
                     int sum_mode);                                                                                    \
    void name##_tall(int rows, int64_t depth, int64_t run, const type *a, int64_t a_pitch, const int32_t *a_depth,     \
                     const type *b, const int32_t *b_depth, type *c, const int64_t *c_row, int sum_mode);

/* int32 is computed as uint32_t: sums wrap modulo 2^32, which signed arithmetic in C does not guarantee. */
DECLARE_TILES(tile_f32, float)
DECLARE_TILES(tile_f64, double)
DECLARE_TILES(tile_u32, uint32_t)
#ifdef ADD_PAIRS
DECLARE_TILES(tile_pairs, float)
#else /* not called, because has_pairs() is 0; the names let callers compile */
#define tile_pairs tile_f32
#define tile_pairs_half tile_f32_half
#define tile_pairs_tall tile_f32_tall
#endif

#endif
