/* The register tile's shape on each instruction set, and the tile of each compute type.
 *
 * This and stream.h are the only files that ask which instruction set they are compiled for. A full tile has TILE_ROWS x TILE_VECTORS sums
 * in registers, beside TILE_VECTORS registers for a line of b and one for an element of a. A tile of fewer vectors has at
 * most NARROW_ROWS rows: more independent sums, since each waits for its last product.
 */
#ifndef CONVGRAD_UKERNEL_H
#define CONVGRAD_UKERNEL_H

#include <stdint.h>

#if defined(__AVX512F__) /* 32 registers of 64 bytes */
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
#define NARROW_ROWS 8
#define MOST_ROWS(vectors) ((vectors) == TILE_VECTORS ? TILE_ROWS : NARROW_ROWS)

#define TYPE float
#define TILE tile_f32
#include "ukernel_template.h"
#undef TYPE
#undef TILE

#define TYPE double
#define TILE tile_f64
#include "ukernel_template.h"
#undef TYPE
#undef TILE

/* int32 is computed without a sign: its sums wrap modulo 2^32, which signed arithmetic in C does not promise. */
#define TYPE uint32_t
#define TILE tile_u32
#include "ukernel_template.h"
#undef TYPE
#undef TILE

/* Some processors multiply pairs of bfloat16 and add both products in one instruction. It takes subnormal numbers for zero. */
#if defined(__AVX512F__) && (defined(__clang__) || __GNUC__ >= 10)
#include <immintrin.h>
#define PAIRS
#define TYPE float
#define TILE tile_pairs
#include "ukernel_template.h"
#undef TYPE
#undef TILE
#undef PAIRS
static inline int has_pairs(void)
{
    return __builtin_cpu_supports("avx512bf16") != 0;
}
#else
#define tile_pairs tile_f32
static inline int has_pairs(void)
{
    return 0;
}
#endif

#endif
