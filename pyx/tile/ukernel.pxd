"""The register tile of each compute type, and the widths that follow from it."""

from libc.stdint cimport int32_t, int64_t

from base.scalar cimport compute

cdef extern from "tile/ukernel.h" nogil:
    void prefetch_lines(const void *first)
    enum:
        VECTOR_BYTES
        TILE_ROWS
        TILE_VECTORS
        NARROW_ROWS
        HALF_ROWS
        MOST_TALL_ROWS
        TALL_ROWS  # 0 if there are no tall tiles
        FIRST_BYTES  # bytes of a row that prefetch_lines prefetches
        HALF_VECTORS  # whether there are tiles of half a vector
        CARRIED  # sums of a tile continue the sums in c,
        FRESH  # replace them,
        ADDED  # or are added to them when complete
        STREAMED  # as FRESH, with non-temporal stores of whole, aligned vectors
    int MOST_ROWS(int vectors)
    ctypedef unsigned int uint32_t
    void tile_f32(int channelwise, int rows, int vectors, int64_t depth, int64_t run, const float *a,
                  const int32_t *a_row, const int32_t *a_depth, const float *b, const int32_t *b_depth, float *c,
                  const int64_t *c_row, int sum_mode)
    void tile_pairs(int channelwise, int rows, int vectors, int64_t depth, int64_t run, const float *a,
                    const int32_t *a_row, const int32_t *a_depth, const float *b, const int32_t *b_depth, float *c,
                    const int64_t *c_row, int sum_mode)
    bint has_pairs()
    void tile_f64(int channelwise, int rows, int vectors, int64_t depth, int64_t run, const double *a,
                  const int32_t *a_row, const int32_t *a_depth, const double *b, const int32_t *b_depth, double *c,
                  const int64_t *c_row, int sum_mode)
    void tile_u32(int channelwise, int rows, int vectors, int64_t depth, int64_t run, const uint32_t *a,
                  const int32_t *a_row, const int32_t *a_depth, const uint32_t *b, const int32_t *b_depth, uint32_t *c,
                  const int64_t *c_row, int sum_mode)
    void tile_f32_half(int rows, int64_t depth, int64_t run, const float *a, const int32_t *a_row,
                       const int32_t *a_depth, const float *b, const int32_t *b_depth, float *c, const int64_t *c_row,
                       int sum_mode)
    void tile_pairs_half(int rows, int64_t depth, int64_t run, const float *a, const int32_t *a_row,
                         const int32_t *a_depth, const float *b, const int32_t *b_depth, float *c,
                         const int64_t *c_row, int sum_mode)
    void tile_f64_half(int rows, int64_t depth, int64_t run, const double *a, const int32_t *a_row,
                       const int32_t *a_depth, const double *b, const int32_t *b_depth, double *c,
                       const int64_t *c_row, int sum_mode)
    void tile_u32_half(int rows, int64_t depth, int64_t run, const uint32_t *a, const int32_t *a_row,
                       const int32_t *a_depth, const uint32_t *b, const int32_t *b_depth, uint32_t *c,
                       const int64_t *c_row, int sum_mode)

    void tile_f32_tall(int rows, int64_t depth, int64_t run, const float *a, int64_t a_pitch,
                       const int32_t *a_depth, const float *b, const int32_t *b_depth, float *c,
                       const int64_t *c_row, int sum_mode)
    void tile_pairs_tall(int rows, int64_t depth, int64_t run, const float *a, int64_t a_pitch,
                         const int32_t *a_depth, const float *b, const int32_t *b_depth, float *c,
                         const int64_t *c_row, int sum_mode)
    void tile_f64_tall(int rows, int64_t depth, int64_t run, const double *a, int64_t a_pitch,
                       const int32_t *a_depth, const double *b, const int32_t *b_depth, double *c,
                       const int64_t *c_row, int sum_mode)
    void tile_u32_tall(int rows, int64_t depth, int64_t run, const uint32_t *a, int64_t a_pitch,
                       const int32_t *a_depth, const uint32_t *b, const int32_t *b_depth, uint32_t *c,
                       const int64_t *c_row, int sum_mode)


cdef enum:  # operands of a tile's products
    SCALARS = 0  # an element of a and a vector of b
    LANES = 1  # a vector of a and a vector of b
    PAIRS = 2  # as SCALARS; elements are pairs of bfloat16
    MATRICES = 3  # as PAIRS, by the tile registers of AMX


cdef enum:
    LINE_BYTES = 64  # of a cache line


cdef inline int way_of(int64_t pairs) noexcept nogil:
    """The operands for a value of ``Blocks.pairs``."""
    return SCALARS if pairs == 0 else PAIRS if pairs == 1 else MATRICES


cdef inline int64_t vector_length(compute kind) noexcept nogil:
    return VECTOR_BYTES // <int64_t>sizeof(compute)


cdef inline int64_t strip_width(compute kind) noexcept nogil:
    """Columns of a full tile."""
    return TILE_VECTORS * vector_length(kind)


cdef inline int64_t whole_vectors(int64_t columns, compute kind) noexcept nogil:
    """columns, rounded up to a multiple of the vector length."""
    return (columns + vector_length(kind) - 1) // vector_length(kind) * vector_length(kind)


cdef inline bint fit_half(int64_t columns, compute kind) noexcept nogil:
    """Whether a tile of half a vector holds the columns, and such tiles exist."""
    return HALF_VECTORS and 2 * columns <= vector_length(kind)


cdef inline int64_t whole_columns(int64_t columns, compute kind) noexcept nogil:
    """columns, rounded up to the columns that tiles read and write: whole vectors, or half a vector."""
    return vector_length(kind) // 2 if fit_half(columns, kind) else whole_vectors(columns, kind)


cdef inline int64_t packed_width(int64_t columns, compute kind) noexcept nogil:
    """Elements of a line of a packed strip, for ``columns`` columns in all: the width of a full tile, or less."""
    return min(strip_width(kind), whole_columns(max(columns, 1), kind))


cdef inline int64_t whole_strips(int64_t columns, compute kind) noexcept nogil:
    """columns, rounded up to a multiple of the width of packed strips."""
    cdef int64_t width = packed_width(columns, kind)
    return (columns + width - 1) // width * width


cdef inline int vectors_of(int64_t columns, compute kind) noexcept nogil:
    """Vectors that hold the columns."""
    return <int>(whole_vectors(columns, kind) // vector_length(kind))
