"""The tiles of ``tile.cuh``: those that there are for a kind of numbers and a device, and their shared memory."""

from functools import cache
from typing import NamedTuple

#: Bytes of shared memory that the system takes of each block.
_RESERVED = 1024

#: The stages of warpgroups begin at a multiple of so many bytes (warpgroup.cuh), wherever shared memory does.
_ALIGNMENT = 1024

#: Stages that the copy engine has at most to fill.
_MOST_STAGES = 6


class Kind(NamedTuple):
    """What is multiplied."""

    element: str  # C++ type of the operands
    size: int  # its bytes
    planes: int
    sum_size: int  # bytes of a sum

    @property
    def chunk(self):
        """Elements of 16 bytes, which are copied together."""
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

    A thread has ``rows * columns / 128`` sums (twice as many with several planes, see ``promote``) in the 255 registers
    that two blocks leave it, or the 168 that three do; ptxas of CUDA 13.0 uses nearly all and spills none, on sm_80 to
    sm_90a. Two blocks are 8 warps on a multiprocessor: enough since each has dozens of independent products to issue.
    Shared memory: 4 stages of 128 x 128 are 64 KB, of 256 x 64 80 KB; 3 stages of 128 x 64 in three planes are 108 KB,
    two of which fit on sm_90.
    """

    rows: int
    columns: int
    blocks: int
    warpgroups: int = 0  # that multiply together, with the instructions of sm_90a; 0: warps do, alone
    engine: bool = False  # whether the copy engine brings stages, for which a warp more asks it

    @property
    def threads(self):
        return 128 * (max(self.warpgroups, 1) + self.engine)

    @property
    def row_bytes(self):
        """Of a row of a stage."""
        return 128 if self.warpgroups else 64

    @property
    def warp(self):
        """Rows and columns of each of the four warps, or of what is stored together."""
        if self.warpgroups:
            return self.rows, self.columns
        across = 4 if self.columns > 2 * self.rows else 2 if 2 * self.columns > self.rows else 1
        return self.rows * across // 4, self.columns // across


#: By how many 16-bit numbers an operand is made of; 0 stands for float64. Of products by rows, down to the columns of
#: one instruction, and by depth (wgrad), whose tiles have at least 64 in both directions.
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

#: Those of warpgroups, for 16-bit numbers in one plane; and by depth beside them. By rows, 64 columns are as fast where
#: warps multiply.
_GROUPED = (Tile(128, 256, 1, 2), Tile(256, 128, 1, 2), Tile(128, 128, 2, 1))
_GROUPED_BY_DEPTH = (Tile(256, 64, 1, 2), Tile(128, 64, 2, 1), Tile(64, 128, 2, 1))
_GROUPED_ARCH = 90

#: Those with the copy engine. 192 rows or columns fill the last wave of some layers, or have no remainder in them.
_BY_ENGINE = (
    *(Tile(128, 256, 1, 2, True), Tile(256, 128, 1, 2, True), Tile(192, 128, 1, 3, True), Tile(128, 128, 2, 1, True)),
    *(Tile(256, 64, 1, 2, True), Tile(128, 64, 2, 1, True)),
)
_BY_ENGINE_BY_DEPTH = (
    *(Tile(128, 256, 1, 2, True), Tile(256, 128, 1, 2, True), Tile(128, 192, 1, 2, True), Tile(128, 128, 2, 1, True)),
    *(Tile(64, 192, 2, 1, True), Tile(64, 128, 2, 1, True), Tile(128, 64, 2, 1, True)),
)


def tiles(kind, device, by_depth=False):
    """Those that are compiled for a kind and a device."""
    grouped = ()
    if device.arch == _GROUPED_ARCH and kind.size == 2 and kind.planes == 1:
        grouped = _GROUPED
        if by_depth:
            grouped += _GROUPED_BY_DEPTH + (_BY_ENGINE_BY_DEPTH if device.engine else ())
    return grouped + (_BY_DEPTH if by_depth else _BY_ROWS)[kind.planes if kind.size == 2 else 0]


def by_engine(kind, device):
    """Those of mma_engine.cu."""
    return _BY_ENGINE if device.engine and kind.size == 2 and kind.planes == 1 else ()


def staged_bytes(kind, tile):
    """Shared memory through which mma.cu and mma_engine.cu store; the formulas are there."""
    if tile.engine:
        return 4 * tile.warpgroups * 16 * (128 + 8 * kind.sum_size) + 8 * tile.rows
    rows, columns = tile.warp[0], tile.columns
    return 8 * (tile.rows + tile.columns) + max(rows * (columns + 8), columns * (rows + 4)) * kind.sum_size


def declared_bytes(tile, by_depth):
    """What kernels declare beside the dynamic part: mma.cu a walk, mma_wgrad.cu at most the places of two stages.

    Where the copy engine brings stages, a ring, and mma_engine.cu eight walks.
    """
    if tile.engine:
        return 128 if by_depth else 2048
    return 32 * tile.row_bytes if by_depth else 256


@cache
def residence(kind, tile, device, by_depth=False):
    """How many blocks share a multiprocessor, ``tile.blocks`` where they can, and with how many stages: at least 2."""
    most = _MOST_STAGES if tile.engine else 4 if kind.planes == 1 else 3
    for blocks in range(tile.blocks, 0, -1):
        for count in range(most, 2 if blocks > 1 or tile.warpgroups else 1, -1):
            size = shared_bytes(kind, tile, count) + declared_bytes(tile, by_depth) + _RESERVED
            if blocks * size <= device.shared_bytes + _RESERVED:
                return blocks, count
    raise ValueError(f"a block must have 99 KB of shared memory, was {device.shared_bytes}")


def stages(kind, tile, device, by_depth=False):
    """How many stages are on their way."""
    return residence(kind, tile, device, by_depth)[1]


def shared_bytes(kind, tile, count):
    stages = count * kind.planes * tile.row_bytes * (tile.rows + tile.columns)
    if tile.engine:  # the next tile's stages are on their way while one is stored
        return stages + staged_bytes(kind, tile) + _ALIGNMENT
    return max(stages, staged_bytes(kind, tile)) + (_ALIGNMENT if tile.warpgroups else 0)
