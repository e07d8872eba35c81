"""Arrays and keywords of the six functions -> a ``Call``. Every error of the core is raised here.

Each function describes one convolution ``y = conv(x, w)`` and asks for one of its three tensors from the other two.
From here down ``x``, ``w`` and ``y`` are those of that convolution: a transposed convolution is its data gradient,
so its own input stands in the place of ``y`` and its own output in the place of ``x``. A refused call has allocated
no result and has not touched ``out``.
"""

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from . import dtypes
from .arrays import is_addressable, library_of
from .keywords import ALGORITHMS, DATA_ORDERS, FILTER_ORDERS, choice, entries, integer, padding_of, per_axis, shown
from .problem import INDEX_LIMIT, TAP_LIMIT, ConvProblem, dilated_size, lift
from .shapes import (
    Axis,
    Tensor,
    check_channels,
    check_conv_size,
    check_conv_transpose_size,
    conv_extent,
    conv_transpose_extent,
)

#: Looking a dtype up costs a microsecond, for its name is made anew each time.
_table_row = lru_cache(maxsize=64)(dtypes.lookup)


class Call(NamedTuple):
    """One checked call: ``x`` and ``y`` as (batch, group, channel, D, H, W), ``w`` as (group, out, in, D, H, W)."""

    problem: ConvProblem
    dtype: dtypes.DType
    x: np.ndarray
    w: np.ndarray
    y: np.ndarray
    result: np.ndarray

    @property
    def operands(self):
        """What a backend takes."""
        return self[:5]


def conv(x, w, options):
    common, x, w = _common("x", x, "w", w, options)
    return _fprop(common, common.data("x", x), common.filter("w", w), 0)


def conv_transpose_backward_data(dy, w, output_padding, options):
    common, dy, w = _common("dy", dy, "w", w, options)
    return _fprop(common, common.data("dy", dy), common.filter("w", w), output_padding)


def conv_backward_data(dy, w, x_shape, options):
    common, dy, w = _common("dy", dy, "w", w, options)
    x = common.asked("x_shape", x_shape, common.data_order)
    return _related(common, x, common.filter("w", w), common.data("dy", dy), check_conv_size)


def conv_backward_filter(x, dy, w_shape, options):
    common, x, dy = _common("x", x, "dy", dy, options)
    w = common.asked("w_shape", w_shape, common.filter_order)
    return _related(common, common.data("x", x), w, common.data("dy", dy), check_conv_size)


def conv_transpose_backward_filter(x, dy, w_shape, options):
    common, x, dy = _common("x", x, "dy", dy, options)
    w = common.asked("w_shape", w_shape, common.filter_order)
    return _related(common, common.data("dy", dy), w, common.data("x", x), check_conv_transpose_size)


def conv_transpose(x, w, output_padding, output_shape, options):
    common, x, w = _common("x", x, "w", w, options)
    y, w = common.data("x", x), common.filter("w", w)
    extra = common.output_padding(output_padding)
    if output_shape is not None:
        if any(extra):
            raise ValueError(f"output_padding must be 0 where output_shape is given, not {shown(output_padding)}")
        x = common.asked("output_shape", output_shape, common.data_order)
        x.check_not_empty()
        return _related(common, x, w, y, check_conv_transpose_size)
    axes = common.axes(w)
    check_channels(common.groups, None, w, y)
    spatial = [conv_transpose_extent(axis, y, i, extra[i]) for i, axis in enumerate(axes)]
    x = Tensor("result", (y.sizes[0], common.groups * w.sizes[1], *spatial), common.data_order)
    return _call(common, axes, x, w, y)


def _fprop(common, x, w, output_padding):
    """The call whose result is y."""
    extra = common.output_padding(output_padding)
    axes = common.axes(w)
    check_channels(common.groups, x, w, None)
    spatial = [conv_extent(axis, x, i, extra[i]) for i, axis in enumerate(axes)]
    return _call(common, axes, x, w, Tensor("result", (x.sizes[0], w.sizes[0], *spatial), common.data_order))


def _related(common, x, w, y, check_size):
    """The call for which the shapes of all three tensors are given."""
    axes = common.axes(w)
    check_channels(common.groups, x, w, y)
    for i, axis in enumerate(axes):
        check_size(axis, x, y, i)
    return _call(common, axes, x, w, y)


def _permuted(sizes, order):
    return tuple([sizes[i] for i in order])


class _Common(NamedTuple):
    """The checked keywords, the dtype and the library of one call."""

    library: Any
    dtype: dtypes.DType
    rank: int
    stride: tuple
    dilation: tuple
    padding: Any
    groups: int
    data_order: tuple
    filter_order: tuple
    out: Any

    def data(self, name, array):
        return Tensor(name, _permuted(array.shape, self.data_order), self.data_order, array)

    def filter(self, name, array):
        return Tensor(name, _permuted(array.shape, self.filter_order), self.filter_order, array)

    def asked(self, name, shape, order):
        """The tensor of which the caller gives the shape."""
        sizes = entries(shape)
        if sizes is None:
            raise TypeError(f"{name} must be a sequence of integers, not {shown(shape)}")
        if len(sizes) != len(order):
            raise ValueError(f"{name} must have {len(order)} entries, as the arrays have axes, not {shown(shape)}")
        sizes = [integer(size, f"{name}[{i}]", 0) for i, size in enumerate(sizes)]
        return Tensor(name, _permuted(sizes, order), order)

    def axes(self, w):
        """The spatial axes; here the kernel must be one."""
        w.check_not_empty()
        if prod(w.sizes[2:]) >= TAP_LIMIT:
            raise ValueError(f"{w.name} must have fewer than {TAP_LIMIT} taps, not {' x '.join(map(str, w.sizes[2:]))}")
        padding = self.padding if type(self.padding) is tuple else (self.padding,) * self.rank
        axes = [Axis(*axis) for axis in zip(w.sizes[2:], self.stride, self.dilation, padding, strict=True)]
        for i, axis in enumerate(axes):
            if dilated_size(axis.kernel, axis.dilation) >= INDEX_LIMIT:
                taps = f"{w.entry(2 + i)} = {axis.kernel} taps"
                raise ValueError(f"dilation must keep the extent of {taps} less than 2**62, not be {axis.dilation}")
        return axes

    def output_padding(self, value):
        extra = per_axis(value, "output_padding", self.rank, 0)
        if any(extra) and type(self.padding) is not tuple:
            raise ValueError(f'output_padding must be 0 under "same" padding, not {shown(value)}')
        for size, stride, dilation in zip(extra, self.stride, self.dilation, strict=True):
            if size and size >= max(stride, dilation):
                limit = f"max(stride, dilation) = {max(stride, dilation)}"
                raise ValueError(f"output_padding must be less than {limit}, not {shown(value)}")
        return extra


def _common(first_name, first, second_name, second, options):
    """Check the two arrays against each other, and the keywords against their rank."""
    library = library_of(first_name, first)
    first, second = library.plain(first_name, first), library.plain(second_name, second)
    dtype, ndim = _table_row(first.dtype), first.ndim
    if dtype is None:
        raise TypeError(f"{first_name} must have a dtype among {', '.join(dtypes.NAMES)}, not {first.dtype}")
    if second.dtype != first.dtype:
        raise TypeError(f"{second_name} must have the dtype of {first_name}, {first.dtype}, not {second.dtype}")
    if not 3 <= ndim <= 5:
        raise ValueError(f"{first_name} must have 3 to 5 axes (batch, channels, 1 to 3 spatial ones), not {ndim}")
    if second.ndim != ndim:
        raise ValueError(f"{second_name} must have as many axes as {first_name}, {ndim}, not {second.ndim}")
    rank = ndim - 2
    common = _Common(
        library,
        dtype,
        rank,
        per_axis(options.stride, "stride", rank, 1),
        per_axis(options.dilation, "dilation", rank, 1),
        padding_of(options.padding, rank),
        integer(options.groups, "groups", 1),
        choice(options.data_format, "data_format", DATA_ORDERS[rank]),
        choice(options.filter_format, "filter_format", FILTER_ORDERS[rank]),
        options.out,
    )
    choice(options.algorithm, "algorithm", ALGORITHMS)
    return common, first, second


def _call(common, axes, x, w, y):
    """Normalise the problem, take or make the result's array, and view all three arrays as the kernels want them."""
    pads = [axis.geometry(size)[-1] for axis, size in zip(axes, x.sizes[2:], strict=True)]
    for i, pad in enumerate(pads):
        if x.sizes[2 + i] + sum(pad) >= INDEX_LIMIT:
            size = f"{x.entry(2 + i)} = {x.sizes[2 + i]}"
            raise ValueError(f"{size} and its padding {pad} must together be less than 2**62")
    result = _result(common, x, w, y)
    outs, ins = w.sizes[:2]
    # A stride that is never taken, a dilation between no two taps and groups of nothing could be absurdly large.
    groups = common.groups if outs or ins else 1
    positions = y.sizes[2:]
    problem = ConvProblem(
        batch=x.sizes[0],
        groups=groups,
        x_channels=ins,
        y_channels=outs // groups,
        x=lift(x.sizes[2:], 1),
        y=lift(positions, 1),
        kernel=lift(w.sizes[2:], 1),
        stride=lift([a.stride if n > 1 else 1 for a, n in zip(axes, positions, strict=True)], 1),
        dilation=lift([a.dilation if a.kernel > 1 else 1 for a in axes], 1),
        pad_begin=lift([begin for begin, _ in pads], 0),
    )
    x_view = _view(common.library, x, result, (x.sizes[0], groups, ins))
    w_view = _view(common.library, w, result, (groups, outs // groups, ins))
    y_view = _view(common.library, y, result, (x.sizes[0], groups, outs // groups))
    return Call(problem, common.dtype, x_view, w_view, y_view, result)


def _result(common, x, w, y):
    """``out`` if it is fit to be written, or else a new array."""
    library, out = common.library, common.out
    (result,) = (tensor for tensor in (x, w, y) if tensor.array is None)
    inputs = [tensor for tensor in (x, w, y) if tensor.array is not None]
    shape = result.shape
    if prod(size or 1 for size in shape) * common.dtype.itemsize >= INDEX_LIMIT:
        raise ValueError(f"the result must be smaller than 2**62 bytes, not of shape {shape}")
    if out is None:
        return library.empty(shape, inputs[0].array.dtype)
    plain = library.plain("out", out)
    if plain.dtype != inputs[0].array.dtype:
        first = inputs[0]
        raise TypeError(f"out must have the dtype of {first.name}, {first.array.dtype}, not {plain.dtype}")
    if plain.shape != shape:
        raise ValueError(f"out must have the shape {shape}, not {plain.shape}")
    if not plain.flags.writeable:
        raise ValueError("out must be writeable, not a read-only array")
    if not is_addressable(plain):
        raise ValueError(f"out must be aligned to its itemsize {plain.itemsize}, not have the strides {plain.strides}")
    if library.overlaps_itself(plain):
        raise ValueError(f"out must have one place for each element, not the strides {plain.strides}")
    for tensor in inputs:
        if library.overlap(plain, tensor.array):
            raise ValueError(f"out must not overlap {tensor.name} in memory")
    return out


def _view(library, tensor, result, leading):
    """The six-dimensional view: the channel axis split by groups, the missing spatial axes of extent one."""
    if tensor.array is None:
        array = library.plain("out", result)
    else:
        array = tensor.array if is_addressable(tensor.array) else library.copy(tensor.array)
    return array.transpose(tensor.order).reshape(leading + lift(tensor.sizes[2:], 1))
