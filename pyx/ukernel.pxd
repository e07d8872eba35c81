"""The product of two packed panels, tile by tile."""

from libc.stdint cimport int64_t

from scalar cimport compute

cdef extern from "ukernel.h" nogil:
    enum:
        VECTOR_BYTES
        TILE_ROWS
        TILE_VECTORS
    ctypedef unsigned int uint32_t
    void tile_f32(int rows, int vectors, int64_t depth, const float *a, int64_t a_row, int64_t a_depth,
                  const float *b, int64_t b_depth, float *c, int64_t c_row)
    void tile_f64(int rows, int vectors, int64_t depth, const double *a, int64_t a_row, int64_t a_depth,
                  const double *b, int64_t b_depth, double *c, int64_t c_row)
    void tile_u32(int rows, int vectors, int64_t depth, const uint32_t *a, int64_t a_row, int64_t a_depth,
                  const uint32_t *b, int64_t b_depth, uint32_t *c, int64_t c_row)


cdef inline int64_t vector_length(compute kind) noexcept nogil:
    return VECTOR_BYTES // <int64_t>sizeof(compute)


cdef inline int64_t strip_width(compute kind) noexcept nogil:
    """Columns of a full tile. A panel of columns is a row of strips this wide; its last strip is as many whole
    vectors wide as it needs."""
    return TILE_VECTORS * vector_length(kind)


cdef inline int64_t whole_vectors(int64_t columns, compute kind) noexcept nogil:
    """columns, rounded up to a multiple of the vector length."""
    return (columns + vector_length(kind) - 1) // vector_length(kind) * vector_length(kind)


cdef inline void multiply(
    int64_t rows, int64_t columns, int64_t depth,
    const compute *a, int64_t a_row, int64_t a_depth,
    const compute *b, int64_t b_begin, int64_t b_length,
    compute *c, int64_t c_row,
) noexcept nogil:
    """c[r][j] += sum over k < depth of a[r][k] * b[b_begin + k][j].

    a[r][k] = a[r * a_row + k * a_depth]; c[r][j] = c[r * c_row + j], with room for whole vectors;
    b[k][j] = b[s * strip_width * b_length + k * w + j % strip_width], strip s = j // strip_width, w its width.
    """
    cdef int64_t r, j = 0, width
    cdef int tile_rows
    cdef const compute *strip
    while j < columns:
        width = min(strip_width(a[0]), whole_vectors(columns - j, a[0]))
        strip = b + j * b_length + b_begin * width
        r = 0
        while r < rows:
            tile_rows = <int>min(<int64_t>TILE_ROWS, rows - r)
            if compute is float:
                tile_f32(tile_rows, <int>(width // vector_length(a[0])), depth, a + r * a_row, a_row, a_depth,
                         strip, width, c + r * c_row + j, c_row)
            elif compute is double:
                tile_f64(tile_rows, <int>(width // vector_length(a[0])), depth, a + r * a_row, a_row, a_depth,
                         strip, width, c + r * c_row + j, c_row)
            else:
                tile_u32(tile_rows, <int>(width // vector_length(a[0])), depth,
                         <const uint32_t *>a + r * a_row, a_row, a_depth, <const uint32_t *>strip, width,
                         <uint32_t *>c + r * c_row + j, c_row)
            r += tile_rows
        j += width
