"""Arrays and keywords of the six functions -> a ``Call``. The core's errors are raised here and in ``geometry``.

Each function describes one convolution ``y = conv(x, w)`` and asks for one of its three tensors from the other two.
From here down ``x``, ``w`` and ``y`` are those of that convolution: a transposed convolution is its data gradient,
so its own input stands in the place of ``y`` and its own output in the place of ``x``. A refused call has allocated
no result and has not touched ``out``.
"""

from typing import NamedTuple

import numpy as np

from . import dtypes, geometry
from .arrays import is_addressable, library_of
from .problem import ConvProblem


class Call(NamedTuple):
    """One checked call: ``x`` and ``y`` as (batch, group, channel, D, H, W), ``w`` as (group, out, in, D, H, W)."""

    problem: ConvProblem
    dtype: dtypes.DType
    x: np.ndarray
    w: np.ndarray
    y: np.ndarray
    algorithm: str
    result: np.ndarray

    @property
    def operands(self):
        """What a backend takes."""
        return self[:6]


def conv(x, w, options):
    return _call(geometry.conv, "x", x, "w", w, (), options)


def conv_transpose_backward_data(dy, w, output_padding, options):
    return _call(geometry.conv_transpose_backward_data, "dy", dy, "w", w, (output_padding,), options)


def conv_backward_data(dy, w, x_shape, options):
    return _call(geometry.conv_backward_data, "dy", dy, "w", w, (x_shape,), options)


def conv_backward_filter(x, dy, w_shape, options):
    return _call(geometry.conv_backward_filter, "x", x, "dy", dy, (w_shape,), options)


def conv_transpose_backward_filter(x, dy, w_shape, options):
    return _call(geometry.conv_transpose_backward_filter, "x", x, "dy", dy, (w_shape,), options)


def conv_transpose(x, w, output_padding, output_shape, options):
    return _call(geometry.conv_transpose, "x", x, "w", w, (output_padding, output_shape), options)


#: Geometries of accepted calls, by all that they depend on; emptied when it has grown to so many.
_GEOMETRIES = {}
_MOST_GEOMETRIES = 2048


def _plain_values(values):
    """The values as a tuple that is equal to another only if all is of the same types; None if some are unusual.

    (True is equal to 1, but is refused in its place.)
    """
    plain = []
    for value in values:
        kind = type(value)
        if kind is tuple or kind is list:
            value = _plain_values(value)
            if value is None:
                return None
        elif kind is not int and kind is not str and value is not None:
            return None
        plain.append(value)
    return tuple(plain)


def _call(check, first_name, first, second_name, second, asked, options):
    """Find or work out the geometry of a call, take or make the result's array, and view all three arrays."""
    library = library_of(first_name, first)
    first, second = library.plain(first_name, first), library.plain(second_name, second)
    key = _plain_values((*options[:-1], *asked))
    if key is not None:
        key = (check, first.dtype, second.dtype, first.shape, second.shape, key)
    found = _GEOMETRIES.get(key)
    if found is None:
        common = geometry.common(first_name, first, second_name, second, options)
        found = check(common, (first_name, first.shape), (second_name, second.shape), *asked)
        if key is not None:
            if len(_GEOMETRIES) >= _MOST_GEOMETRIES:
                _GEOMETRIES.clear()
            _GEOMETRIES[key] = found
    inputs = {first_name: first, second_name: second}
    if options.out is None:
        result = out = library.empty(found.shape, first.dtype)
    else:
        result = options.out
        out = _checked_out(library, result, found.shape, inputs)
    views = [_view(library, inputs.get(name, out), *view) for name, view in zip(found.parts, found.views, strict=True)]
    return Call(found.problem, found.dtype, *views, found.algorithm, result)


def _checked_out(library, out, shape, inputs):
    """``out`` if it is fit to be written."""
    plain = library.plain("out", out)
    first_name, first = next(iter(inputs.items()))
    if plain.dtype != first.dtype:
        raise TypeError(f"out must have the dtype of {first_name}, {first.dtype}, not {plain.dtype}")
    if plain.shape != shape:
        raise ValueError(f"out must have the shape {shape}, not {plain.shape}")
    if not plain.flags.writeable:
        raise ValueError("out must be writeable, not a read-only array")
    if not is_addressable(plain):
        raise ValueError(f"out must be aligned to its itemsize {plain.itemsize}, not have the strides {plain.strides}")
    if library.overlaps_itself(plain):
        raise ValueError(f"out must have one place for each element, not the strides {plain.strides}")
    for name, array in inputs.items():
        if library.overlap(plain, array):
            raise ValueError(f"out must not overlap {name} in memory")
    return plain


def _view(library, array, order, shape):
    """The six-dimensional view: the channel axis split by groups, the missing spatial axes of extent one."""
    if not is_addressable(array):
        array = library.copy(array)
    return array.transpose(order).reshape(shape)
