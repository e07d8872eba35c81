"""The functions on CuPy arrays: exact integers, in each type and both formats."""

import numpy as np

from ..output import one_line
from .cases import CASES
from .functions import FUNCTIONS
from .kernels import compare_integers
from .storage import STORAGES
from .tally import Tally

#: Few layers: the first call of each kernel compiles it.
LAYERS = ("kernel_3x3", "stride_and_dilation", "depthwise_stride_2")


def _dtype(storage):
    """The type of CuPy's arrays, or None if there is none."""
    if storage.name != "bfloat16":
        return storage.dtype
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        return None
    return np.dtype(bfloat16)


def _converters(cupy, dtype, storage):
    """Functions from NumPy's arrays to CuPy's and back. They copy bytes, because CuPy may not know the type."""

    def to_device(host):
        data = cupy.array(np.ascontiguousarray(host).view(np.uint8).reshape(-1))
        return cupy.ndarray(host.shape, dtype, data.data)

    def to_host(array):
        data = cupy.ndarray((*array.shape, array.itemsize), np.uint8, array.data, (*array.strides, 1)).get()
        return np.ascontiguousarray(data).view(storage.dtype).reshape(array.shape)

    return to_device, to_host


def _of_type(cupy, storage):
    tally, dtype = Tally("GPU", storage.name), _dtype(storage)
    if dtype is None:
        return tally.record(note="not checked: ml_dtypes is not installed")
    to_device, to_host = _converters(cupy, dtype, storage)
    for function in FUNCTIONS:
        for case in CASES:
            if case.problem.name in LAYERS:
                try:
                    compare_integers(tally, case, function, storage, to_device, to_host)
                except Exception as error:  # every exception of a legal call is a failure
                    tally.check(False, f"{function.name}, {case.problem}: {type(error).__name__}: {one_line(error)}")
    return tally.record()


def records():
    try:
        import cupy
    except ImportError:
        yield Tally("GPU", "CuPy").record(note="not installed")
        return
    if not cupy.is_available():
        yield Tally("GPU", "CuPy").record(note=f"{cupy.__version__}, not checked: it finds no GPU")
        return
    for storage in STORAGES.values():
        yield _of_type(cupy, storage)
