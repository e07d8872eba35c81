/* Products of pairs of bfloat16 by the tile registers of Intel's AMX, 16 x 16 sums in a register.
 *
 *     c[r][j] += sum over k of a[r][k] * b[k][j]      pairs of bfloat16, as tile_pairs (ukernel_template.h)
 *
 * An instruction adds the products of at most 16 pairs. It sums the low halves one after the other, the high halves as
 * well, and then adds both to the sum. So the cut of the depth into blocks of at most 16 pairs decides bits. A run is
 * cut into blocks of the same size, but for the last one, and no block has pairs of two runs. The rows and columns of a
 * tile decide no bit. */
#ifndef CONVGRAD_MATRIX_H
#define CONVGRAD_MATRIX_H

#include <stdint.h>

#include "cpu_features.h"

/* The tables are as in ukernel_template.h. All runs are as long. Inside a run, the lines of b are evenly spaced, by the
 * same distance in all runs; a may have any places. Without the table c_row, row r of the sums is c[r * c_pitch]. The
 * sums are CARRIED or FRESH. There are at most 64 columns; b and c have whole vectors of 16 elements, or of 8 if there
 * are no more columns. */
typedef struct {
    int64_t rows, columns, depth, run;
    const float *a;
    const int32_t *a_row, *a_depth;
    const float *b;
    const int32_t *b_depth;
    float *c;
    const int64_t *c_row;
    int64_t c_pitch;
    int sums;
} matrix_product;

/* Adds a product. The thread's tile registers stay configured until release_matrices, which each task calls at its end:
 * the operating system saves registers that are configured, and other libraries may use them. */
#if defined(HAS_MATRICES) && (defined(__AVX512F__) || defined(CONVGRAD_TILE_MODEL))
void add_matrices(const matrix_product *product);
void release_matrices(void);
#else
static inline void add_matrices(const matrix_product *product)
{
    (void)product;
    __builtin_trap(); /* such a machine has no plan with matrices */
}
static inline void release_matrices(void)
{
}
#endif

#endif
