"""A model of the register tile's time (``pyx/tile/ukernel.h``)."""

from functools import lru_cache

#: Rows of a tile of half a vector, as in pyx/tile/ukernel.h.
HALF_ROWS = 8


def fits_half(columns, tile, itemsize):
    """Whether ``columns`` fit in a tile of half a vector, and the machine gains from such tiles."""
    return tile.halves and 2 * columns * itemsize <= tile.vector_bytes


@lru_cache(maxsize=256)
def tile_cycles(rows, columns, tile, itemsize):
    """Modelled time of a block of ``rows`` x ``columns`` sums for one term of each sum.

    The unit is the time of two multiplications of whole vectors: one cycle, or two if the machine splits vectors. If
    the columns fit in half a vector, tiles of half a vector are used where they are faster.
    """
    lanes, strip = tile.vector_bytes // itemsize, tile.tile_column_bytes // itemsize
    if columns and fits_half(columns, tile, itemsize):
        full, least = tile.tuning.half_tile_cycles, tile.tuning.least_half_tile_cycles
        return full * (rows // HALF_ROWS) + (least if rows % HALF_ROWS else 0)
    split = 2 if tile.halves else 1  # cycles of the processor in the unit of the model
    cycles = 0
    for width, strips in ((strip, columns // strip), (columns % strip, 1)):
        vectors = -(-width // lanes)
        for height, tiles in ((tile.tile_rows, rows // tile.tile_rows), (rows % tile.tile_rows, 1)):
            if vectors and height:
                cycles += strips * tiles * max(vectors * height, vectors + (height + 2) / split, 8 / split) / 2
    return cycles
