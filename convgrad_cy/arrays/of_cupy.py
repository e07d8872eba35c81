"""CuPy's arrays."""

import sys

import numpy as np

from .library import Library, refuse, refuse_rocm


def _cupy():
    """The module CuPy, which a caller with CuPy arrays has imported."""
    return sys.modules["cupy"]


def _plain(name, array, like):
    cupy = _cupy()
    if cupy.cuda.runtime.is_hip:
        refuse_rocm(name, "CuPy")
    kind = cupy.ndarray
    if type(array) is kind:
        return array
    if not isinstance(array, kind):
        refuse("cupy.ndarray", name, array, like)
    return kind(array.shape, array.dtype, array.data, array.strides)


def _empty(shape, dtype, like):
    cupy, device = _cupy(), like.data.device_id
    if cupy.cuda.device.get_device_id() == device:  # changing the device takes as long as the rest
        return cupy.empty(shape, dtype)
    with cupy.cuda.Device(device):
        return cupy.empty(shape, dtype)


def _zeros(shape, dtype, like):
    cupy = _cupy()
    with cupy.cuda.Device(like.data.device_id):
        return cupy.zeros(shape, dtype)


def _copy(array):
    cupy = _cupy()
    # Copy bytes: a kernel that reads whole elements fails at an address that is no multiple of the itemsize.
    sizes, strides = (*array.shape, array.itemsize), (*array.strides, 1)
    with cupy.cuda.Device(array.data.device_id):
        data = cupy.ndarray(sizes, np.uint8, array.data, strides).copy()
        return data.view(array.dtype).reshape(array.shape)


def _check_device(name, array, like, first):
    there, here = array.data.device_id, first.data.device_id
    if there != here:
        raise TypeError(f"{name} must be on the device of {like}, cuda:{here}, not on cuda:{there}")


class _Address:
    """An object from which NumPy makes an array without reading the memory."""

    def __init__(self, array):
        self.__array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "strides": array.strides,
            "typestr": f"|V{array.itemsize}",
            "data": (array.data.ptr, False),
        }


def _seen(array):
    return np.asarray(_Address(array)).view(array.dtype)


CUPY = Library("cupy.ndarray", ("auto", "direct"), _plain, _empty, _zeros, _copy, _check_device, _seen)
