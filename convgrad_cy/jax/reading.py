"""Read ``lax.conv_general_dilated`` as one of this package's functions, on views of its operands.

With ``x`` = lhs as (batch, feature, position p), ``w`` = rhs as (output feature, input feature, tap t) and ``y`` = out
as (batch, output feature, position q), written for one axis, JAX defines::

    y[n, o, q] = sum over i, t of  xd[n, i, q*S + t*D - lo] * w[o, i, t],   xd[n, i, p*L] = x[n, i, p]

with S = window_strides, L = lhs_dilation, D = rhs_dilation and the padding (lo, hi). Four cases are exact:

- L = 1: `conv` of stride S.
- L = 1, or batch groups: `conv_backward_filter`, in which positions are taps and taps are positions. Here x has the
  features for its batch, w is dy, the stride is D and the dilation is S.
- S = 1: `conv_backward_data` of stride L, with the filter reversed and its two channel axes exchanged.
- S = D = 1: `conv_backward_filter` of stride L in which w is the input, x is dy and y is the filter, reversed.

Where two of them apply, the numbers of taps and positions decide which is faster.
"""

from math import prod
from typing import NamedTuple

import numpy as np

from .._repeat import array_at
from ..checks.functions import CONV, CONV_BACKWARD_DATA, CONV_BACKWARD_FILTER, Function

LHS, RHS, OUT = range(3)

#: Addresses of the operands while a call is planned. They do not overlap, are aligned like XLA's, and are never read.
_ADDRESSES = (1 << 60, 2 << 60, 3 << 60)


class Declined(Exception):
    """JAX's own rule must lower the convolution. The message is the reason."""


class Reading(NamedTuple):
    """A convolution as one of this package's functions.

    ``views`` are its two arrays and its result; ``operands`` has LHS, RHS or OUT for each view.
    With ``filter_groups`` above one, RHS is a copy of the operand, as ``order_of_filter`` describes. With
    ``result_groups`` above one, the result must be reordered as ``order_of_result`` describes.
    """

    function: Function
    views: tuple
    operands: tuple
    asked: tuple
    keywords: tuple
    filter_groups: int = 1
    result_groups: int = 1

    def offsets(self):
        """Bytes between the beginning of each view's operand and its first element."""
        return tuple(
            view.ctypes.data - _ADDRESSES[operand] for view, operand in zip(self.views, self.operands, strict=True)
        )


class _Axis(NamedTuple):
    """The arguments of one spatial axis, and the sizes of x, w and y on it."""

    x: int
    w: int
    y: int
    stride: int
    lo: int
    hi: int
    lhs_dilation: int
    rhs_dilation: int


def _axis(x, w, y, stride, padding, lhs_dilation, rhs_dilation):
    # A dilation has no effect on one element. Older releases of JAX have NumPy integers among these numbers.
    dilations = lhs_dilation if x > 1 else 1, rhs_dilation if w > 1 else 1
    return _Axis(*map(int, (x, w, y, stride, *padding, *dilations)))


def _contiguous(operand, shape, dtype):
    """An array for an operand in row-major order."""
    strides = tuple(dtype.itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return array_at(_ADDRESSES[operand], tuple(shape), strides, dtype)


def _reversed(view):
    """The view with all spatial axes reversed."""
    return view[(slice(None), slice(None), *[slice(None, None, -1)] * (view.ndim - 2))]


def _part(view, axis, begin, end):
    """The view of elements ``begin`` to ``end`` of a spatial axis."""
    if begin >= end:
        raise Declined("padding that leaves no element")
    return view[(*[slice(None)] * (2 + axis), slice(begin, end))]


def _keywords(stride, padding, dilation, groups, algorithm):
    return tuple(stride), tuple(padding), tuple(dilation), groups, "NCX", "OIX", algorithm, "high"


def read(shapes, dtype, algorithm, params):
    """The `Reading` of a convolution of operands with these shapes (of lhs, rhs and out), or `Declined`.

    ``params`` are the parameters of JAX's primitive.
    """
    x, w, y = (
        _contiguous(operand, shape, dtype).transpose(order)
        for operand, shape, order in zip((LHS, RHS, OUT), shapes, params["dimension_numbers"], strict=True)
    )
    if not 1 <= x.ndim - 2 <= 3:
        raise Declined(f"{x.ndim - 2} spatial axes")
    if 0 in (x.size, w.size, y.size):
        raise Declined("an operand without elements")
    names = "window_strides", "padding", "lhs_dilation", "rhs_dilation"
    columns = zip(x.shape[2:], w.shape[2:], y.shape[2:], *(params[name] for name in names), strict=True)
    axes = [_axis(*column) for column in columns]
    groups, batch_groups = params["feature_group_count"], params["batch_group_count"]
    more_taps = groups == 1 and prod(w.shape[2:]) > prod(y.shape[2:])
    if all(axis.lhs_dilation == 1 for axis in axes):
        if batch_groups > 1 or more_taps:
            return _filter_gradient(x, w, y, axes, batch_groups, algorithm)
        return _forward(x, w, y, axes, groups, algorithm)
    if any(axis.stride > 1 and axis.y > 1 for axis in axes):
        raise Declined("window_strides and lhs_dilation above 1")
    undilated = all(axis.rhs_dilation == 1 for axis in axes)
    if batch_groups > 1 or (more_taps and undilated):
        if not undilated:
            raise Declined("batch groups with lhs_dilation and rhs_dilation above 1")
        return _transposed_filter_gradient(x, w, y, axes, batch_groups, algorithm)
    return _data_gradient(x, w, y, axes, groups, algorithm)


def _forward(x, w, y, axes, groups, algorithm):
    padding = []
    for number, axis in enumerate(axes):
        x = _part(x, number, max(-axis.lo, 0), axis.x - max(-axis.hi, 0))
        padding.append((max(axis.lo, 0), max(axis.hi, 0)))
    columns = [axis.stride for axis in axes], padding, [axis.rhs_dilation for axis in axes]
    return Reading(CONV, (x, w, y), (LHS, RHS, OUT), (), _keywords(*columns, groups, algorithm))


def _filter_gradient(x, w, y, axes, batch_groups, algorithm):
    padding = []
    for number, axis in enumerate(axes):
        # Positions that no product reaches are cut off, so that w has the size of a convolution's output.
        hi = (axis.w - 1) * axis.rhs_dilation + (axis.y - 1) * axis.stride + 1 - axis.x - axis.lo
        x = _part(x, number, max(-axis.lo, 0), axis.x + min(hi, 0))
        padding.append((max(axis.lo, 0), max(hi, 0)))
    x, dy, dw = x.swapaxes(0, 1), w.swapaxes(0, 1), y.swapaxes(0, 1)
    columns = [axis.rhs_dilation for axis in axes], padding, [axis.stride for axis in axes]
    keywords = _keywords(*columns, batch_groups, algorithm)
    return Reading(CONV_BACKWARD_FILTER, (x, dy, dw), (LHS, RHS, OUT), (dw.shape,), keywords)


def _pads_of_gradient(axis, begin, size):
    """Padding of a convolution with stride ``axis.lhs_dilation`` that gives ``axis.x`` positions.

    ``begin`` is the padding before. ``size`` is the input's extent minus the dilated filter's extent.
    """
    end = (axis.x - 1) * axis.lhs_dilation - size - begin
    if begin < 0 or end + axis.lhs_dilation <= 0:
        raise Declined("padding of lhs beyond the filter")
    return begin, max(end, 0)


def _data_gradient(x, w, y, axes, groups, algorithm):
    padding = []
    for axis in axes:
        reach = (axis.w - 1) * axis.rhs_dilation
        padding.append(_pads_of_gradient(axis, reach - axis.lo, axis.y - reach - 1))
    outputs, inputs = w.shape[:2]
    copied = 1
    if groups == 1:
        w = w.swapaxes(0, 1)
    elif inputs == 1:  # depthwise: an axis is split, which takes no copy
        w = w[:, 0].reshape(groups, outputs // groups, *w.shape[2:])
    else:
        w, copied = _contiguous(RHS, (groups * inputs, outputs // groups, *w.shape[2:]), w.dtype), groups
    columns = [axis.lhs_dilation for axis in axes], padding, [axis.rhs_dilation for axis in axes]
    keywords = _keywords(*columns, groups, algorithm)
    return Reading(CONV_BACKWARD_DATA, (x, _reversed(w), y), (LHS, RHS, OUT), (y.shape,), keywords, copied)


def _transposed_filter_gradient(x, w, y, axes, batch_groups, algorithm):
    padding = []
    for number, axis in enumerate(axes):
        begin = axis.y - 1 - axis.lo
        end = (axis.x - 1) * axis.lhs_dilation + axis.y - axis.w - begin
        # Taps that no product reaches are cut off.
        w = _part(w, number, max(-begin, 0), axis.w + min(end, 0))
        padding.append((max(begin, 0), max(end, 0)))
    if batch_groups > 1:
        batch, outputs = y.shape[:2]
        y = _contiguous(OUT, (batch_groups * batch, outputs // batch_groups, *y.shape[2:]), y.dtype)
    dw = _reversed(y)
    keywords = _keywords([axis.lhs_dilation for axis in axes], padding, [1] * len(axes), batch_groups, algorithm)
    views = w.swapaxes(0, 1), x.swapaxes(0, 1), dw
    return Reading(CONV_BACKWARD_FILTER, views, (RHS, LHS, OUT), (dw.shape,), keywords, result_groups=batch_groups)


def order_of_filter(shape, order, groups):
    """The copy of rhs for a data gradient with groups, as arguments: transpose, reshape, transpose, reshape.

    It goes from (groups · outputs, inputs, taps) to (groups · inputs, outputs, taps); ``order`` is rhs_spec.
    """
    outputs, inputs, *taps = (shape[axis] for axis in order)
    return (
        tuple(order),
        (groups, outputs // groups, inputs, *taps),
        (0, 2, 1, *range(3, 3 + len(taps))),
        (groups * inputs, outputs // groups, *taps),
    )


def order_of_result(shape, order, groups):
    """The way from the handler's result to out, as arguments: reshape, transpose, reshape, transpose.

    It goes from (groups · batch, outputs, positions) to (batch, groups · outputs, positions) in the order out_spec.
    """
    batch, outputs, *positions = (shape[axis] for axis in order)
    return (
        (groups, batch, outputs // groups, *positions),
        (1, 0, 2, *range(3, 3 + len(positions))),
        (batch, outputs, *positions),
        tuple(int(axis) for axis in np.argsort(order)),
    )
