"""Tensor maps: what the copy engine of sm_90 is told of a tensor, 128 bytes that the driver makes.

A map holds an address, so it is made for each array, when a call has it.
"""

import ctypes
import os
from functools import cache
from typing import NamedTuple

import numpy as np

BYTES = 128
#: The driver writes it where a multiple of this is.
_ALIGNMENT = 64
#: CUtensorMapDataType, by our names.
_TYPES = {"f16": 6, "bf16": 9}
#: CUtensorMapSwizzle of 128 bytes, and CUtensorMapL2promotion to 256.
_SWIZZLED, _PROMOTED = 3, 3


class TensorMap(NamedTuple):
    """A tensor and the boxes that are copied of it. Axes are counted from the nearest in memory on, that of channels.

    Boxes are so many channels by so many pixels, which follow one another along the spatial axes and through the batch
    ("im2col"), or have an extent on each axis ("tiled").
    """

    pointer: int  # its place among the launch's pointers
    element: str  # C++ type
    sizes: tuple
    strides: tuple  # in bytes, of all axes but the first
    box: tuple
    #: Of im2col, on each spatial axis: where the places of pixels begin, and how far beyond the last element they end.
    lower: tuple = ()
    upper: tuple = ()
    steps: tuple = ()  # of pixels


@cache
def _driver():
    """CUDA's driver, or None on a machine without it."""
    try:
        return ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return None


def can_encode():
    """Whether the driver makes such maps, which it does from CUDA 12 on."""
    return hasattr(_driver(), "cuTensorMapEncodeIm2col")


def _numbers(kind, values):
    return (kind * len(values))(*values)


def _encode(driver, place, wanted, address):
    """The driver's status for writing one map."""
    rank, no_interleave, zeros = len(wanted.sizes), 0, 0
    tensor = (ctypes.c_void_p(place), _TYPES[wanted.element], ctypes.c_uint32(rank), ctypes.c_void_p(address))
    tensor += (_numbers(ctypes.c_uint64, wanted.sizes), _numbers(ctypes.c_uint64, wanted.strides))
    how = (no_interleave, _SWIZZLED, _PROMOTED, zeros)
    if not wanted.steps:
        box, steps = (_numbers(ctypes.c_uint32, values) for values in (wanted.box, (1,) * rank))
        return driver.cuTensorMapEncodeTiled(*tensor, box, steps, *how)
    steps = _numbers(ctypes.c_uint32, (1, *wanted.steps, 1))
    corners = (_numbers(ctypes.c_int, wanted.lower), _numbers(ctypes.c_int, wanted.upper))
    channels, pixels = (ctypes.c_uint32(size) for size in wanted.box)
    return driver.cuTensorMapEncodeIm2col(*tensor, *corners, channels, pixels, steps, *how)


def encoded(maps, addresses):
    """The maps of a launch whose pointers are these, one after another, as CuPy passes them by value."""
    driver, size = _driver(), BYTES * len(maps)
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    skip = -memory.ctypes.data % _ALIGNMENT
    for number, wanted in enumerate(maps):
        place = memory.ctypes.data + skip + BYTES * number
        status = _encode(driver, place, wanted, addresses[wanted.pointer])
        if status:
            raise RuntimeError(f"CUDA error {status}: the driver must make a tensor map of {wanted}")
    return memory[skip : skip + size].view(f"V{size}")
