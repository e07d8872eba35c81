"""Arrays on a GPU with the memory layout of given ones, and the reason why a test that needs a GPU is skipped."""

import ctypes
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest

#: Errors relative to the greatest element of a result, by type, and for float32 by precision.
BOUNDS = {"float64": 1e-13, "float16": 2e-3, "bfloat16": 6e-3, "ieee": 5e-6, "high": 5e-6, "medium": 1e-5}


@cache
def missing():
    """The missing part of this machine, or None on a machine with CuPy and a GPU."""
    if find_spec("cupy") is None:
        return "CuPy is not installed"
    import cupy

    return None if cupy.is_available() else "CuPy finds no GPU"


def require_gpu():
    """Skip the whole module that calls this if the machine has no GPU."""
    if missing() is not None:
        pytest.skip(missing(), allow_module_level=True)


def to_device(host):
    """A copy on the GPU with the strides of a NumPy array, its gaps and its alignment to 16 bytes."""
    import cupy

    steps = [stride * (size - 1) for stride, size in zip(host.strides, host.shape, strict=True) if size]
    before = -sum(step for step in steps if step < 0)
    size = before + sum(step for step in steps if step > 0) + host.itemsize if host.size else 0
    begin = host.__array_interface__["data"][0] - before
    memory = cupy.zeros(size + 16, np.uint8)
    skip = (begin - memory.data.ptr) % 16
    memory[skip : skip + size] = cupy.asarray(np.frombuffer(ctypes.string_at(begin, size), np.uint8))
    return cupy.ndarray(host.shape, host.dtype, memory.data + skip + before, host.strides)


def to_host(array):
    """A NumPy array with these elements, of any type."""
    import cupy

    sizes, strides = (*array.shape, array.itemsize), (*array.strides, 1)
    data = cupy.ndarray(sizes, np.uint8, array.data, strides).get()
    return np.ascontiguousarray(data).view(array.dtype).reshape(array.shape)


def laid_out(layout):
    """A layout of ``layouts``, on the GPU."""
    return lambda array: to_device(layout(array))
