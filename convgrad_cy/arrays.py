"""The array library of a call: NumPy or CuPy.

It is chosen by the type of a call's first array, and no library is imported here that the caller has not imported.
"""

import sys
from collections.abc import Callable
from functools import reduce
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from ._repeat import new_array

#: Steps that the exact search for overlap may take; what it cannot decide in them counts as overlap.
_OVERLAP_WORK = 10_000

#: DLPack's numbers of memory on a CUDA device: its own, and managed.
_DLPACK_CUDA = (2, 13)


class Library(NamedTuple):
    """What validation needs of an array library."""

    name: str  # of its arrays
    algorithms: tuple  # that its kernels have
    plain: Callable  # (name, array, like) -> the array without its subclass; TypeError if it is not this library's
    empty: Callable  # (shape, dtype, like) -> a new array, C-contiguous, on the device of another one
    zeros: Callable  # (shape, dtype, like) -> the same, of zeros
    copy: Callable  # (array) -> a new array, C-contiguous
    check_device: Callable  # (name, array, like, first) -> TypeError if the array is on another device than the first
    seen: Callable  # (array) -> a NumPy array of its shape, strides and address, whose memory must not be touched


def library_of(name, array):
    """The library of a call's first array."""
    if is_cupy_array(array):
        return CUPY
    NUMPY.plain(name, array, None)
    return NUMPY


def is_cupy_array(array):
    """Whether this is CuPy's, without importing CuPy."""
    kind = getattr(sys.modules.get("cupy"), "ndarray", None)  # there is none while another thread imports it
    return kind is not None and isinstance(array, kind)


def zeros(shape, like):
    """A new array of zeros, of the library, dtype and device of another one."""
    return (CUPY if is_cupy_array(like) else NUMPY).zeros(shape, like.dtype, like)


def is_addressable(array):
    """Whether every element's address is a multiple of the itemsize away from the first, and aligned."""
    flags = array.flags
    if not flags.aligned:
        return False
    if flags.c_contiguous:
        return True
    itemsize = array.itemsize
    return not any(stride % itemsize for stride, size in zip(array.strides, array.shape, strict=True) if size > 1)


def _is_on_cuda(array):
    """Whether something is an array, of any library, in the memory of a CUDA device."""
    try:
        if hasattr(type(array), "__dlpack_device__"):
            return array.__dlpack_device__()[0] in _DLPACK_CUDA
        return hasattr(type(array), "__cuda_array_interface__")
    except Exception:  # whatever it is, it does not say so
        return False


def _refuse(library, name, array, like):
    """Say what is wrong with an array that is none of this library; ``like`` is the name of the call's first array."""
    kind = type(array)
    if not _is_on_cuda(array) and not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be a {library}, not {kind.__name__}")
    kind = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
    if like is None:
        if "cupy" not in sys.modules and find_spec("cupy") is None:
            raise ImportError(f"{name} is on a GPU, a {kind}, which takes CuPy: pip install 'convgrad_cy[cuda13]'")
        raise TypeError(f"{name} must be a cupy.ndarray, not a {kind}: cupy.from_dlpack makes it one")
    raise TypeError(f"{name} must be a {library} like {like}, not a {kind}")


def _plain(name, array, like):
    if type(array) is np.ndarray:
        return array
    if not isinstance(array, np.ndarray):
        _refuse("numpy.ndarray", name, array, like)
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a numpy.ndarray without a mask, not {type(array).__name__}")
    return array.view(np.ndarray)


def _zeros(shape, dtype, like=None):
    return np.zeros(shape, dtype)


def _copy(array):
    return np.array(array, order="C")


def _check_device(name, array, like, first):
    """All of NumPy's memory is on one device."""


def _seen(array):
    return array


NUMPY = Library("numpy.ndarray", ("auto", "direct", "winograd"), _plain, new_array, _zeros, _copy, _check_device, _seen)


def _cupy():
    """CuPy, which the caller of a function with CuPy arrays has imported."""
    return sys.modules["cupy"]


def _cupy_plain(name, array, like):
    kind = _cupy().ndarray
    if type(array) is kind:
        return array
    if not isinstance(array, kind):
        _refuse("cupy.ndarray", name, array, like)
    return kind(array.shape, array.dtype, array.data, array.strides)


def _cupy_empty(shape, dtype, like):
    cupy, device = _cupy(), like.data.device_id
    if cupy.cuda.device.get_device_id() == device:  # changing it takes as long as the rest
        return cupy.empty(shape, dtype)
    with cupy.cuda.Device(device):
        return cupy.empty(shape, dtype)


def _cupy_zeros(shape, dtype, like):
    cupy = _cupy()
    with cupy.cuda.Device(like.data.device_id):
        return cupy.zeros(shape, dtype)


def _cupy_copy(array):
    cupy = _cupy()
    # As bytes: an address that is no multiple of the itemsize is an error for any kernel that reads whole elements.
    sizes, strides = (*array.shape, array.itemsize), (*array.strides, 1)
    with cupy.cuda.Device(array.data.device_id):
        data = cupy.ndarray(sizes, np.uint8, array.data, strides).copy()
        return data.view(array.dtype).reshape(array.shape)


def _cupy_check_device(name, array, like, first):
    there, here = array.data.device_id, first.data.device_id
    if there != here:
        raise TypeError(f"{name} must be on the device of {like}, cuda:{here}, not on cuda:{there}")


class _Address:
    """What NumPy makes an array of, without looking at the memory."""

    def __init__(self, array):
        self.__array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "strides": array.strides,
            "typestr": f"|V{array.itemsize}",
            "data": (array.data.ptr, False),
        }


def _cupy_seen(array):
    return np.asarray(_Address(array)).view(array.dtype)


CUPY = Library(
    "cupy.ndarray",
    ("auto", "direct"),
    _cupy_plain,
    _cupy_empty,
    _cupy_zeros,
    _cupy_copy,
    _cupy_check_device,
    _cupy_seen,
)


def overlap(one, other):
    """Whether two NumPy arrays share an element in memory."""
    if not np.may_share_memory(one, other):
        return False
    try:
        return np.shares_memory(one, other, max_work=_OVERLAP_WORK)
    except RuntimeError:  # TooHardError, which has no public name before NumPy 1.25
        return True


def overlaps_itself(array):
    """Whether two elements of a NumPy array share memory."""
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
