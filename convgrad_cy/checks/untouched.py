"""Arrays with the shape, the type and the strides of others, for plans: no element is read, written or copied."""

import numpy as np

from .. import dtypes
from ..arrays import is_addressable
from .keywords import array_shape


def is_array(given):
    """Whether something is an array of any library, not a shape. An array of one axis is a shape."""
    return len(array_shape(given) or ()) > 1


def stored(dtype):
    """NumPy's dtype, in the machine's byte order, of a dtype of any library or the name of one."""
    name = str(dtype).removeprefix("torch.")
    if name == "bfloat16":
        return dtypes.BFLOAT16_BITS
    return np.dtype(dtype if name == str(dtype) else name).newbyteorder("=")


def _strides(array):
    """The strides in elements of an array that kernels can read; None where they read a contiguous copy."""
    try:
        if callable(getattr(array, "stride", None)):  # of PyTorch
            return tuple(array.stride())
        if isinstance(array, np.ndarray) and not is_addressable(array):
            return None
        return tuple([step // array.itemsize for step in array.strides])
    except (AttributeError, TypeError, RuntimeError):  # of JAX, or of a layout that has no strides
        return None


def untouched(name, given, dtype):
    """An array called ``name``, of a shape or like an array, with elements of NumPy's ``dtype``.

    An array of NumPy, CuPy or PyTorch gives its strides; otherwise the array is contiguous.
    """
    if not is_array(given):
        try:
            return np.empty(tuple(given), dtype)
        except TypeError as error:
            message = f"shapes must have the shape of {name} as a sequence of integers, not {given!r}"
            raise TypeError(message) from error
    shape, strides = array_shape(given), _strides(given)
    if strides is None or 0 in shape:
        return np.empty(shape, dtype)
    steps = [step * (size - 1) for step, size in zip(strides, shape, strict=True)]
    before = -sum(step for step in steps if step < 0)
    memory = np.empty(before + sum(step for step in steps if step > 0) + 1, dtype)
    size = dtype.itemsize
    return np.ndarray(shape, dtype, memory, before * size, [step * size for step in strides])
