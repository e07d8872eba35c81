"""Rows of a depthwise problem, by the sliding tile."""

from libc.stdint cimport int64_t

from scalar cimport compute

cdef extern from "slide.h" nogil:
    enum:
        SLIDE_TAPS
    ctypedef struct slide_shape:
        int64_t lanes
        int64_t heights, positions
        int64_t rows, taps
        int64_t step
        int64_t x_height, x_position, x_row, x_tap
        int64_t y_height, y_position
        int64_t w_row, w_tap
    ctypedef unsigned int uint32_t
    void slide_f32(const slide_shape *s, const float *x, const float *w, float *y, bint fresh)
    void slide_f64(const slide_shape *s, const double *x, const double *w, double *y, bint fresh)
    void slide_u32(const slide_shape *s, const uint32_t *x, const uint32_t *w, uint32_t *y, bint fresh)
    void slide_f32_sums(const slide_shape *s, const float *x, const float *y, float *w)
    void slide_f64_sums(const slide_shape *s, const double *x, const double *y, double *w)
    void slide_u32_sums(const slide_shape *s, const uint32_t *x, const uint32_t *y, uint32_t *w)


cdef inline void slide(
    const slide_shape *s, const compute *x, const compute *w, compute *y, bint fresh
) noexcept nogil:
    """One row of positions: y = or += the products of its taps."""
    if compute is float:
        slide_f32(s, x, w, y, fresh)
    elif compute is double:
        slide_f64(s, x, w, y, fresh)
    else:
        slide_u32(s, <const uint32_t *>x, <const uint32_t *>w, <uint32_t *>y, fresh)


cdef inline void slide_sums(const slide_shape *s, const compute *x, const compute *y, compute *w) noexcept nogil:
    """Rows of positions: w += their products, for each tap."""
    if compute is float:
        slide_f32_sums(s, x, y, w)
    elif compute is double:
        slide_f64_sums(s, x, y, w)
    else:
        slide_u32_sums(s, <const uint32_t *>x, <const uint32_t *>y, <uint32_t *>w)
