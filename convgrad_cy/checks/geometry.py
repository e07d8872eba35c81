"""Shapes, dtypes and keywords of a call with one result -> its ``Geometry``, which knows no addresses.

Each function of the API has a function of its own here. It takes the checked keywords, the names and shapes of the two
arguments, and the shapes that the caller asks for.
"""

from math import prod
from typing import Any, NamedTuple

from .. import dtypes
from ..problem import INDEX_LIMIT, TAP_LIMIT, ConvProblem, dilated_size, lift
from ..settings.algorithm import get_default_algorithm
from .keywords import (
    ALGORITHMS,
    DATA_ORDERS,
    FILTER_ORDERS,
    PRECISIONS,
    array_shape,
    choice,
    entries,
    integer,
    padding_of,
    per_axis,
    shown,
)
from .shapes import (
    Axis,
    Tensor,
    check_channels,
    check_conv_size,
    check_conv_transpose_size,
    check_equal,
    check_output_padding,
    conv_extent,
    conv_transpose_extent,
)


class Geometry(NamedTuple):
    """Everything about a call that does not depend on the addresses of its arrays.

    ``parts`` has the names of x, w and y: the argument's name, or the name of the shape that the result has. ``views``
    has for each of them the order of the caller's axes and the shape of the six-dimensional view.
    """

    problem: ConvProblem
    dtype: dtypes.DType
    algorithm: str
    precision: str
    parts: tuple
    shape: tuple
    views: tuple


def conv(common, x, w):
    x, w = common.data(x), common.filter(w)
    axes, y = _convolved(common, x, w, (0,) * common.rank)
    return _geometry(common, axes, x, w, y)


def conv_backward_data(common, dy, w, x_shape, name="x_shape"):
    x = common.asked(name, x_shape, common.data_order)
    w, y = common.filter(w), common.data(dy)
    return _geometry(common, _agreed(common, x, w, y, check_conv_size), x, w, y)


def conv_backward_filter(common, x, dy, w_shape, name="w_shape"):
    w = common.asked(name, w_shape, common.filter_order)
    x, y = common.data(x), common.data(dy)
    return _geometry(common, _agreed(common, x, w, y, check_conv_size), x, w, y)


def conv_transpose_backward_data(
    common, dy, w, output_padding=None, output_shape=None, x_shape=None, name="x_shape"
):  # fmt: skip
    x, w = common.data(dy), common.filter(w)
    extra = common.output_padding(output_padding, output_shape)
    if x_shape is None:
        axes, y = _convolved(common, x, w, extra)
    else:
        y = common.asked(name, x_shape, common.data_order)
        axes = _agreed(common, x, w, y, check_conv_transpose_size)
    _check_output(common, axes, x, y, output_padding, output_shape)
    return _geometry(common, axes, x, w, y)


def conv_transpose_backward_filter(common, x, dy, output_padding, output_shape, w_shape, name="w_shape"):
    x, w, y = common.data(dy), common.asked(name, w_shape, common.filter_order), common.data(x)
    axes = _agreed(common, x, w, y, check_conv_transpose_size)
    _check_output(common, axes, x, y, output_padding, output_shape)
    return _geometry(common, axes, x, w, y)


def conv_transpose(common, x, w, output_padding, output_shape):
    y, w = common.data(x), common.filter(w)
    extra = common.output_padding(output_padding, output_shape)
    if output_shape is not None:
        x = common.asked("output_shape", output_shape, common.data_order)
        x.check_not_empty()
        return _geometry(common, _agreed(common, x, w, y, check_conv_transpose_size), x, w, y)
    axes = common.axes(w)
    check_channels(common.groups, None, w, y)
    spatial = [conv_transpose_extent(axis, y, i, extra[i]) for i, axis in enumerate(axes)]
    x = Tensor("result", (y.sizes[0], common.groups * w.sizes[1], *spatial), common.data_order)
    return _geometry(common, axes, x, w, y)


def _convolved(common, x, w, output_padding):
    """The spatial axes and y of a call whose result is y."""
    axes = common.axes(w)
    check_channels(common.groups, x, w, None)
    spatial = [conv_extent(axis, x, i, output_padding[i]) for i, axis in enumerate(axes)]
    return axes, Tensor("result", (x.sizes[0], w.sizes[0], *spatial), common.data_order)


def _agreed(common, x, w, y, check_size):
    """The spatial axes of a call for which the shapes of all three tensors are given."""
    axes = common.axes(w)
    check_channels(common.groups, x, w, y)
    for i, axis in enumerate(axes):
        check_size(axis, x, y, i)
    return axes


def _check_output(common, axes, x, y, output_padding, output_shape):
    """Check the gradient ``x`` against the output shape that the two keywords of `conv_transpose` give, if any.

    ``y`` is known already. So an output_padding that leads to another extent is an error.
    """
    extra = common.output_padding(output_padding, output_shape)
    if output_shape is not None:
        check_equal(common.asked("output_shape", output_shape, common.data_order), x)
    elif output_padding is not None:
        for i, axis in enumerate(axes):
            check_output_padding(axis, x, y, i, extra[i])


def _permuted(sizes, order):
    return tuple([sizes[i] for i in order])


def _other(orders, own):
    """The general name of the other format, and its order of axes."""
    return next((name, order) for name, order in orders.items() if order != own)


class Common(NamedTuple):
    """The checked keywords and the dtype of one call."""

    dtype: dtypes.DType
    rank: int
    stride: tuple
    dilation: tuple
    padding: Any
    groups: int
    data_order: tuple
    filter_order: tuple
    algorithm: str
    precision: str

    def other_formats(self):
        """Yield other format keywords and this object with them: other data, other filter, and both."""
        data, data_order = _other(DATA_ORDERS[self.rank], self.data_order)
        filter, filter_order = _other(FILTER_ORDERS[self.rank], self.filter_order)
        yield {"data_format": data}, self._replace(data_order=data_order)
        yield {"filter_format": filter}, self._replace(filter_order=filter_order)
        both = {"data_format": data, "filter_format": filter}
        yield both, self._replace(data_order=data_order, filter_order=filter_order)

    def data(self, argument):
        name, shape = argument
        return Tensor(name, _permuted(shape, self.data_order), self.data_order, True)

    def filter(self, argument):
        name, shape = argument
        return Tensor(name, _permuted(shape, self.filter_order), self.filter_order, True)

    def asked(self, name, shape, order):
        """The tensor whose shape the caller gives."""
        axes = array_shape(shape)
        given = shown(shape) if axes is None else f"an array of shape {shown(axes)}"
        sizes = entries(shape) if axes is None or len(axes) == 1 else None
        if sizes is None:
            hint = "" if axes is None else ": give its shape"
            raise TypeError(f"{name} must be a sequence of integers, not {given}{hint}")
        if len(sizes) != len(order):
            raise ValueError(f"{name} must have {len(order)} entries, as the arrays have axes, not {given}")
        sizes = [integer(size, f"{name}[{i}]", 0) for i, size in enumerate(sizes)]
        return Tensor(name, _permuted(sizes, order), order)

    def axes(self, w):
        """The spatial axes, if the filter is a legal kernel for them."""
        w.check_not_empty()
        if prod(w.sizes[2:]) >= TAP_LIMIT:
            raise ValueError(f"{w.name} must have fewer than {TAP_LIMIT} taps, not {' x '.join(map(str, w.sizes[2:]))}")
        padding = self.padding if type(self.padding) is tuple else (self.padding,) * self.rank
        axes = [Axis(*axis) for axis in zip(w.sizes[2:], self.stride, self.dilation, padding, strict=True)]
        for i, axis in enumerate(axes):
            if dilated_size(axis.kernel, axis.dilation) >= INDEX_LIMIT:
                kernel = f"the kernel ({w.entry(2 + i)} = {axis.kernel} taps)"
                raise ValueError(f"dilation = {axis.dilation} makes {kernel} span 2**62 elements or more")
        return axes

    def output_padding(self, value, output_shape):
        """One integer for each spatial axis; None stands for 0."""
        extra = per_axis(0 if value is None else value, "output_padding", self.rank, 0)
        if any(extra) and output_shape is not None:
            raise ValueError(f"output_padding must be 0 where output_shape is given, not {shown(value)}")
        if any(extra) and type(self.padding) is not tuple:
            raise ValueError(f'output_padding must be 0 under "same" padding, not {shown(value)}')
        for size, stride, dilation in zip(extra, self.stride, self.dilation, strict=True):
            if size and size >= max(stride, dilation):
                limit = f"max(stride, dilation) = {max(stride, dilation)}"
                raise ValueError(f"output_padding must be less than {limit}, not {shown(value)}")
        return extra


def _algorithm(value):
    return get_default_algorithm() if value is None else choice(value, "algorithm", ALGORITHMS)


def common(first_name, first, second_name, second, options):
    """Check the two arrays against each other, and the keywords against their rank."""
    dtype, ndim = dtypes.lookup(first.dtype), first.ndim
    if dtype is None:
        raise dtypes.refusal(first_name, first.dtype)
    dtypes.check_same(second_name, second.dtype, first_name, first.dtype)
    if not 3 <= ndim <= 5:
        raise ValueError(f"{first_name} must have 3 to 5 axes (batch, channels, 1 to 3 spatial ones), not {ndim}")
    if second.ndim != ndim:
        raise ValueError(f"{second_name} must have as many axes as {first_name}, {ndim}, not {second.ndim}")
    rank = ndim - 2
    checked = Common(
        dtype,
        rank,
        per_axis(options.stride, "stride", rank, 1),
        per_axis(options.dilation, "dilation", rank, 1),
        padding_of(options.padding, rank),
        integer(options.groups, "groups", 1),
        choice(options.data_format, "data_format", DATA_ORDERS[rank], any_case=True),
        choice(options.filter_format, "filter_format", FILTER_ORDERS[rank], any_case=True),
        _algorithm(options.algorithm),
        choice(options.precision, "precision", PRECISIONS),
    )
    return checked


def _geometry(common, axes, x, w, y):
    """The normalised problem, and the views of its three arrays that the kernels take."""
    pads = [axis.geometry(size)[-1] for axis, size in zip(axes, x.sizes[2:], strict=True)]
    for i, pad in enumerate(pads):
        if x.sizes[2 + i] + sum(pad) >= INDEX_LIMIT:
            size = f"{x.entry(2 + i)} = {x.sizes[2 + i]}"
            raise ValueError(f"{size} and its padding {pad} must together be less than 2**62")
    (result,) = (tensor for tensor in (x, w, y) if not tensor.given)
    if prod(size or 1 for size in result.shape) * common.dtype.itemsize >= INDEX_LIMIT:
        raise ValueError(f"the result must be smaller than 2**62 bytes, not of shape {result.shape}")
    outs, ins = w.sizes[:2]
    # Without effect, but perhaps huge: the stride of one position, the dilation of one tap, the groups of no channel.
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
    views = (
        (x.order, (x.sizes[0], groups, ins, *problem.x)),
        (w.order, (groups, outs // groups, ins, *problem.kernel)),
        (y.order, (x.sizes[0], groups, outs // groups, *problem.y)),
    )
    names = (x.name, w.name, y.name)
    return Geometry(problem, common.dtype, common.algorithm, common.precision, names, result.shape, views)
