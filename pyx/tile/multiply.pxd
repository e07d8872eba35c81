"""Matrix products of any number of rows by at most one strip of columns, tile by tile."""

from libc.stdint cimport int32_t, int64_t

from base.scalar cimport compute
from tile.matrix cimport add_matrices, matrix_product
from tile.ukernel cimport (
    FIRST_BYTES, HALF_ROWS, LANES, LINE_BYTES, MATRICES, MOST_ROWS, MOST_TALL_ROWS, NARROW_ROWS, PAIRS, TALL_ROWS,
    TILE_VECTORS, VECTOR_BYTES, fit_half, prefetch_lines, tile_f32, tile_f32_half, tile_f32_tall, tile_f64,
    tile_f64_half, tile_f64_tall, tile_pairs, tile_pairs_half, tile_pairs_tall, tile_u32, tile_u32_half, tile_u32_tall,
    uint32_t, vector_length, vectors_of,
)

cdef enum:  # limits of one product, whose depth and rows belong to a zone
    TALL_RUN = 8  # least steps of a run for tall tiles
    LONG_DEPTH = 64  # least depth for prefetching the beginning of the next tile's rows, if they are lines apart
    LONGER_DEPTH = 96  # least depth for prefetching more of them, if columns and thus products per load are few

# A product is c[r][j] += sum over k of a[r][k] * b[k][j]. The structs below give the offsets of its elements.

cdef struct Depth:  # k
    int way  # SCALARS, LANES, PAIRS or MATRICES
    # ``steps`` in runs of ``run`` steps; inside a run both tables rise evenly. With MATRICES runs affect bits, and only
    # the table of b rises evenly.
    int64_t steps, run

cdef struct Rows:  # a[r][k] = a[row[r] + depth[k]]
    const int32_t *row
    const int32_t *depth
    int64_t count
    int64_t pitched  # rows per stretch; inside a stretch row[i + 1] - row[i] is constant (for multiply_rows)
    bint far  # whether a may have to come from memory: it was not written just now

cdef struct Columns:  # b[k][j] = b[line[k] + j]
    const int32_t *line
    int64_t count

cdef struct Sums:  # c[r][j] = c[first + place[r] + j], or c[first + r * pitch + j] without the table ``place``
    int64_t first
    const int64_t *place
    int64_t pitch
    int how  # CARRIED, FRESH, ADDED or STREAMED


cdef inline Rows rows_from(Rows rows, int64_t r) noexcept nogil:
    """Rows of a from row r on."""
    rows.row += r
    rows.count -= r
    return rows


cdef inline Sums sums_from(Sums sums, int64_t r) noexcept nogil:
    """Sums from row r on."""
    if sums.place == NULL:
        sums.first += r * sums.pitch
    else:
        sums.place += r
    return sums


cdef inline void list_multiples(int64_t *places, int64_t pitch, int64_t count) noexcept nogil:
    """places[r] = r * pitch, the table of rows that have none."""
    cdef int64_t r
    for r in range(count):
        places[r] = r * pitch


cdef inline Sums with_table(Sums sums, const int64_t *places) noexcept nogil:
    """Sums with their own table or, without one, with the table that ``list_multiples`` made for a tile."""
    if sums.place == NULL:
        sums.place = places
    return sums


cdef inline void multiply_tile(
    Depth k, const compute *a, Rows rows, const compute *b, Columns columns, compute *c, Sums sums
) noexcept nogil:
    """Compute one tile of at most MOST_ROWS rows and one strip. Sums must have a table here and below."""
    cdef int count = <int>rows.count, vectors = vectors_of(columns.count, c[0])
    cdef bint channelwise = k.way == LANES
    c += sums.first
    if compute is float and k.way == PAIRS:
        tile_pairs(False, count, vectors, k.steps, k.run, a, rows.row, rows.depth, b, columns.line, c, sums.place,
                   sums.how)
    elif compute is float:
        tile_f32(channelwise, count, vectors, k.steps, k.run, a, rows.row, rows.depth, b, columns.line, c, sums.place,
                 sums.how)
    elif compute is double:
        tile_f64(channelwise, count, vectors, k.steps, k.run, a, rows.row, rows.depth, b, columns.line, c, sums.place,
                 sums.how)
    else:
        tile_u32(channelwise, count, vectors, k.steps, k.run, <const uint32_t *>a, rows.row, rows.depth,
                 <const uint32_t *>b, columns.line, <uint32_t *>c, sums.place, sums.how)


cdef inline void multiply_half(
    Depth k, const compute *a, Rows rows, const compute *b, Columns columns, compute *c, Sums sums
) noexcept nogil:
    """Compute one tile of half a vector of columns."""
    cdef int count = <int>rows.count
    c += sums.first
    if compute is float and k.way == PAIRS:
        tile_pairs_half(count, k.steps, k.run, a, rows.row, rows.depth, b, columns.line, c, sums.place, sums.how)
    elif compute is float:
        tile_f32_half(count, k.steps, k.run, a, rows.row, rows.depth, b, columns.line, c, sums.place, sums.how)
    elif compute is double:
        tile_f64_half(count, k.steps, k.run, a, rows.row, rows.depth, b, columns.line, c, sums.place, sums.how)
    else:
        tile_u32_half(count, k.steps, k.run, <const uint32_t *>a, rows.row, rows.depth, <const uint32_t *>b,
                      columns.line, <uint32_t *>c, sums.place, sums.how)


cdef inline void multiply_tall(
    Depth k, const compute *a, Rows rows, const compute *b, Columns columns, compute *c, Sums sums
) noexcept nogil:
    """Compute one tile of one vector of columns, for evenly spaced rows of a."""
    cdef int count = <int>rows.count
    cdef int64_t pitch = rows.row[1] - rows.row[0]
    a += rows.row[0]
    c += sums.first
    if compute is float and k.way == PAIRS:
        tile_pairs_tall(count, k.steps, k.run, a, pitch, rows.depth, b, columns.line, c, sums.place, sums.how)
    elif compute is float:
        tile_f32_tall(count, k.steps, k.run, a, pitch, rows.depth, b, columns.line, c, sums.place, sums.how)
    elif compute is double:
        tile_f64_tall(count, k.steps, k.run, a, pitch, rows.depth, b, columns.line, c, sums.place, sums.how)
    else:
        tile_u32_tall(count, k.steps, k.run, <const uint32_t *>a, pitch, rows.depth, <const uint32_t *>b, columns.line,
                      <uint32_t *>c, sums.place, sums.how)


cdef inline int rows_of_tile(int64_t rows, int64_t most) noexcept nogil:
    """Rows of the next tile if ``rows`` rows are left.

    The last tiles share their rows evenly, because a tile of few rows has too few independent sums.
    """
    if rows <= most or rows >= 3 * most:
        return <int>min(rows, most)
    return <int>(rows // 2 if rows <= 2 * most else rows // 3)  # constant divisors: a division takes long


cdef inline void multiply_strip(
    Depth k, const compute *a, Rows rows, const compute *b, Columns columns, compute *c, Sums sums
) noexcept nogil:
    """Compute a product with at most one strip of columns.

    b is read and c is written up to whole_columns(columns), with LANES up to whole vectors.
    """
    cdef int64_t i
    cdef int vectors = vectors_of(columns.count, c[0])
    cdef bint half = k.way != LANES and fit_half(columns.count, c[0])
    cdef int64_t most = HALF_ROWS if half and k.run > 1 else MOST_ROWS(vectors)
    cdef int64_t[NARROW_ROWS] places
    # With vectors narrower than a cache line, a tile takes so long that data in the L2 cache need no prefetch.
    cdef bint fetches = ((rows.far or VECTOR_BYTES >= LINE_BYTES) and k.steps >= LONG_DEPTH and rows.count > 1
                         and (rows.row[1] - rows.row[0]) * <int64_t>sizeof(compute) >= LINE_BYTES)
    cdef bint fetches_more = fetches and k.steps >= LONGER_DEPTH and 2 * vectors <= TILE_VECTORS
    cdef Rows tile = rows
    if sums.place == NULL:
        list_multiples(places, sums.pitch, min(rows.count, <int64_t>NARROW_ROWS))
    while rows.count > 0:
        tile.row, tile.count = rows.row, rows_of_tile(rows.count, most)
        rows = rows_from(rows, tile.count)
        if fetches:
            for i in range(min(tile.count, rows.count)):
                prefetch_lines(a + rows.row[i] + rows.depth[0])
                if fetches_more:
                    prefetch_lines(a + rows.row[i] + rows.depth[0] + FIRST_BYTES // <int64_t>sizeof(compute))
        if half:
            multiply_half(k, a, tile, b, columns, c, with_table(sums, places))
        else:
            multiply_tile(k, a, tile, b, columns, c, with_table(sums, places))
        sums = sums_from(sums, tile.count)


cdef inline int64_t count_pitched(const int32_t *row, int64_t stretch, int64_t count) noexcept nogil:
    """Rows.pitched for rows whose stretches of ``stretch`` rows are evenly spaced: ``count`` if all rows are."""
    cdef int64_t i = stretch
    if stretch < 2:
        return stretch
    while i < count:
        if row[i] - row[i - 1] != row[1] - row[0]:
            return stretch
        i += stretch
    return count


cdef inline bint fits_tall(int64_t pitched, int64_t columns, int64_t run, compute kind) noexcept nogil:
    """Whether tall tiles can take stretches of ``pitched`` rows, and these have more rows than other tiles."""
    return (NARROW_ROWS < TALL_ROWS and pitched > NARROW_ROWS and run >= TALL_RUN and columns <= vector_length(kind)
            and not fit_half(columns, kind))


cdef inline void multiply_pitched(
    Depth k, const compute *a, Rows rows, const compute *b, Columns columns, compute *c, Sums sums
) noexcept nogil:
    """``multiply_strip`` with tall tiles: one vector of columns, more than NARROW_ROWS evenly spaced rows."""
    cdef int64_t i, pitch = rows.row[1] - rows.row[0]
    cdef int64_t[MOST_TALL_ROWS] places
    cdef bint fetches = k.run >= LONG_DEPTH and pitch * <int64_t>sizeof(compute) >= LINE_BYTES
    cdef Rows tile = rows
    if sums.place == NULL:
        list_multiples(places, sums.pitch, min(rows.count, <int64_t>TALL_ROWS))
    while rows.count > 0:
        tile.row, tile.count = rows.row, rows_of_tile(rows.count, TALL_ROWS)
        rows = rows_from(rows, tile.count)
        if fetches:
            for i in range(min(tile.count, rows.count)):
                prefetch_lines(a + rows.row[i] + rows.depth[0])
        multiply_tall(k, a, tile, b, columns, c, with_table(sums, places))
        sums = sums_from(sums, tile.count)


cdef inline void multiply_rows(
    Depth k, const compute *a, Rows rows, const compute *b, Columns columns, compute *c, Sums sums
) noexcept nogil:
    """``multiply_strip``, with tall tiles for evenly spaced rows, and with the tile registers for MATRICES."""
    cdef Rows stretch = rows
    cdef matrix_product product
    if compute is float:
        if k.way == MATRICES:
            product = matrix_product(rows.count, columns.count, k.steps, k.run, a, rows.row, rows.depth, b,
                                     columns.line, c + sums.first, sums.place, sums.pitch, sums.how)
            add_matrices(&product)
            return
    while fits_tall(min(rows.pitched, rows.count), columns.count, k.run, c[0]):
        stretch.row, stretch.count = rows.row, min(rows.pitched, rows.count)
        multiply_pitched(k, a, stretch, b, columns, c, sums)
        rows, sums = rows_from(rows, stretch.count), sums_from(sums, stretch.count)
    if rows.count > 0:
        multiply_strip(k, a, rows, b, columns, c, sums)
