"""NumPy's arrays."""

import numpy as np

from .._repeat import check_bound, new_array
from .library import Library, refuse


def _plain(name, array, like):
    if type(array) is np.ndarray:
        return array
    if not isinstance(array, np.ndarray):
        refuse("numpy.ndarray", name, array, like)
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a numpy.ndarray without a mask, not {type(array).__name__}")
    return np.ndarray.view(array, np.ndarray)  # not the subclass's own method, which might return another shape


def _zeros(shape, dtype, like=None):
    check_bound(shape, dtype)
    return np.zeros(shape, dtype.newbyteorder("="))


def _copy(array):
    return np.array(array, array.dtype.newbyteorder("="), order="C")


def _check_device(name, array, like, first):
    """Accept every array: all memory of NumPy is on one device."""


def _seen(array):
    return array


NUMPY = Library("numpy.ndarray", ("auto", "direct", "winograd"), _plain, new_array, _zeros, _copy, _check_device, _seen)
