"""Tensor maps: descriptions of tensors for TMA, the copy engine of sm_90, in 128 bytes that the driver writes.

A map contains an address, so each call makes maps for its arrays.
"""

import ctypes
import os
from functools import cache
from typing import NamedTuple

import numpy as np

BYTES = 128
#: Alignment of a map in memory, which the driver requires.
_ALIGNMENT = 64
#: CUtensorMapDataType, by our names.
_TYPES = {"f16": 6, "bf16": 9}
#: CUtensorMapSwizzle of 128 bytes, and CUtensorMapL2promotion to 256.
_SWIZZLED, _PROMOTED = 3, 3


class TensorMap(NamedTuple):
    """A tensor and the boxes that are copied from it. The first axis is contiguous and has the channels.

    An "im2col" box has a number of channels and a number of pixels, which follow one another along the spatial axes and
    through the batch. A "tiled" box has an extent on each axis.
    """

    pointer: int  # index among the launch's pointers
    element: str  # C++ type
    sizes: tuple
    strides: tuple  # in bytes, for all axes but the first
    box: tuple
    #: For im2col, on each spatial axis: the index of the first pixel, and of the last one relative to the last element.
    lower: tuple = ()
    upper: tuple = ()
    steps: tuple = ()  # strides of pixels


@cache
def _driver():
    """CUDA's driver, or None on a machine without it."""
    try:
        return ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return None


def can_encode():
    """Whether the driver makes such maps, as CUDA 12 and later do."""
    return hasattr(_driver(), "cuTensorMapEncodeIm2col")


def _numbers(kind, values):
    return (kind * len(values))(*values)


def _encode(driver, place, wanted, address):
    """Let the driver write one map, and return its status."""
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
    """The maps of a launch with these addresses, one after another, in a scalar that CuPy passes by value."""
    driver, size = _driver(), BYTES * len(maps)
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    skip = -memory.ctypes.data % _ALIGNMENT
    for number, wanted in enumerate(maps):
        place = memory.ctypes.data + skip + BYTES * number
        status = _encode(driver, place, wanted, addresses[wanted.pointer])
        if status:
            raise RuntimeError(f"CUDA error {status}: the driver must make a tensor map of {wanted}")
    return memory[skip : skip + size].view(f"V{size}")
