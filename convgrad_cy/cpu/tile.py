"""How long the register tile takes (``pyx/tile/ukernel.h``)."""

from functools import lru_cache

#: Rows of a tile of half a vector, as that of pyx/tile/ukernel.h has.
HALF_ROWS = 8


def fits_half(columns, tile, itemsize):
    """Whether tiles of half a vector hold so many columns, and the machine gains from them."""
    return tile.halves and 2 * columns * itemsize <= tile.vector_bytes


@lru_cache(maxsize=256)
def tile_cycles(rows, columns, tile, itemsize):
    """A model of the cycles for one step of depth of a block: two multiplications or two loads of a vector each."""
    lanes, strip = tile.vector_bytes // itemsize, tile.tile_column_bytes // itemsize
    if columns and fits_half(columns, tile, itemsize):
        full, least = tile.tuning.half_tile_cycles, tile.tuning.least_half_tile_cycles
        return full * (rows // HALF_ROWS) + (least if rows % HALF_ROWS else 0)
    split = 2 if tile.halves else 1  # two cycles are one of the model
    cycles = 0
    for width, strips in ((strip, columns // strip), (columns % strip, 1)):
        vectors = -(-width // lanes)
        for height, tiles in ((tile.tile_rows, rows // tile.tile_rows), (rows % tile.tile_rows, 1)):
            if vectors and height:
                cycles += strips * tiles * max(vectors * height, vectors + (height + 2) / split, 8 / split) / 2
    return cycles
