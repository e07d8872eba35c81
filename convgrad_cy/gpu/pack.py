"""Operands in the layout of mma.cu: contiguous channels in chunks of 16 bytes, and float32 in planes of bf16."""

from math import prod
from typing import NamedTuple

from .plan import Launch, integers
from .transpose import packing

_BITS = 12  # log2 of the elements of a block: BITS of pack.cu
_MOST_ROWS_BITS = 9
_THREADS = 256
#: Limit of the grid's second axis.
_MOST_ACROSS = 65535
#: Axes of the rows of data and of filters. The remaining axis has the channels.
_ROW_AXES = (0, 1, 3, 4, 5)
CHANNELS = 2


class Packed(NamedTuple):
    """The memory where the kernel finds an operand."""

    number: int  # number of the operand, or of the workspace with its copy
    strides: tuple  # in elements, of the operand's six axes
    plane: int  # elements from one plane to the next
    channels: int  # rounded up to whole chunks; the added ones are zero
    launch: Launch | None  # makes the copy
    size: int  # bytes of the copy


def lies_in_chunks(operand, chunk):
    """Whether every ``chunk`` channels begin at a multiple of 16 bytes, if channels are contiguous."""
    steps = [stride for axis, stride in enumerate(operand.strides) if axis != CHANNELS and operand.shape[axis] > 1]
    return operand.aligned and operand.shape[CHANNELS] % chunk == 0 and not any(stride % chunk for stride in steps)


def pack(number, operand, dtype, kind, workspace):
    """An operand as it is, if it can be copied 16 bytes at a time; otherwise packed into a workspace."""
    if kind.planes == 1 and operand.strides[CHANNELS] == 1 and lies_in_chunks(operand, kind.chunk):
        # Kernels form addresses outside, too, and these must also be aligned.
        strides = [stride if size > 1 else 0 for stride, size in zip(operand.strides, operand.shape, strict=True)]
        return Packed(number, tuple(strides), 0, operand.shape[CHANNELS], None, 0)
    channels = operand.shape[CHANNELS]
    rows = prod(operand.shape) // channels
    padded = -(-channels // kind.chunk) * kind.chunk
    strides = [1] * 6
    step = padded
    for axis in reversed(_ROW_AXES):
        strides[axis] = step
        step *= operand.shape[axis]
    size = kind.planes * rows * padded * kind.size
    launch = packing(number, operand, dtype, kind, workspace, padded)
    if launch is None:
        launch = _packing(number, operand, dtype, kind, workspace, padded)
    return Packed(workspace, tuple(strides), rows * padded, padded, launch, size)


def _packing(number, operand, dtype, kind, workspace, padded):
    """The launch that packs an operand with any strides."""
    extents = [operand.shape[axis] for axis in _ROW_AXES]
    channels, rows = operand.shape[CHANNELS], prod(extents)
    width_bits = min(max((padded - 1).bit_length(), _BITS - _MOST_ROWS_BITS), _BITS // 2)
    rows_bits = _BITS - width_bits
    nearest = min((abs(operand.strides[a]) for a in _ROW_AXES if operand.shape[a] > 1), default=0)
    along_rows = nearest < abs(operand.strides[CHANNELS]) if rows > 1 and channels > 1 else rows > 1
    macros = (("PACKED", kind.element), ("PLANES", str(kind.planes)), ("STORAGE", dtype.cuda))
    arguments = integers(
        extents,
        [operand.strides[axis] for axis in _ROW_AXES],
        channels,
        padded,
        operand.strides[CHANNELS],
        rows_bits,
        along_rows,
    )
    grid = (-(-rows >> rows_bits), -(-padded >> width_bits), 1)
    return Launch("pack.cu", macros, "pack", grid, (_THREADS, 1, 1), 0, (number, workspace), arguments)


def can_pack(operand):
    """Whether rows can be counted in 32 bits, and the grid is large enough for the channels."""
    rows = prod(operand.shape) // operand.shape[CHANNELS]
    return rows < 2**31 and operand.shape[CHANNELS] < _MOST_ACROSS << (_BITS // 2)
