"""The tiles of ``simt.cu``, and the choice of one for a product from its extents."""

from typing import NamedTuple

from .reduce import MOST_ELEMENTS

#: Instructions that copy one element of an operand from memory into a tile: address, bounds check, load, conversion and
#: store.
_FILL_INSTRUCTIONS = 10
#: Products that cost as much as writing and reading a partial sum. The latter are 8 bytes. Per cycle a multiprocessor
#: moves about 19 bytes, or forms 128 products.
_PARTIAL_PRODUCTS = 54
#: Threads that keep the arithmetic of a multiprocessor busy, each with at least 16 independent sums.
_BUSY_THREADS = 256
#: Least depth of a split, because its first loads wait for memory without other work.
_LEAST_DEPTH = 128
_MOST_SPLITS = 128


class Tile(NamedTuple):
    """A block's part of the result, the depth of a step, a thread's part, and the blocks of a multiprocessor."""

    rows: int
    columns: int
    depth: int
    thread_rows: int
    thread_columns: int
    resident: int

    @property
    def threads(self):
        return self.rows // self.thread_rows * (self.columns // self.thread_columns)

    def efficiency(self, itemsize):
        """The fraction of a thread's instructions that are products.

        For each depth there are thread_rows * thread_columns products, a load from shared memory for each 16 bytes of
        the two operands, and the thread's share in filling the tiles.
        """
        products = self.thread_rows * self.thread_columns
        loads = (self.thread_rows + self.thread_columns) * itemsize / 16
        fills = (self.rows + self.columns) / self.threads * _FILL_INSTRUCTIONS
        return products / (products + loads + fills)


#: Size of the compute type -> tiles. With 8 x 8 sums of 4 bytes, two blocks of 256 threads have 64 other registers for
#: each thread, which is enough for steps of depth 8. Sums of 8 bytes take twice the registers, so there are half as
#: many sums, and one block.
TILES = {
    4: (
        Tile(128, 128, 8, 8, 8, 2),
        Tile(128, 64, 8, 8, 8, 3),
        Tile(64, 128, 8, 8, 8, 3),
        Tile(128, 32, 16, 8, 4, 4),
        Tile(64, 64, 16, 4, 8, 4),
        Tile(32, 32, 16, 4, 4, 8),
    ),
    8: (Tile(128, 64, 8, 8, 4, 1), Tile(64, 64, 8, 4, 4, 2), Tile(32, 32, 8, 4, 4, 7)),
}


class Extents(NamedTuple):
    """The matrix products of one launch, one for each walk and group. ``rows`` belong to the longest walk."""

    walks: int
    groups: int
    rows: int
    columns: int
    depth: int

    def tiles(self, tile):
        """Numbers of tiles along the rows and along the columns."""
        return -(-self.rows // tile.rows), -(-self.columns // tile.columns)

    def blocks(self, tile):
        down, across = self.tiles(tile)
        return down * across * self.walks * self.groups

    def split_depth(self, tile, splits):
        """The depth of each split, in whole steps. The last split may be shorter."""
        steps = -(-self.depth // tile.depth)
        return -(-steps // splits) * tile.depth


def _cost(extents, tile, splits, dtype, processors):
    """Cost of a tile and a number of splits, in products of one multiprocessor.

    The busiest multiprocessor has blocks / processors blocks, rounded up. Too few threads to keep it busy count as if
    they were enough. The empty parts of the last tiles count. All multiprocessors write and read partial sums.
    """
    busiest = max(-(-extents.blocks(tile) * splits // processors), _BUSY_THREADS / tile.threads)
    products = busiest * tile.rows * tile.columns * extents.split_depth(tile, splits)
    partials = splits * extents.groups * extents.rows * extents.columns if splits > 1 else 0
    return products / tile.efficiency(dtype.compute_itemsize) + partials * _PARTIAL_PRODUCTS / processors


def _candidates(extents, dtype):
    """Pairs of a tile and a number of splits. Products of several walks are not split."""
    most = min(_MOST_SPLITS, extents.depth // _LEAST_DEPTH)
    if extents.walks > 1 or extents.groups * extents.rows * extents.columns > MOST_ELEMENTS:
        most = 1
    return [(tile, splits) for tile in TILES[dtype.compute_itemsize] for splits in (1, *range(2, most + 1))]


def cheapest(extents, dtype, processors):
    """The cost of the ``choice``, in products of one multiprocessor."""
    return min(_cost(extents, *one, dtype, processors) for one in _candidates(extents, dtype))


def choice(extents, dtype, processors):
    """The tile and the number of splits with the least cost."""
    candidates = _candidates(extents, dtype)
    tile, splits = min(candidates, key=lambda candidate: _cost(extents, *candidate, dtype, processors))
    # Splits have whole steps, so fewer of them may be enough.
    return tile, -(-extents.depth // extents.split_depth(tile, splits)) if splits > 1 else 1
