"""The tiles of ``tile.cuh`` for a kind of numbers and a device, and their shared memory."""

from functools import cache
from typing import NamedTuple

#: Bytes of shared memory that the system reserves for each block.
_RESERVED = 1024

#: Alignment in bytes of the stages of warpgroups (warpgroup.cuh). Shared memory may begin at a smaller multiple.
_ALIGNMENT = 1024

#: Most stages that TMA fills.
_MOST_STAGES = 6


class Kind(NamedTuple):
    """The numbers that are multiplied."""

    element: str  # C++ type of the operands
    size: int  # its bytes
    planes: int
    sum_size: int  # bytes of a sum

    @property
    def chunk(self):
        """Number of elements in 16 bytes, which are copied together."""
        return 16 // self.size

    @property
    def sums(self):
        """C++ type of the sums."""
        return "double" if self.sum_size == 8 else "float"

    def depth(self, tile):
        """Terms of each sum in one stage of a tile."""
        return tile.row_bytes // self.size


class Tile(NamedTuple):
    """One block's part of the result, and how many blocks share a multiprocessor.

    A thread has ``rows * columns / 128`` sums, or twice as many with several planes (see ``promote``). It has 255
    registers if two blocks share a multiprocessor, and 168 if three do. ptxas of CUDA 13.0 uses nearly all of them and
    spills none, on sm_80 to sm_90a. Two blocks are 8 warps on a multiprocessor. They are enough, because each warp has
    dozens of independent products to issue. Shared memory: 4 stages are 64 KB for 128 x 128 and 80 KB for 256 x 64.
    3 stages of 128 x 64 in three planes are 108 KB, and two such blocks fit on sm_90.
    """

    rows: int
    columns: int
    blocks: int
    warpgroups: int = 0  # warpgroups that multiply, with instructions of sm_90a; 0: warps multiply
    engine: bool = False  # whether TMA fills the stages; 128 more threads then have the warp that issues its copies

    @property
    def threads(self):
        return 128 * (max(self.warpgroups, 1) + self.engine)

    @property
    def row_bytes(self):
        """Bytes of a row of a stage."""
        return 128 if self.warpgroups else 64

    @property
    def warp(self):
        """Rows and columns of each of the four warps, or with warpgroups of the part that is stored together."""
        if self.warpgroups:
            return self.rows, self.columns
        across = 4 if self.columns > 2 * self.rows else 2 if 2 * self.columns > self.rows else 1
        return self.rows * across // 4, self.columns // across


#: Planes of 16-bit numbers (0: float64) -> tiles. Products by rows have tiles down to the columns of one instruction.
#: Products by depth (wgrad) have tiles of at least 64 in both directions.
_NARROW = (Tile(128, 64, 2), Tile(64, 64, 2), Tile(128, 32, 2), Tile(128, 16, 2), Tile(128, 8, 2))
_BY_ROWS = {
    0: _NARROW,
    1: (
        *(Tile(128, 128, 2), Tile(256, 64, 2), Tile(128, 64, 2), Tile(64, 64, 2)),
        *(Tile(256, 32, 2), Tile(256, 16, 2), Tile(256, 8, 2)),
    ),
    2: _NARROW,
    3: _NARROW,
}
_BY_DEPTH = {
    0: (Tile(128, 64, 2), Tile(64, 128, 2), Tile(64, 64, 2)),
    1: (Tile(128, 128, 2), Tile(64, 256, 2), Tile(128, 64, 2), Tile(64, 64, 3)),
    2: (Tile(128, 64, 2), Tile(64, 128, 2), Tile(64, 64, 2)),
    3: (Tile(128, 64, 2), Tile(64, 128, 2), Tile(64, 64, 2)),
}

#: Tiles of warpgroups, for 16-bit numbers in one plane, and further ones for products by depth. For products by rows
#: with 64 columns, warps are as fast.
_GROUPED = (Tile(128, 256, 1, 2), Tile(256, 128, 1, 2), Tile(128, 128, 2, 1))
_GROUPED_BY_DEPTH = (Tile(256, 64, 1, 2), Tile(128, 64, 2, 1), Tile(64, 128, 2, 1))

#: Tiles with TMA. 192 rows or columns fill the last wave of some layers, or divide their extents.
_BY_ENGINE = (
    *(Tile(128, 256, 1, 2, True), Tile(256, 128, 1, 2, True), Tile(192, 128, 1, 3, True), Tile(128, 128, 2, 1, True)),
    *(Tile(256, 64, 1, 2, True), Tile(128, 64, 2, 1, True)),
)
_BY_ENGINE_BY_DEPTH = (
    *(Tile(128, 256, 1, 2, True), Tile(256, 128, 1, 2, True), Tile(128, 192, 1, 2, True), Tile(128, 128, 2, 1, True)),
    *(Tile(64, 192, 2, 1, True), Tile(64, 128, 2, 1, True), Tile(128, 64, 2, 1, True)),
)


def tiles(kind, device, by_depth=False):
    """The tiles that are compiled for a kind and a device."""
    grouped = ()
    if device.grouped and kind.size == 2 and kind.planes == 1:
        grouped = _GROUPED
        if by_depth:
            grouped += _GROUPED_BY_DEPTH + (_BY_ENGINE_BY_DEPTH if device.engine else ())
    return grouped + (_BY_DEPTH if by_depth else _BY_ROWS)[kind.planes if kind.size == 2 else 0]


def by_engine(kind, device):
    """The tiles of mma_engine.cu."""
    return _BY_ENGINE if device.engine and kind.size == 2 and kind.planes == 1 else ()


def staged_bytes(kind, tile):
    """Bytes of shared memory through which mma.cu and mma_engine.cu store. The formulas are there."""
    if tile.engine:
        return 4 * tile.warpgroups * 16 * (128 + 8 * kind.sum_size) + 8 * tile.rows
    rows, columns = tile.warp[0], tile.columns
    return 8 * (tile.rows + tile.columns) + max(rows * (columns + 8), columns * (rows + 4)) * kind.sum_size


def declared_bytes(tile, by_depth):
    """Bytes of static shared memory: mma.cu has a walk, and mma_wgrad.cu at most the places of two stages.

    With TMA there is a ring of mbarriers, and mma_engine.cu has eight walks.
    """
    if tile.engine:
        return 128 if by_depth else 2048
    return 32 * tile.row_bytes if by_depth else 256


@cache
def residence(kind, tile, device, by_depth=False):
    """(blocks that share a multiprocessor, stages). Blocks are ``tile.blocks`` if they fit; stages are at least 2."""
    most = _MOST_STAGES if tile.engine else 4 if kind.planes == 1 else 3
    for blocks in range(tile.blocks, 0, -1):
        for count in range(most, 2 if blocks > 1 or tile.warpgroups else 1, -1):
            size = shared_bytes(kind, tile, count) + declared_bytes(tile, by_depth) + _RESERVED
            if blocks * size <= device.shared_bytes + _RESERVED:
                return blocks, count
    raise ValueError(f"a block must have 99 KB of shared memory, was {device.shared_bytes}")


def stages(kind, tile, device, by_depth=False):
    """Number of stages in flight."""
    return residence(kind, tile, device, by_depth)[1]


def shared_bytes(kind, tile, count):
    stages = count * kind.planes * tile.row_bytes * (tile.rows + tile.columns)
    if tile.engine:  # the next tile's stages arrive while a tile is stored
        return stages + staged_bytes(kind, tile) + _ALIGNMENT
    return max(stages, staged_bytes(kind, tile)) + (_ALIGNMENT if tile.warpgroups else 0)
