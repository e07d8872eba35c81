"""Products of pairs of bfloat16 by the tile registers of AMX (tile/matrix.h)."""

from libc.stdint cimport int32_t, int64_t

cdef extern from "tile/matrix.h" nogil:
    ctypedef struct matrix_product:
        int64_t rows, columns, depth, run
        const float *a
        const int32_t *a_row
        const int32_t *a_depth
        const float *b
        const int32_t *b_depth
        float *c
        const int64_t *c_row
        int64_t c_pitch
        int sums
    void add_matrices(const matrix_product *product)
    void release_matrices()
