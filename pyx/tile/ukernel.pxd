"""Products of a block, tile by tile."""

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
        TALL_ROWS  # or 0, where there are no tall tiles
        FIRST_BYTES  # of a row, that prefetch_lines fetches
        HALF_VECTORS  # whether there are tiles of half a vector
        CARRIED  # how a tile's sums begin and end: going on from those that are there,
        FRESH  # in their place,
        ADDED  # or added to them when they are complete;
        STREAMED  # as FRESH, stored past the cache: whole vectors, aligned
    int MOST_ROWS(int vectors)
    ctypedef unsigned int uint32_t
    void tile_f32(int channelwise, int rows, int vectors, int64_t depth, int64_t run, const float *a,
                  const int32_t *a_row, const int32_t *a_depth, const float *b, const int32_t *b_depth, float *c,
                  const int64_t *c_row, int sums)
    void tile_pairs(int channelwise, int rows, int vectors, int64_t depth, int64_t run, const float *a,
                    const int32_t *a_row, const int32_t *a_depth, const float *b, const int32_t *b_depth, float *c,
                    const int64_t *c_row, int sums)
    bint has_pairs()
    void tile_f64(int channelwise, int rows, int vectors, int64_t depth, int64_t run, const double *a,
                  const int32_t *a_row, const int32_t *a_depth, const double *b, const int32_t *b_depth, double *c,
                  const int64_t *c_row, int sums)
    void tile_u32(int channelwise, int rows, int vectors, int64_t depth, int64_t run, const uint32_t *a,
                  const int32_t *a_row, const int32_t *a_depth, const uint32_t *b, const int32_t *b_depth, uint32_t *c,
                  const int64_t *c_row, int sums)
    void tile_f32_half(int rows, int64_t depth, int64_t run, const float *a, const int32_t *a_row,
                       const int32_t *a_depth, const float *b, const int32_t *b_depth, float *c, const int64_t *c_row,
                       int sums)
    void tile_pairs_half(int rows, int64_t depth, int64_t run, const float *a, const int32_t *a_row,
                         const int32_t *a_depth, const float *b, const int32_t *b_depth, float *c,
                         const int64_t *c_row, int sums)
    void tile_f64_half(int rows, int64_t depth, int64_t run, const double *a, const int32_t *a_row,
                       const int32_t *a_depth, const double *b, const int32_t *b_depth, double *c,
                       const int64_t *c_row, int sums)
    void tile_u32_half(int rows, int64_t depth, int64_t run, const uint32_t *a, const int32_t *a_row,
                       const int32_t *a_depth, const uint32_t *b, const int32_t *b_depth, uint32_t *c,
                       const int64_t *c_row, int sums)

    void tile_f32_tall(int rows, int64_t depth, int64_t run, const float *a, int64_t a_pitch,
                       const int32_t *a_depth, const float *b, const int32_t *b_depth, float *c,
                       const int64_t *c_row, int sums)
    void tile_pairs_tall(int rows, int64_t depth, int64_t run, const float *a, int64_t a_pitch,
                         const int32_t *a_depth, const float *b, const int32_t *b_depth, float *c,
                         const int64_t *c_row, int sums)
    void tile_f64_tall(int rows, int64_t depth, int64_t run, const double *a, int64_t a_pitch,
                       const int32_t *a_depth, const double *b, const int32_t *b_depth, double *c,
                       const int64_t *c_row, int sums)
    void tile_u32_tall(int rows, int64_t depth, int64_t run, const uint32_t *a, int64_t a_pitch,
                       const int32_t *a_depth, const uint32_t *b, const int32_t *b_depth, uint32_t *c,
                       const int64_t *c_row, int sums)


cdef enum:  # how a tile multiplies
    SCALARS = 0  # an element of a with a vector of b
    LANES = 1  # a vector of a with a vector of b
    PAIRS = 2  # as SCALARS, the elements being pairs of bfloat16


cdef enum:
    LINE_BYTES = 64  # of the cache
    TALL_RUN = 8  # steps of a run, from which on they are worth walking along it
    LONG_DEPTH = 64  # from which on it is worth fetching what the next tile begins with, if its rows are lines apart,
    LONGER_DEPTH = 96  # and more of it, where half of a strip makes so few products that they would wait for it


cdef inline int64_t vector_length(compute kind) noexcept nogil:
    return VECTOR_BYTES // <int64_t>sizeof(compute)


cdef inline int64_t strip_width(compute kind) noexcept nogil:
    """Columns of a full tile."""
    return TILE_VECTORS * vector_length(kind)


cdef inline int64_t whole_vectors(int64_t columns, compute kind) noexcept nogil:
    """columns, rounded up to a multiple of the vector length."""
    return (columns + vector_length(kind) - 1) // vector_length(kind) * vector_length(kind)


cdef inline bint fit_half(int64_t columns, compute kind) noexcept nogil:
    """Whether there are tiles of half a vector, which hold the columns."""
    return HALF_VECTORS and 2 * columns <= vector_length(kind)


cdef inline int64_t whole_columns(int64_t columns, compute kind) noexcept nogil:
    """columns, rounded up to those that tiles read and write: whole vectors, or half of one."""
    return vector_length(kind) // 2 if fit_half(columns, kind) else whole_vectors(columns, kind)


cdef inline int64_t packed_width(int64_t columns, compute kind) noexcept nogil:
    """Elements of a line of a packed strip of so many columns in all: those of a full tile, or of a narrower one."""
    return min(strip_width(kind), whole_columns(max(columns, 1), kind))


cdef inline int64_t whole_strips(int64_t columns, compute kind) noexcept nogil:
    """columns, rounded up to a multiple of the width of packed strips."""
    cdef int64_t width = packed_width(columns, kind)
    return (columns + width - 1) // width * width


cdef inline void multiply_tile(
    int way, int rows, int vectors, int64_t depth, int64_t run,
    const compute *a, const int32_t *a_row, const int32_t *a_depth, const compute *b, const int32_t *b_depth,
    compute *c, const int64_t *c_row, int sums,
) noexcept nogil:
    cdef bint channelwise = way == LANES
    if compute is float and way == PAIRS:
        tile_pairs(False, rows, vectors, depth, run, a, a_row, a_depth, b, b_depth, c, c_row, sums)
    elif compute is float:
        tile_f32(channelwise, rows, vectors, depth, run, a, a_row, a_depth, b, b_depth, c, c_row, sums)
    elif compute is double:
        tile_f64(channelwise, rows, vectors, depth, run, a, a_row, a_depth, b, b_depth, c, c_row, sums)
    else:
        tile_u32(channelwise, rows, vectors, depth, run, <const uint32_t *>a, a_row, a_depth,
                 <const uint32_t *>b, b_depth, <uint32_t *>c, c_row, sums)


cdef inline void multiply_half(
    int way, int rows, int64_t depth, int64_t run, const compute *a, const int32_t *a_row, const int32_t *a_depth,
    const compute *b, const int32_t *b_depth, compute *c, const int64_t *c_row, int sums,
) noexcept nogil:
    """``multiply_tile`` with half of a vector."""
    if compute is float and way == PAIRS:
        tile_pairs_half(rows, depth, run, a, a_row, a_depth, b, b_depth, c, c_row, sums)
    elif compute is float:
        tile_f32_half(rows, depth, run, a, a_row, a_depth, b, b_depth, c, c_row, sums)
    elif compute is double:
        tile_f64_half(rows, depth, run, a, a_row, a_depth, b, b_depth, c, c_row, sums)
    else:
        tile_u32_half(rows, depth, run, <const uint32_t *>a, a_row, a_depth, <const uint32_t *>b, b_depth,
                      <uint32_t *>c, c_row, sums)


cdef inline void multiply_tall(
    int way, int rows, int64_t depth, int64_t run, const compute *a, int64_t a_pitch, const int32_t *a_depth,
    const compute *b, const int32_t *b_depth, compute *c, const int64_t *c_row, int sums,
) noexcept nogil:
    """``multiply_tile`` with one vector, and rows of a that are ``a_pitch`` apart."""
    if compute is float and way == PAIRS:
        tile_pairs_tall(rows, depth, run, a, a_pitch, a_depth, b, b_depth, c, c_row, sums)
    elif compute is float:
        tile_f32_tall(rows, depth, run, a, a_pitch, a_depth, b, b_depth, c, c_row, sums)
    elif compute is double:
        tile_f64_tall(rows, depth, run, a, a_pitch, a_depth, b, b_depth, c, c_row, sums)
    else:
        tile_u32_tall(rows, depth, run, <const uint32_t *>a, a_pitch, a_depth, <const uint32_t *>b, b_depth,
                      <uint32_t *>c, c_row, sums)


cdef inline int vectors_of(int64_t columns, compute kind) noexcept nogil:
    """Vectors that hold the columns."""
    return <int>(whole_vectors(columns, kind) // vector_length(kind))


cdef inline int rows_of_tile(int64_t rows, int64_t most) noexcept nogil:
    """Rows of the next tile, of the many that are left.

    The last tiles share theirs: one of few rows would leave the multipliers waiting for each other.
    """
    if rows <= most or rows >= 3 * most:
        return <int>min(rows, most)
    return <int>(rows // 2 if rows <= 2 * most else rows // 3)  # no division, which would take as long as many products


cdef inline void multiply_strip(
    int way, bint far, int64_t rows, int64_t columns, int64_t depth, int64_t run,
    const compute *a, const int32_t *a_row, const int32_t *a_depth, const compute *b, const int32_t *b_depth,
    compute *c, const int64_t *c_row, int64_t c_pitch, int sums,
) noexcept nogil:
    """c[r][j] += sum over k < depth of a[r][k] * b[k][j] for j < columns, at most a strip, or = where FRESH.

    Operands as for a tile: ``depth`` steps, in runs of so many; but rows of c are ``c_pitch`` apart where ``c_row`` is
    NULL. b may be read, and c is written, up to whole_columns(columns); of LANES, up to whole vectors. ``far``: a may
    be in memory, as it was not written just now.
    """
    cdef int64_t r = 0, i
    cdef int rows_now, vectors = vectors_of(columns, c[0])
    cdef bint half = way != LANES and fit_half(columns, c[0])
    cdef int64_t most = HALF_ROWS if half and run > 1 else MOST_ROWS(vectors)
    cdef int64_t[NARROW_ROWS] tile_places
    cdef const int64_t *places = c_row
    # By vectors narrower than a line a tile takes so long that what lies in the second cache is there in time.
    cdef bint fetches = ((far or VECTOR_BYTES >= LINE_BYTES) and depth >= LONG_DEPTH and rows > 1
                         and (a_row[1] - a_row[0]) * <int64_t>sizeof(compute) >= LINE_BYTES)
    cdef bint fetches_more = fetches and depth >= LONGER_DEPTH and 2 * vectors <= TILE_VECTORS
    if c_row == NULL:
        places = tile_places
        for i in range(NARROW_ROWS):
            tile_places[i] = i * c_pitch
    while r < rows:
        rows_now = rows_of_tile(rows - r, most)
        if fetches:
            for i in range(min(<int64_t>rows_now, rows - r - rows_now)):
                prefetch_lines(a + a_row[r + rows_now + i] + a_depth[0])
                if fetches_more:
                    prefetch_lines(a + a_row[r + rows_now + i] + a_depth[0] + FIRST_BYTES // <int64_t>sizeof(compute))
        if half:
            multiply_half(way, rows_now, depth, run, a, a_row + r, a_depth, b, b_depth, c, places, sums)
        else:
            multiply_tile(way, rows_now, vectors, depth, run, a, a_row + r, a_depth, b, b_depth, c, places, sums)
        r += rows_now
        if c_row == NULL:
            c += rows_now * c_pitch
        else:
            places += rows_now


cdef inline int64_t count_pitched(const int32_t *row, int64_t stretch, int64_t count) noexcept nogil:
    """How many of all rows, in stretches of so many that lie evenly, do: all, or those of a stretch."""
    cdef int64_t i = stretch
    if stretch < 2:
        return stretch
    while i < count:
        if row[i] - row[i - 1] != row[1] - row[0]:
            return stretch
        i += stretch
    return count


cdef inline bint fits_tall(int64_t pitched, int64_t columns, int64_t run, compute kind) noexcept nogil:
    """Whether tall tiles take so many rows that lie evenly: more than others have."""
    return (NARROW_ROWS < TALL_ROWS and pitched > NARROW_ROWS and run >= TALL_RUN and columns <= vector_length(kind)
            and not fit_half(columns, kind))


cdef inline void multiply_pitched(
    int way, int64_t rows, int64_t depth, int64_t run, const compute *a, const int32_t *a_row,
    const int32_t *a_depth, const compute *b, const int32_t *b_depth, compute *c, const int64_t *c_row, int64_t c_pitch,
    int sums,
) noexcept nogil:
    """``multiply_strip`` of one vector by tall tiles: the rows of a, more than NARROW_ROWS, lie evenly."""
    cdef int64_t r = 0, i, a_pitch = a_row[1] - a_row[0]
    cdef int rows_now
    cdef int64_t[MOST_TALL_ROWS] tile_places
    cdef const int64_t *places = c_row
    cdef bint fetches = run >= LONG_DEPTH and a_pitch * <int64_t>sizeof(compute) >= LINE_BYTES
    a += a_row[0]
    if c_row == NULL:
        places = tile_places
        for i in range(min(rows, <int64_t>TALL_ROWS)):
            tile_places[i] = i * c_pitch
    while r < rows:
        rows_now = rows_of_tile(rows - r, TALL_ROWS)
        if fetches:
            for i in range(rows_now, min(2 * <int64_t>rows_now, rows - r)):
                prefetch_lines(a + i * a_pitch + a_depth[0])
        multiply_tall(way, rows_now, depth, run, a, a_pitch, a_depth, b, b_depth, c, places, sums)
        r += rows_now
        a += rows_now * a_pitch
        if c_row == NULL:
            c += rows_now * c_pitch
        else:
            places += rows_now


cdef inline void multiply_rows(
    int way, bint far, int64_t rows, int64_t pitched, int64_t columns, int64_t depth, int64_t run,
    const compute *a, const int32_t *a_row, const int32_t *a_depth, const compute *b, const int32_t *b_depth,
    compute *c, const int64_t *c_row, int64_t c_pitch, int sums,
) noexcept nogil:
    """``multiply_strip`` of rows of a that lie evenly in stretches of so many."""
    cdef int64_t r = 0
    while fits_tall(min(pitched, rows - r), columns, run, c[0]):
        multiply_pitched(way, min(pitched, rows - r), depth, run, a, a_row + r, a_depth, b, b_depth,
                         c + r * c_pitch if c_row == NULL else c, NULL if c_row == NULL else c_row + r, c_pitch, sums)
        r += pitched
    if r < rows:
        multiply_strip(way, far, rows - r, columns, depth, run, a, a_row + r, a_depth, b, b_depth,
                       c + r * c_pitch if c_row == NULL else c, NULL if c_row == NULL else c_row + r, c_pitch, sums)
