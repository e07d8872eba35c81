"""Rows of small groups by the spreading tile."""

from libc.stdint cimport int32_t, int64_t

from base.scalar cimport compute

cdef extern from "tile/spread.h" nogil:
    enum:
        SPREAD_TAPS  # taps that are taken together if neighbouring positions read the same columns
        SPREAD_PARTS  # greatest number of parts
    ctypedef struct spread_part:
        int64_t taps
        int64_t x, w
        int64_t begin, end
    ctypedef struct spread_shape:
        int64_t vectors, channels
        int64_t heights, positions
        int64_t rows, taps
        int64_t x_vector, x_height, x_position, x_row, x_tap
        int64_t y_vector, y_height, y_position
        int64_t w_vector, w_row, w_tap
        const int32_t *order
        int64_t part_count
        spread_part part[SPREAD_PARTS]
    void spread_f32(const spread_shape *s, const float *x, const float *w, float *y, bint fresh)
    void spread_pairs(const spread_shape *s, const float *x, const float *w, float *y, bint fresh)
    void spread_f32_sums(const spread_shape *s, const float *x, const float *y, float *w)


cdef inline void spread(
    const spread_shape *s, bint pairs, const compute *x, const compute *w, compute *y, bint fresh
) noexcept nogil:
    """Compute one row of positions: y += the products of all taps, row after row; y = them if ``fresh``. Float only."""
    if compute is float:
        if pairs:
            spread_pairs(s, x, w, y, fresh)
        else:
            spread_f32(s, x, w, y, fresh)


cdef inline void spread_sums(const spread_shape *s, const compute *x, const compute *y, compute *w) noexcept nogil:
    """w += the products of rows of positions, for each tap. Float only."""
    if compute is float:
        spread_f32_sums(s, x, y, w)
