"""The tiles of ``simt.cu``, and which of them a product takes: arithmetic on its extents."""

from typing import NamedTuple

from .reduce import MOST_ELEMENTS

#: Instructions that bring one element of an operand from memory into a tile: its place, whether it exists, the load,
#: the conversion, the store.
_FILL_INSTRUCTIONS = 10
#: Products that cost as much as writing and reading a partial sum: these are 8 bytes, of about 19 in each cycle and
#: processor, where that does 128 products.
_PARTIAL_PRODUCTS = 54
#: Threads of one processor that keep its arithmetic busy, each with at least 16 independent sums.
_BUSY_THREADS = 256
#: A split is at least so deep, for its first loads wait for memory with nothing to do.
_LEAST_DEPTH = 128
_MOST_SPLITS = 128


class Tile(NamedTuple):
    """A block's part of the result, the depth of a step, a thread's part, and the blocks of a processor."""

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
        """The part of a thread's instructions that are products.

        For each depth there are thread_rows * thread_columns of them, a load from shared memory for each 16 bytes of
        the two operands, and the thread's share in filling the tiles.
        """
        products = self.thread_rows * self.thread_columns
        loads = (self.thread_rows + self.thread_columns) * itemsize / 16
        fills = (self.rows + self.columns) / self.threads * _FILL_INSTRUCTIONS
        return products / (products + loads + fills)


#: By the size of the compute type. 8 x 8 sums of 4 bytes leave two blocks of 256 threads 64 other registers for each
#: thread, enough where a step is 8 deep; sums of 8 bytes take twice as much, so there are half as many and one block.
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
    """The matrix products of one launch, one for each walk and group; ``rows`` are those of the longest walk."""

    walks: int
    groups: int
    rows: int
    columns: int
    depth: int

    def tiles(self, tile):
        """Of the rows, and of the columns."""
        return -(-self.rows // tile.rows), -(-self.columns // tile.columns)

    def blocks(self, tile):
        down, across = self.tiles(tile)
        return down * across * self.walks * self.groups

    def split_depth(self, tile, splits):
        """The depth of each split, in whole steps, of which the last may have fewer."""
        steps = -(-self.depth // tile.depth)
        return -(-steps // splits) * tile.depth


def _cost(extents, tile, splits, dtype, processors):
    """What a tile and a number of splits cost, in products of one processor.

    Each processor has the blocks / processors (rounded up) that the busiest has, or so few that it is not kept busy;
    padding of the last tiles counts. Partial sums are written and read by all processors together.
    """
    busiest = max(-(-extents.blocks(tile) * splits // processors), _BUSY_THREADS / tile.threads)
    products = busiest * tile.rows * tile.columns * extents.split_depth(tile, splits)
    partials = splits * extents.groups * extents.rows * extents.columns if splits > 1 else 0
    return products / tile.efficiency(dtype.compute_itemsize) + partials * _PARTIAL_PRODUCTS / processors


def _candidates(extents, dtype):
    """Tiles with numbers of splits. Products of several walks are not split."""
    most = min(_MOST_SPLITS, extents.depth // _LEAST_DEPTH)
    if extents.walks > 1 or extents.groups * extents.rows * extents.columns > MOST_ELEMENTS:
        most = 1
    return [(tile, splits) for tile in TILES[dtype.compute_itemsize] for splits in (1, *range(2, most + 1))]


def cheapest(extents, dtype, processors):
    """The cost of what ``choice`` takes, in products of one processor."""
    return min(_cost(extents, *one, dtype, processors) for one in _candidates(extents, dtype))


def choice(extents, dtype, processors):
    """The tile and the number of splits that cost least."""
    candidates = _candidates(extents, dtype)
    tile, splits = min(candidates, key=lambda candidate: _cost(extents, *candidate, dtype, processors))
    # Rounded to whole steps, fewer splits may do.
    return tile, -(-extents.depth // extents.split_depth(tile, splits)) if splits > 1 else 1
