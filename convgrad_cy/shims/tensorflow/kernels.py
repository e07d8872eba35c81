"""The checks of TensorFlow's plain CPU kernels, in their order, and the translation of a call for the core.

A plan depends on integers and strings only and is remembered; a refused call is not. Calls that TensorFlow's kernels
refuse because they are not implemented (NCHW, dilation or groups in gradients) are accepted here.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate
from operator import mul
from typing import NamedTuple

from ...problem import conv_size, dilated_size
from .errors import InvalidArgumentError, OpError, UnimplementedError

_FLOATS = ("half", "bfloat16", "float", "double")
_PADDINGS = ("SAME", "VALID", "EXPLICIT")
#: data_format -> the axes of batch, channels, height and width.
_AXES = {"NHWC": (0, 3, 1, 2), "NCHW": (0, 1, 2, 3)}


class Attributes(NamedTuple):
    """The attributes of a call, converted but not checked."""

    strides: tuple
    padding: str
    explicit_paddings: tuple
    data_format: str
    dilations: tuple

    @property
    def axes(self):
        return _AXES[self.data_format]

    def pads(self, axis):
        """The (begin, end) padding of an axis, or None under SAME, where it depends on the size."""
        if self.padding == "EXPLICIT":
            return self.explicit_paddings[2 * axis : 2 * axis + 2]
        return (0, 0) if self.padding == "VALID" else None


class Operation(NamedTuple):
    """One raw op: its names, its types, and its kernel's own error and checks."""

    name: str
    function: str  # the name of the Python function in TypeErrors
    label: str  # the kernel's name in its messages
    types: tuple
    refusal: type[OpError]  # error of a stride or dilation over the batch or the channels
    checks: tuple[Callable, ...]  # checks of the attributes, in order


class KernelPlan(NamedTuple):
    """The three shapes of the convolution, the core's keywords, and whether any of the shapes has no element."""

    x: tuple
    w: tuple
    y: tuple
    keywords: dict
    empty: bool


def _range(name):
    def check(op, attributes):
        for value in getattr(attributes, name):
            if not -(2**31) <= value < 2**31:
                raise InvalidArgumentError(f"Attr {name} has value {value} out of range for an int32")

    return check


def _length(name):
    def check(op, attributes):
        if len(getattr(attributes, name)) != 4:
            raise InvalidArgumentError(f"Sliding window {name} field must specify 4 dimensions")

    return check


def _values(name, too_small):
    def check(op, attributes):
        batch, channels, height, width = (getattr(attributes, name)[axis] for axis in attributes.axes)
        if batch != 1 or channels != 1:
            raise op.refusal(f"Current implementation does not yet support {name} in the batch and depth dimensions.")
        if height <= 0 or width <= 0:
            raise InvalidArgumentError(too_small)

    return check


def _explicit_paddings(op, attributes):
    _, padding, pads, *_ = attributes
    if padding != "EXPLICIT":
        if pads:
            raise InvalidArgumentError(
                "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT"
            )
        return
    if len(pads) != 8:
        raise InvalidArgumentError(f"explicit_paddings attribute must contain 8 values, but got: {len(pads)}")
    if min(pads) < 0:
        raise InvalidArgumentError("All elements of explicit_paddings must be nonnegative")
    if any(any(attributes.pads(axis)) for axis in attributes.axes[:2]):
        raise InvalidArgumentError("Nonzero explicit padding in the batch or depth dimensions is not supported")


_TOO_SMALL = ("Row and column strides should be larger than 0.", "Dilated rates should be larger than 0.")
_STRIDES = (_range("strides"), _length("strides"), _values("strides", _TOO_SMALL[0]))
_DILATIONS = (_range("dilations"), _length("dilations"), _values("dilations", _TOO_SMALL[1]))
_ALTERNATING = (_DILATIONS[0], _STRIDES[0], _DILATIONS[1], _STRIDES[1], _STRIDES[2], _DILATIONS[2])

CONV = Operation(
    "Conv2D", "conv2d", "Conv2D", (*_FLOATS, "int32"), UnimplementedError, (*_ALTERNATING, _explicit_paddings)
)  # fmt: skip
BACKPROP_INPUT = Operation(
    "Conv2DBackpropInput", "conv2d_backprop_input", "Conv2DCustomBackpropInput", (*_FLOATS, "int32"),
    UnimplementedError, (*_STRIDES, *_DILATIONS, _explicit_paddings),
)  # fmt: skip
BACKPROP_FILTER = Operation(
    "Conv2DBackpropFilter", "conv2d_backprop_filter", "Conv2DCustomBackpropFilter", _FLOATS,
    InvalidArgumentError, (*_STRIDES, _explicit_paddings, *_DILATIONS),
)  # fmt: skip


@lru_cache(maxsize=1024)
def check_choices(op, type_name, attributes):
    """Check the attributes with a list of allowed values. They precede all others."""
    for name, allowed in (("padding", _PADDINGS), ("data_format", _AXES)):
        value = getattr(attributes, name)
        if value not in allowed:
            listed = ", ".join(f'"{choice}"' for choice in allowed)
            raise InvalidArgumentError(
                f'Value for attr {name!r} of "{value}" is not in the list of allowed values: {listed}'
            )
    if type_name not in op.types:
        listed = ", ".join(op.types)
        raise InvalidArgumentError(f"Value for attr 'T' of {type_name} is not in the list of allowed values: {listed}")


@lru_cache(maxsize=1024)
def conv_plan(attributes, x, w):
    """The plan of Conv2D from the shapes of input and filter."""
    _check_attributes(CONV, attributes)
    for name, shape in (("input", x), ("filter", w)):
        if len(shape) != 4:
            raise InvalidArgumentError(f"convolution {name} must be 4-dimensional: [{','.join(map(str, shape))}]")
    _, channels_axis, *spatial = attributes.axes
    channels, depth = x[channels_axis], w[2]
    if depth == 0:
        raise InvalidArgumentError("filter depth must be strictly positive, got 0")
    if channels % depth:
        raise InvalidArgumentError(f"input depth must be evenly divisible by filter depth: {channels} vs {depth}")
    y = list(x)
    y[channels_axis] = w[3]
    for axis, kernel in zip(spatial, w, strict=False):
        y[axis] = _output_size(attributes, axis, x[axis], kernel)
    if 0 not in x and 0 not in y:  # without elements, the kernel returns before it checks the filter
        if 0 in w:
            raise InvalidArgumentError("filter must not have zero elements (i.e. all dimensions must be non-zero)")
        _check_groups(w[3], channels // depth)
    return _plan(attributes, x, w, tuple(y))


@lru_cache(maxsize=1024)
def backprop_input_plan(attributes, sizes, w, y):
    """The plan of Conv2DBackpropInput from input_sizes and the shapes of filter and out_backprop."""
    op = BACKPROP_INPUT
    _check_attributes(op, attributes)
    if len(y) != 4:
        raise InvalidArgumentError(f"out_backprop must be 4-dimensional, got: {len(y)}")
    if isinstance(sizes, int):
        raise InvalidArgumentError(f"{op.name}: input_sizes input must be 1-dim, not {sizes}")
    if len(sizes) == 2:
        if min(sizes) < 0:
            height, width = sizes
            raise InvalidArgumentError(f"{op.name}: elements of input_sizes must be >= 0, not {height}x{width}")
        if len(w) == 4:
            x = list(y)
            for axis, size in zip(attributes.axes[1:], (w[2], *sizes), strict=True):
                x[axis] = size
            sizes = tuple(x)
            _check_shape(sizes)
    elif len(sizes) == 4:
        _check_shape(sizes)
    else:
        raise InvalidArgumentError(
            f"{op.name} requires input_sizes to contain 4 values or 2 values, but got: {len(sizes)}"
        )
    if len(w) != 4:
        raise InvalidArgumentError(f"{op.label}: filter must be 4-dimensional")
    return _backprop_plan(op, attributes, sizes, w, y)


@lru_cache(maxsize=1024)
def backprop_filter_plan(attributes, x, sizes, y):
    """The plan of Conv2DBackpropFilter from filter_sizes and the shapes of input and out_backprop."""
    op = BACKPROP_FILTER
    _check_attributes(op, attributes)
    if isinstance(sizes, int):
        raise InvalidArgumentError(f"{op.label}: filter_sizes input must be 1-dim, not {sizes}")
    _check_shape(sizes)
    for name, shape in (("input", x), ("filter", sizes), ("out_backprop", y)):
        if len(shape) != 4:
            raise InvalidArgumentError(f"{op.label}: {name} must be 4-dimensional")
    return _backprop_plan(op, attributes, x, sizes, y)


def _check_attributes(op, attributes):
    for check in op.checks:
        check(op, attributes)


def _check_shape(sizes):
    for size in sizes:
        if size < 0:
            raise InvalidArgumentError(f"Dimension {size} must be >= 0")
    if max(accumulate(sizes, mul), default=0) >= 2**63:
        raise InvalidArgumentError(f"Shape [{','.join(map(str, sizes))}] would have more than 2**63 - 1 elements")


def _backprop_plan(op, attributes, x, w, y):
    """The plan of a gradient, after the checks of the three shapes that both gradients share."""
    batch, channels, *spatial = attributes.axes
    if x[batch] != y[batch]:
        raise InvalidArgumentError(
            f"{op.label}: input and out_backprop must have the same batch size. "
            f"Input batch: {x[batch]}, outbackprop batch: {y[batch]}, batch_dim: {batch}"
        )
    if w[2] == 0:
        raise InvalidArgumentError(f"{op.label}: filter depth must be strictly greater than zero")
    if x[channels] % w[2]:
        raise InvalidArgumentError(f"{op.label}: input depth must be evenly divisible by filter depth")
    if w[3] != y[channels]:
        raise InvalidArgumentError(f"{op.label}: filter and out_backprop must have the same out_depth")
    for axis, kernel in zip(spatial, w, strict=False):
        expected = _output_size(attributes, axis, x[axis], kernel)
        if y[axis] != expected:
            raise InvalidArgumentError(
                f"{op.label}: Size of out_backprop doesn't match computed: actual = {y[axis]}, computed = {expected} "
                f"spatial_dim: {axis} input: {x[axis]} filter: {kernel} output: {y[axis]} "
                f"stride: {attributes.strides[axis]} dilation: {attributes.dilations[axis]}"
            )
    _check_groups(w[3], x[channels] // w[2])
    return _plan(attributes, x, w, y)


def _check_groups(depth, groups):
    if groups and depth % groups:
        raise InvalidArgumentError(f"output depth must be evenly divisible by number of groups: {depth} vs {groups}")


def _output_size(attributes, axis, x, kernel):
    """The extent of the convolution's output, which may be zero."""
    stride, dilation, pads = attributes.strides[axis], attributes.dilations[axis], attributes.pads(axis)
    if pads is None:
        return conv_size(x, 1, stride, 1, (0, 0))  # SAME: the number of outputs of a filter with one tap
    size = conv_size(x, kernel, stride, dilation, pads)
    if size < 0:  # C's division rounds towards zero, and Python's down
        size = conv_size(x + stride - 1, kernel, stride, dilation, pads)
    if size < 0:
        raise InvalidArgumentError(
            f"Computed output size would be negative: {size} "
            f"[input_size: {x}, effective_filter_size: {dilated_size(kernel, dilation)}, stride: {stride}]"
        )
    return size


def _plan(attributes, x, w, y):
    _, channels, *spatial = attributes.axes
    explicit, empty = attributes.padding == "EXPLICIT", 0 in x or 0 in w or 0 in y
    keywords = {
        "stride": tuple(attributes.strides[axis] for axis in spatial),
        "padding": tuple(map(attributes.pads, spatial)) if explicit else attributes.padding.lower(),
        "dilation": tuple(attributes.dilations[axis] for axis in spatial),
        "groups": x[channels] // w[2],
        "data_format": attributes.data_format,
        "filter_format": "XIO",
        "algorithm": "direct",
    }  # fmt: skip
    return KernelPlan(x, w, y, keywords, empty)
