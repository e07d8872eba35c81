"""Fast copies between channels first and channels last (``transpose.cu``), for operands and results of tensor cores."""

from math import prod
from typing import NamedTuple

from .plan import TARGET, Launch, integers

#: Rows of a block, and bytes of its columns: ROWS and ROW_BYTES of transpose.cu.
_ROWS, _ROW_BYTES = 64, 256
_THREADS = 256
#: Least number of channels. With fewer, most threads of a block have nothing to copy.
_LEAST_CHANNELS = 32
_MOST_BLOCKS = 2**31 - 1


class _Matrices(NamedTuple):
    """An operand with channels first, as a matrix of channels and positions for each image and group."""

    images: int
    positions: int
    by_image: int  # elements from one matrix to the next
    by_channel: int
    in_halves: bool  # only halves of chunks of 16 bytes are aligned


def _matrices(operand, size):
    """The matrices of an operand whose elements have ``size`` bytes; None if pieces of 8 bytes are not aligned."""
    batch, groups, channels, *space = operand.shape
    by_batch, by_group, by_channel, *by_space = operand.strides
    positions, chunk = prod(space), 16 // size
    adjacent = all(
        extent == 1 or step == prod(space[axis + 1 :])
        for axis, (extent, step) in enumerate(zip(space, by_space, strict=True))
    )
    if not (operand.aligned and adjacent and channels >= _LEAST_CHANNELS):
        return None
    if batch > 1 and groups > 1 and by_batch != groups * by_group:
        return None
    by_image = by_group if groups > 1 else by_batch if batch > 1 else 0
    steps = positions, by_image, by_channel
    if any(step % (chunk // 2) for step in steps):
        return None
    return _Matrices(batch * groups, *steps, any(step % chunk for step in steps))


def _launch(dtype, kind, pointers, images, rows, columns, padded, *others):
    """A launch, or None if the grid would be too large."""
    down, across = -(-padded // _ROWS), -(-columns * dtype.itemsize // _ROW_BYTES)
    if images * down * across > _MOST_BLOCKS:
        return None
    macros = (("PACKED", kind.element), ("PLANES", str(kind.planes)), ("STORAGE", dtype.cuda))
    arguments = integers(rows, columns, padded, down, across, others)
    return Launch(
        "transpose.cu", macros, "transpose", (images * down * across, 1, 1), (_THREADS, 1, 1), 0, pointers, arguments
    )


def packing(number, operand, dtype, kind, workspace, padded):
    """The launch that packs an operand with channels first, or None if `pack` has to do it.

    ``padded`` is the number of channels in the workspace.
    """
    matrices = _matrices(operand, dtype.itemsize) if kind.size == 2 else None
    if matrices is None:
        return None
    images, positions, by_image, by_channel, in_halves = matrices
    size = positions * padded
    return _launch(
        dtype,
        kind,
        (number, workspace),
        images,
        *(operand.shape[2], positions, padded),
        *(by_image, by_channel, size, padded, images * size),
        *(in_halves, False),
    )


class Unpacked(NamedTuple):
    """A result with channels last in a workspace, and the launch that copies it to the target."""

    strides: tuple  # in the workspace
    size: int  # bytes
    launch: Launch


def unpacking(target, dtype, kind, workspace):
    """The `Unpacked` of a target with channels first; None if it has other strides, or has planes."""
    matrices = _matrices(target, dtype.itemsize) if (kind.size, kind.planes) == (2, 1) else None
    if matrices is None:
        return None
    images, positions, by_image, by_channel, in_halves = matrices
    _, groups, channels, _, height, width = target.shape
    padded = -(-channels // kind.chunk) * kind.chunk
    size = positions * padded
    launch = _launch(
        dtype,
        kind,
        (workspace, TARGET),
        images,
        *(positions, channels, positions),
        *(size, padded, by_image, by_channel, 0),
        *(False, in_halves),
    )
    if launch is None:
        return None
    strides = (groups * size, size, 1, height * width * padded, width * padded, padded)
    return Unpacked(strides, images * size * kind.size, launch)
