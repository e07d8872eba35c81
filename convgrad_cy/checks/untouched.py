"""Arrays with the shape, dtype and strides of others, for plans. No element is read, written or copied."""

import numpy as np

from .. import dtypes
from ..arrays import is_addressable
from .keywords import array_shape


def is_array(given):
    """Whether a value is an array of any library, not a shape. An array of one axis counts as a shape."""
    return len(array_shape(given) or ()) > 1


def stored(dtype):
    """NumPy's dtype, in the machine's byte order, for a dtype of any library or for its name."""
    name = str(dtype).removeprefix("torch.")
    if name == "bfloat16":
        return dtypes.BFLOAT16_BITS
    return np.dtype(dtype if name == str(dtype) else name).newbyteorder("=")


def _strides(array):
    """The strides of an array in elements, or None where kernels read a contiguous copy."""
    try:
        if callable(getattr(array, "stride", None)):  # PyTorch
            return tuple(array.stride())
        if isinstance(array, np.ndarray) and not is_addressable(array):
            return None
        return tuple([step // array.itemsize for step in array.strides])
    except (AttributeError, TypeError, RuntimeError):  # JAX, or a layout without strides
        return None


def untouched(name, given, dtype):
    """A new array with NumPy's ``dtype`` and the shape of ``given``, which is a shape or an array.

    It has the strides of an array of NumPy, CuPy or PyTorch; otherwise it is contiguous. Errors call it ``name``.
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
