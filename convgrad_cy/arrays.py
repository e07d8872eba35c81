"""The array library of a call: NumPy, and through this door others later.

A further library is one more ``Library`` and one more line in ``library_of``, which chooses by the type of a call's
first array and must not import a library that the caller has not imported.
"""

from collections.abc import Callable
from functools import reduce
from math import prod
from typing import NamedTuple

import numpy as np

#: Vectors are loaded and stored faster where they do not cross cache lines, so large results begin at one.
_LINE = 64
_LEAST_ALIGNED = 1 << 16

#: Steps that the exact search for overlap may take; what it cannot decide in them counts as overlap.
_OVERLAP_WORK = 10_000


class Library(NamedTuple):
    """What validation needs of an array library."""

    plain: Callable  # (name, array) -> the array without its subclass; TypeError if it is not this library's
    empty: Callable  # (shape, dtype) -> a new array, C-contiguous; a large one begins at a cache line
    copy: Callable  # (array) -> a new array, C-contiguous
    overlap: Callable  # (array, array) -> whether they share an element in memory
    overlaps_itself: Callable  # (array) -> whether two of its elements share memory


def library_of(name, array):
    """The library of a call's first array."""
    NUMPY.plain(name, array)
    return NUMPY


def is_addressable(array):
    """Whether every element's address is a multiple of the itemsize away from the first, and aligned."""
    flags = array.flags
    if not flags.aligned:
        return False
    if flags.c_contiguous:
        return True
    itemsize = array.itemsize
    return not any(stride % itemsize for stride, size in zip(array.strides, array.shape, strict=True) if size > 1)


def _plain(name, array):
    if type(array) is np.ndarray:
        return array
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be a numpy.ndarray, not {type(array).__name__}")
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a numpy.ndarray without a mask, not {type(array).__name__}")
    return array.view(np.ndarray)


def _empty(shape, dtype):
    size = prod(shape) * dtype.itemsize
    try:
        if size < _LEAST_ALIGNED:
            return np.empty(shape, dtype)
        memory = np.empty(size + _LINE, np.uint8)
        begin = -memory.ctypes.data % _LINE
        return memory[begin : begin + size].view(dtype).reshape(shape)
    except ValueError as error:  # NumPy's answer to a size that does not fit into its index type
        raise MemoryError(f"no memory for an array of shape {shape} and dtype {dtype}") from error


def _overlap(one, other):
    if not np.may_share_memory(one, other):
        return False
    try:
        return np.shares_memory(one, other, max_work=_OVERLAP_WORK)
    except RuntimeError:  # TooHardError, which has no public name before NumPy 1.25
        return True


def _overlaps_itself(array):
    if array.flags.c_contiguous or array.size == 0:
        return False
    axes = sorted((abs(stride), size) for stride, size in zip(array.strides, array.shape, strict=True) if size > 1)
    extent, nested = array.itemsize, True
    for stride, size in axes:
        nested = nested and stride >= extent
        extent += stride * (size - 1)
    if nested:
        return False
    if array.nbytes > extent:
        return True
    # Interleaved strides may still reach each place once; the addresses are no more than the array's own elements.
    addresses = reduce(np.add.outer, (stride * np.arange(size) for stride, size in axes))
    return np.unique(addresses).size < array.size


def _copy(array):
    return np.array(array, order="C")


NUMPY = Library(_plain, _empty, _copy, _overlap, _overlaps_itself)
