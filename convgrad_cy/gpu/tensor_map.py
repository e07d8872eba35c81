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


def _call(wanted):
    """The name of the driver's function for a map, and its arguments before and after the tensor's address."""
    rank, no_interleave, zeros = len(wanted.sizes), 0, 0
    before = (_TYPES[wanted.element], ctypes.c_uint32(rank))
    after = (_numbers(ctypes.c_uint64, wanted.sizes), _numbers(ctypes.c_uint64, wanted.strides))
    how = (no_interleave, _SWIZZLED, _PROMOTED, zeros)
    if not wanted.steps:
        box, steps = (_numbers(ctypes.c_uint32, values) for values in (wanted.box, (1,) * rank))
        return "cuTensorMapEncodeTiled", before, (*after, box, steps, *how)
    steps = _numbers(ctypes.c_uint32, (1, *wanted.steps, 1))
    corners = (_numbers(ctypes.c_int, wanted.lower), _numbers(ctypes.c_int, wanted.upper))
    channels, pixels = (ctypes.c_uint32(size) for size in wanted.box)
    return "cuTensorMapEncodeIm2col", before, (*after, *corners, channels, pixels, steps, *how)


class Encoder:
    """The maps of a launch, without its addresses. Equal maps are written once."""

    def __init__(self, maps):
        self._distinct = tuple(dict.fromkeys(maps))
        self._order = [self._distinct.index(wanted) for wanted in maps]
        self._calls = [(wanted.pointer, *_call(wanted)) for wanted in self._distinct]

    def _written(self, addresses):
        """The distinct maps as rows of bytes, and the driver's status for each."""
        driver, count = _driver(), len(self._calls)
        memory = np.empty(BYTES * count + _ALIGNMENT, np.uint8)
        begin = memory.ctypes.data
        skip = -begin % _ALIGNMENT
        places = range(begin + skip, begin + skip + BYTES * count, BYTES)
        statuses = [
            getattr(driver, name)(ctypes.c_void_p(place), *before, ctypes.c_void_p(addresses[pointer]), *after)
            for place, (pointer, name, before, after) in zip(places, self._calls, strict=True)
        ]
        return memory[skip : skip + BYTES * count].reshape(count, BYTES), statuses

    def refuses(self, addresses):
        """Whether the driver refuses one of the maps."""
        return any(self._written(addresses)[1])

    def __call__(self, *addresses):
        """The maps with these addresses, one after another, in a scalar that CuPy passes by value."""
        rows, statuses = self._written(addresses)
        for wanted, status in zip(self._distinct, statuses, strict=True):
            if status:
                raise RuntimeError(f"CUDA error {status}: the driver must make a tensor map of {wanted}")
        return rows[self._order].reshape(-1).view(f"V{BYTES * len(self._order)}")
