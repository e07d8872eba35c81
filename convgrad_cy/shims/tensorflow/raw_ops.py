"""``tf.raw_ops.Conv2D`` and its two gradients for NumPy and CuPy arrays.

Each function converts its arguments, asks ``kernels`` for a plan and calls the core.
"""

import functools

import convgrad_cy as cg

from ...arrays import zeros
from . import conversion
from .kernels import (
    BACKPROP_FILTER,
    BACKPROP_INPUT,
    CONV,
    Attributes,
    backprop_filter_plan,
    backprop_input_plan,
    check_choices,
    conv_plan,
)

__all__ = ["Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput"]


def __dir__() -> list[str]:
    return __all__


#: TensorFlow's signature has lists as defaults. They are never changed.
_NO_PADDINGS = []
_NO_DILATIONS = [1, 1, 1, 1]


def _raw_op(function):
    """Accept keywords only, as every raw op does, with TensorFlow's message."""
    name = function.__name__
    code = function.__code__
    message = (
        f"{name} only takes keyword args (possible keys: {list(code.co_varnames[: code.co_argcount])!r}). "
        "Please pass these args as kwargs instead."
    )

    @functools.wraps(function)
    def raw_op(*args, **kwargs):
        if args:
            raise TypeError(message)
        return function(**kwargs)

    return raw_op


def _attributes(op, strides, padding, use_cudnn_on_gpu, explicit_paddings, data_format, dilations):
    """The attributes of a call, converted in TensorFlow's order."""
    function = op.function
    strides = conversion.integers(function, "strides", strides)
    padding = conversion.string("padding", padding)
    conversion.check_boolean("use_cudnn_on_gpu", use_cudnn_on_gpu)
    explicit_paddings = conversion.integers(function, "explicit_paddings", explicit_paddings, ())
    data_format = conversion.string("data_format", data_format, "NHWC")
    dilations = conversion.integers(function, "dilations", dilations, (1, 1, 1, 1))
    return Attributes(strides, padding, explicit_paddings, data_format, dilations)


def _check_types(op, attributes, position, first, second):
    check_choices(op, conversion.type_name(first.dtype), attributes)
    conversion.check_one_type(op.name, position, first, second)


@_raw_op
def conv2d(
    input, filter, strides, padding, use_cudnn_on_gpu=True, explicit_paddings=_NO_PADDINGS, data_format="NHWC",
    dilations=_NO_DILATIONS, name=None,
):  # fmt: skip
    """Convolution of four-dimensional `input` with `filter`.

    With ``g`` the group of output channel ``o``, without the terms whose index into ``input`` is out of range::

        y[n, i, j, o] = sum over a, b, c of
            input[n, i * stride + a * dilation - pad, j * stride + b * dilation - pad, g * in_channels + c]
            * filter[a, b, c, o]

    Parameters
    ----------
    input : array_like
        Of shape (batch, height, width, channels), or as `data_format` says. Its type is the result's.
    filter : array_like
        Of shape (filter_height, filter_width, in_channels, out_channels). The number of groups is the input's channels
        divided by `in_channels`.
    strides : list of int
        One for each dimension of `data_format`; 1 for batch and channels.
    padding : str
        "VALID": no padding. "SAME": the output's extent is ceil(input / stride); the extra element of an odd total is
        at the end. "EXPLICIT": `explicit_paddings`.
    use_cudnn_on_gpu : bool, optional
        Not used.
    explicit_paddings : list of int, optional
        Under "EXPLICIT", before and after each of the four dimensions; otherwise it must be empty.
    data_format : str, optional
        "NHWC" or "NCHW".
    dilations : list of int, optional
        One for each dimension of `data_format`; 1 for batch and channels.
    name : object, optional
        Not used.

    Returns
    -------
    numpy.ndarray
        Of shape (batch, out_height, out_width, out_channels), or as `data_format` says; it may be empty.

    Raises
    ------
    TypeError, ValueError
        An argument cannot be converted to the type that the operation takes.
    InvalidArgumentError, UnimplementedError
        The module `errors` has them. The operation does not support a type, an attribute or a shape, or they disagree.

    Notes
    -----
    Types: half, bfloat16 (of ml_dtypes), float32 and float64, and except for the gradient of the filter int32, which
    wraps. half and bfloat16 are summed in float32 and rounded once. The specification is TensorFlow 2.21's document of
    ``tf.raw_ops`` and, where it is silent, the behaviour of TensorFlow's CPU kernels.
    """
    attributes = _attributes(CONV, strides, padding, use_cudnn_on_gpu, explicit_paddings, data_format, dilations)
    input, filter = conversion.operands(input, filter)
    _check_types(CONV, attributes, 1, input, filter)
    plan = conv_plan(attributes, input.shape, filter.shape)
    if plan.empty:
        return zeros(plan.y, input)
    return cg.conv(input, filter, **plan.keywords)


@_raw_op
def conv2d_backprop_input(
    input_sizes, filter, out_backprop, strides, padding, use_cudnn_on_gpu=True, explicit_paddings=_NO_PADDINGS,
    data_format="NHWC", dilations=_NO_DILATIONS, name=None,
):  # fmt: skip
    """Gradient of a convolution with respect to its input.

    For each group, over all positions and taps that meet at (h, w)::

        dx[n, h, w, c] = sum over i, j, a, b, o with i * stride + a * dilation - pad == h, and so for w, of
            out_backprop[n, i, j, o] * filter[a, b, c, o]

    Parameters
    ----------
    input_sizes : sequence of int
        Shape of the convolution's input; (height, width) alone takes the batch from `out_backprop` and the channels
        from `filter`.
    filter : array_like
        Of shape (filter_height, filter_width, in_channels, out_channels). Its type is the result's.
    out_backprop : array_like
        Gradient of the output, of shape (batch, out_height, out_width, out_channels), or as `data_format` says.
    strides : list of int
        One for each dimension of `data_format`; 1 for batch and channels.
    padding : str
        "VALID": no padding. "SAME": the output's extent is ceil(input / stride); the extra element of an odd total is
        at the end. "EXPLICIT": `explicit_paddings`.
    use_cudnn_on_gpu : bool, optional
        Not used.
    explicit_paddings : list of int, optional
        Under "EXPLICIT", before and after each of the four dimensions; otherwise it must be empty.
    data_format : str, optional
        "NHWC" or "NCHW".
    dilations : list of int, optional
        One for each dimension of `data_format`; 1 for batch and channels.
    name : object, optional
        Not used.

    Returns
    -------
    numpy.ndarray
        Of shape `input_sizes`; zero where no output depends on the input.

    Raises
    ------
    TypeError, ValueError
        An argument cannot be converted to the type that the operation takes.
    InvalidArgumentError, UnimplementedError
        The module `errors` has them. The operation does not support a type, an attribute or a shape, or they disagree.

    Notes
    -----
    Types: half, bfloat16 (of ml_dtypes), float32 and float64, and except for the gradient of the filter int32, which
    wraps. half and bfloat16 are summed in float32 and rounded once. The specification is TensorFlow 2.21's document of
    ``tf.raw_ops`` and, where it is silent, the behaviour of TensorFlow's CPU kernels.
    """
    op = BACKPROP_INPUT
    attributes = _attributes(op, strides, padding, use_cudnn_on_gpu, explicit_paddings, data_format, dilations)
    filter, out_backprop = conversion.operands(filter, out_backprop)
    input_sizes = conversion.sizes(input_sizes)
    _check_types(op, attributes, 2, filter, out_backprop)
    plan = backprop_input_plan(attributes, input_sizes, filter.shape, out_backprop.shape)
    if plan.empty:
        return zeros(plan.x, filter)
    return cg.conv_backward_data(out_backprop, filter, plan.x, **plan.keywords)


@_raw_op
def conv2d_backprop_filter(
    input, filter_sizes, out_backprop, strides, padding, use_cudnn_on_gpu=True, explicit_paddings=_NO_PADDINGS,
    data_format="NHWC", dilations=_NO_DILATIONS, name=None,
):  # fmt: skip
    """Gradient of a convolution with respect to its filter.

    For each group::

        dw[a, b, c, o] = sum over n, i, j of
            input[n, i * stride + a * dilation - pad, j * stride + b * dilation - pad, c] * out_backprop[n, i, j, o]

    Parameters
    ----------
    input : array_like
        Of shape (batch, height, width, channels), or as `data_format` says. Its type is the result's; int32 is not
        among them for this operation.
    filter_sizes : sequence of int
        Shape of the filter: (filter_height, filter_width, in_channels, out_channels).
    out_backprop : array_like
        Gradient of the output, of shape (batch, out_height, out_width, out_channels), or as `data_format` says.
    strides : list of int
        One for each dimension of `data_format`; 1 for batch and channels.
    padding : str
        "VALID": no padding. "SAME": the output's extent is ceil(input / stride); the extra element of an odd total is
        at the end. "EXPLICIT": `explicit_paddings`.
    use_cudnn_on_gpu : bool, optional
        Not used.
    explicit_paddings : list of int, optional
        Under "EXPLICIT", before and after each of the four dimensions; otherwise it must be empty.
    data_format : str, optional
        "NHWC" or "NCHW".
    dilations : list of int, optional
        One for each dimension of `data_format`; 1 for batch and channels.
    name : object, optional
        Not used.

    Returns
    -------
    numpy.ndarray
        Of shape `filter_sizes`.

    Raises
    ------
    TypeError, ValueError
        An argument cannot be converted to the type that the operation takes.
    InvalidArgumentError, UnimplementedError
        The module `errors` has them. The operation does not support a type, an attribute or a shape, or they disagree.

    Notes
    -----
    Types: half, bfloat16 (of ml_dtypes), float32 and float64, and except for the gradient of the filter int32, which
    wraps. half and bfloat16 are summed in float32 and rounded once. The specification is TensorFlow 2.21's document of
    ``tf.raw_ops`` and, where it is silent, the behaviour of TensorFlow's CPU kernels.
    """
    op = BACKPROP_FILTER
    attributes = _attributes(op, strides, padding, use_cudnn_on_gpu, explicit_paddings, data_format, dilations)
    input, out_backprop = conversion.operands(input, out_backprop)
    filter_sizes = conversion.sizes(filter_sizes)
    _check_types(op, attributes, 2, input, out_backprop)
    plan = backprop_filter_plan(attributes, input.shape, filter_sizes, out_backprop.shape)
    if plan.empty:
        return zeros(plan.w, input)
    return cg.conv_backward_filter(input, out_backprop, plan.w, **plan.keywords)


Conv2D, Conv2DBackpropInput, Conv2DBackpropFilter = conv2d, conv2d_backprop_input, conv2d_backprop_filter
