"""Shapes of the frameworks: errors have the caller's names, and sizes are rounded toward zero."""

import numpy as np

from ..checks.shapes import Axis, Tensor
from ..problem import conv_size, dilated_size


def whole_numbers(name, value):
    """The shape that a caller asks for as a tuple of Python integers. It may be a sequence or a 1-D array."""
    if isinstance(value, np.ndarray):
        if value.ndim != 1:
            raise ValueError(f"{name} must have one axis, not {value.ndim}")
        if value.dtype.kind not in "iu":
            raise TypeError(f"{name} must have an integer dtype, not {value.dtype}")
        return tuple(value.tolist())
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{name} must be a tuple, a list or an array of integers, not {type(value).__name__}")
    for i, size in enumerate(value):
        if type(size) is not int and (isinstance(size, bool) or not isinstance(size, (int, np.integer))):
            raise TypeError(f"{name}[{i}] must be an integer, not {size!r}")
    return tuple([int(size) for size in value])


def named(name, sizes, order, least):
    """A `Tensor` with these sizes, if each is at least ``least``."""
    if len(sizes) != len(order):
        raise ValueError(f"{name} must have {len(order)} entries, not {sizes}")
    tensor = Tensor(name, tuple([sizes[i] for i in order]), order)
    for i, size in enumerate(tensor.sizes):
        if size < least:
            raise ValueError(f"{tensor.entry(i)} must be at least {least}, not {size}")
    return tensor


def rounded_toward_zero(size, kernel, stride, dilation, padding):
    """The padding with which the core has as many outputs as frameworks have with ``padding``.

    Frameworks round the division toward zero, as C does. Both agree where the kernel fits. If the kernel is too large
    by less than a stride, frameworks have one output, and its taps beyond the input do not exist.
    """
    begin, end = padding
    fits = dilated_size(kernel, dilation) <= size + begin + end
    return (begin, end) if fits else (begin, end + stride - 1)


def checked_padding(axis, x, y, i):
    """The core's (begin, end) padding of spatial axis ``i``, if the sizes of x and y agree."""
    size, actual = x.sizes[2 + i], y.sizes[2 + i]
    kernel, stride, dilation, padding = axis.geometry(size)
    padding = rounded_toward_zero(size, kernel, stride, dilation, padding)
    expected = conv_size(size, kernel, stride, dilation, padding)
    if expected < 0:
        raise ValueError(f"{x.entry(2 + i)} = {size} is too small: a convolution of it has no output ({axis})")
    if actual != expected:
        source = f"the extent of a convolution of {x.entry(2 + i)} = {size} ({axis})"
        raise ValueError(f"{y.entry(2 + i)} must be {expected}, {source}, not {actual}")
    return padding


def checked_paddings(stride, dilation, padding, x, w, y):
    """`checked_padding` of all spatial axes. ``padding`` has a pair for each of them, or is a name of the core."""
    kernel = w.sizes[2:]
    paddings = (padding,) * len(kernel) if isinstance(padding, str) else padding
    axes = zip(kernel, stride, dilation, paddings, strict=True)
    return [checked_padding(Axis(*axis), x, y, i) for i, axis in enumerate(axes)]
