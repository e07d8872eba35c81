"""Products of a block, tile by tile."""

from libc.stdint cimport int32_t, int64_t

from scalar cimport compute

cdef extern from "ukernel.h" nogil:
    enum:
        VECTOR_BYTES
        TILE_ROWS
        TILE_VECTORS
    ctypedef unsigned int uint32_t
    void tile_f32(int channelwise, int rows, int vectors, int64_t depth, const float *a, const int32_t *a_row,
                  const int32_t *a_depth, const float *b, const int32_t *b_depth, float *c, int64_t c_row, bint fresh)
    void tile_f64(int channelwise, int rows, int vectors, int64_t depth, const double *a, const int32_t *a_row,
                  const int32_t *a_depth, const double *b, const int32_t *b_depth, double *c, int64_t c_row, bint fresh)
    void tile_u32(int channelwise, int rows, int vectors, int64_t depth, const uint32_t *a, const int32_t *a_row,
                  const int32_t *a_depth, const uint32_t *b, const int32_t *b_depth, uint32_t *c, int64_t c_row,
                  bint fresh)


cdef inline int64_t vector_length(compute kind) noexcept nogil:
    return VECTOR_BYTES // <int64_t>sizeof(compute)


cdef inline int64_t strip_width(compute kind) noexcept nogil:
    """Columns of a full tile."""
    return TILE_VECTORS * vector_length(kind)


cdef inline int64_t whole_vectors(int64_t columns, compute kind) noexcept nogil:
    """columns, rounded up to a multiple of the vector length."""
    return (columns + vector_length(kind) - 1) // vector_length(kind) * vector_length(kind)


cdef inline int64_t whole_strips(int64_t columns, compute kind) noexcept nogil:
    """columns, rounded up to a multiple of the strip width."""
    return (columns + strip_width(kind) - 1) // strip_width(kind) * strip_width(kind)


cdef inline void multiply_strip(
    bint channelwise, int64_t rows, int64_t columns, int64_t depth,
    const compute *a, const int32_t *a_row, const int32_t *a_depth, const compute *b, const int32_t *b_depth,
    compute *c, int64_t c_row, bint fresh,
) noexcept nogil:
    """c[r][j] += sum over k < depth of a[r][k] * b[k][j] for j < columns, at most a strip.

    Operands as for a tile. b may be read, and c is written, up to whole vectors of columns.
    """
    cdef int64_t r = 0
    cdef int count, vectors = <int>(whole_vectors(columns, c[0]) // vector_length(c[0]))
    while r < rows:
        count = <int>min(<int64_t>TILE_ROWS, rows - r)
        if compute is float:
            tile_f32(channelwise, count, vectors, depth, a, a_row + r, a_depth, b, b_depth, c + r * c_row, c_row, fresh)
        elif compute is double:
            tile_f64(channelwise, count, vectors, depth, a, a_row + r, a_depth, b, b_depth, c + r * c_row, c_row, fresh)
        else:
            tile_u32(channelwise, count, vectors, depth, <const uint32_t *>a, a_row + r, a_depth,
                     <const uint32_t *>b, b_depth, <uint32_t *>c + r * c_row, c_row, fresh)
        r += count
