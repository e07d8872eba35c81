"""Rows of a depthwise problem by the sliding tile, at most SLIDE_TAPS taps of a row at a time."""

from libc.stdint cimport int64_t

from base.scalar cimport compute

cdef extern from "tile/slide.h" nogil:
    enum:
        SLIDE_TAPS
    ctypedef struct slide_shape:
        int64_t lanes
        int64_t heights, positions
        int64_t rows, taps
        int64_t step
        int64_t begin, end
        int64_t new_row, new_rows, ahead
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


cdef inline int64_t next_taps(int64_t taps) noexcept nogil:
    """Taps that the tile takes next if ``taps`` taps of a row are left; the parts are nearly equal."""
    cdef int64_t parts = (taps + SLIDE_TAPS - 1) // SLIDE_TAPS
    return (taps + parts - 1) // parts


cdef inline void slide_part(
    const slide_shape *s, const compute *x, const compute *w, compute *y, bint fresh
) noexcept nogil:
    """``slide`` for at most SLIDE_TAPS taps in a row."""
    if compute is float:
        slide_f32(s, x, w, y, fresh)
    elif compute is double:
        slide_f64(s, x, w, y, fresh)
    else:
        slide_u32(s, <const uint32_t *>x, <const uint32_t *>w, <uint32_t *>y, fresh)


cdef inline void slide(
    const slide_shape *s, const compute *x, const compute *w, compute *y, bint fresh
) noexcept nogil:
    """Compute one row of positions: y += the products of all taps, row after row of taps; y = them if ``fresh``."""
    cdef slide_shape part
    cdef int64_t r, t
    if s.taps <= SLIDE_TAPS:
        slide_part(s, x, w, y, fresh)
        return
    part = s[0]
    part.rows = 1
    for r in range(s.rows):
        t = 0
        while t < s.taps:
            part.taps = next_taps(s.taps - t)
            part.begin, part.end = s.begin - t, s.end - t
            part.new_rows = s.new_rows if r == t == 0 else 0  # prefetched once
            slide_part(&part, x + r * s.x_row + t * s.x_tap, w + r * s.w_row + t * s.w_tap, y, fresh and r == t == 0)
            t += part.taps


cdef inline void slide_sums(const slide_shape *s, const compute *x, const compute *y, compute *w) noexcept nogil:
    """w += the products of rows of positions, for each tap."""
    cdef slide_shape part = s[0]
    cdef int64_t t = 0
    while t < s.taps:
        part.taps = next_taps(s.taps - t)
        if compute is float:
            slide_f32_sums(&part, x + t * s.x_tap, y, w + t * s.w_tap)
        elif compute is double:
            slide_f64_sums(&part, x + t * s.x_tap, y, w + t * s.w_tap)
        else:
            slide_u32_sums(&part, <const uint32_t *>x + t * s.x_tap, <const uint32_t *>y,
                           <uint32_t *>w + t * s.w_tap)
        t += part.taps
