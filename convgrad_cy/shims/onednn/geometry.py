"""The check of the shapes of a call, and the core's arguments for them."""

from typing import Any, NamedTuple

from ...checks.keywords import DATA_ORDERS, FILTER_ORDERS, shown
from ...checks.shapes import Tensor, check_channels
from ...problem import aligned_padding, conv_size, conv_transpose_size, same_padding
from ..shapes import checked_paddings, rounded_toward_zero
from .attributes import VALID, GraphValueError

#: oneDNN's two statuses for wrong shapes: from its shape inference, and from its primitives.
INFERENCE, PRIMITIVE = "invalid_shape", "invalid_arguments"


class GraphPlan(NamedTuple):
    """A call whose shapes agree.

    Attributes
    ----------
    shape : tuple
        The result's shape in the core.
    empty : bool
        Whether no product exists, so that the result is zeros or empty.
    keywords : dict
        Keywords of the core.
    exchanged : tuple or None
        The two axes of the core's result that the caller has in the opposite order.
    """

    shape: tuple
    empty: bool
    keywords: dict
    exchanged: Any = None


def planned(op, shapes, asked):
    """The plan of an operation's call.

    Parameters
    ----------
    op : Operation
        The operation with its checked attributes.
    shapes : dict
        Part in the call -> shape of the input.
    asked : tuple or None
        The result's shape, if the caller gives it.

    Raises
    ------
    GraphValueError, ValueError
        The shapes do not agree. It is a plain ValueError if oneDNN's status is `PRIMITIVE`.
    """
    values, layout = op.values, op.values["filter_format"]
    rank = _checked_rank(op, shapes, asked)
    x, w, y = _tensors(op, shapes, asked, rank)
    _check_inference(op, x, w, y)
    paddings = _paddings(values, x, w, y)
    if x is None:
        x = _inferred_x(values, w, y, paddings)
    if y is None:
        y = _inferred_y(values, x, w, paddings)
    check_channels(values["groups"], x, w, y)
    paddings = checked_paddings(values["strides"], values["dilations"], paddings, x, w, y)
    result = {"x": x, "w": w, "y": y}[op.makes]
    if 0 in w.sizes and result is not w and 0 not in result.sizes:
        raise ValueError(f"{w.name} must not be empty, but has the shape {w.shape}")
    keywords = {
        "stride": values["strides"],
        "dilation": values["dilations"],
        "padding": paddings,
        "groups": values["groups"],
        "data_format": values["data_format"],
        "filter_format": layout.core,
        "algorithm": "direct",
    }
    shape, exchanged = result.shape, None
    if layout.exchanged and result is w:
        order = FILTER_ORDERS[rank][layout.core]
        shape, exchanged = w._replace(order=order).shape, order[:2]
    return GraphPlan(shape, 0 in (*x.sizes, *w.sizes, *y.sizes), keywords, exchanged)


def _checked_rank(op, shapes, asked):
    """The number of spatial axes, if all lengths agree with it.

    oneDNN takes it from the weights if they are an input and the result's shape is given, else from the first input.
    """
    leading = "w" if "w" in shapes and asked is not None else next(iter(shapes))
    rank = len(shapes[leading]) - 2
    for part, row in op.schema.items():
        value, length = (asked, rank + 2) if part == "shape" else (op.values[part], rank)
        if row.kind == "s64[]" and value is not None and len(value) != length:
            raise GraphValueError(f"{row.name} must have {length} entries, not be {shown(value)}", INFERENCE)
    for part, shape in shapes.items():
        if len(shape) != rank + 2:
            message = f"{op.takes[part]} must have {rank + 2} axes, as {op.takes[leading]} has, not {len(shape)}"
            raise GraphValueError(message, INFERENCE if asked is None else PRIMITIVE)
    if rank not in DATA_ORDERS:
        raise ValueError(f"{op.takes[leading]} must have 1 to 3 spatial axes, not {rank}")
    return rank


def _tensors(op, shapes, asked, rank):
    """x, w and y in the order of the core's sizes. None stands for a tensor whose shape is not given."""
    layout, data = op.values["filter_format"], DATA_ORDERS[rank][op.values["data_format"]]
    outs, ins, *kernel = FILTER_ORDERS[rank][layout.core]
    channels = (ins, outs) if layout.exchanged else (outs, ins)
    orders = {"x": data, "w": (*channels, *kernel), "y": data}
    tensors = dict.fromkeys(orders)
    for part, order in orders.items():
        if part in shapes:
            tensors[part] = Tensor(op.takes[part], tuple([shapes[part][i] for i in order]), order, shapes[part])
        elif asked is not None:
            tensors[part] = Tensor(op.shape, tuple([asked[i] for i in order]), order)
    return tensors.values()


def _check_inference(op, x, w, y):
    """Check the channels that oneDNN's shape inference compares."""
    groups, layout = op.values["groups"], op.values["filter_format"]
    seen = y is None and x.sizes[1] // groups != w.sizes[1]
    divided = op.makes == "w" and w.sizes[0] % groups and (layout.transposed or layout.core == "XIO")
    if seen or divided:
        try:
            check_channels(groups, x, w, y)
        except ValueError as error:
            raise GraphValueError(str(error), INFERENCE) from error


def _paddings(values, x, w, y):
    """A (begin, end) pair for each spatial axis."""
    auto_pad = values["auto_pad"]
    if auto_pad is None:
        return list(zip(values["pads_begin"], values["pads_end"], strict=True))
    if auto_pad == VALID:
        return [VALID] * len(w.sizes[2:])
    pads = []
    for i, axis in enumerate(zip(w.sizes[2:], values["strides"], values["dilations"], strict=True)):
        stride, lower = axis[1], auto_pad == "same_lower"
        if x is None:  # the overlap of the taps beyond a stride; it does not depend on the extents
            pads.append(same_padding(stride, *axis, lower))
            continue
        size = x.sizes[2 + i]
        if y is None:
            pads.append(same_padding(size, *axis, lower))
            continue
        outputs, expected = y.sizes[2 + i], _same_outputs(size, *axis)
        extra = values["output_padding"][i] if values.get("output_padding") else 0
        if outputs not in (expected, _same_outputs(size - extra, *axis)):
            extent = f"the extent of {x.entry(2 + i)} = {size} over the stride {stride}"
            raise ValueError(f"{y.entry(2 + i)} must be {expected}, {extent}, not {outputs}")
        pads.append(aligned_padding(size - extra, outputs, *axis, lower))
    return pads


def _same_outputs(size, *axis):
    """The number of outputs under "same" padding, with oneDNN's rounding for an input of no elements."""
    return conv_size(size, *axis, rounded_toward_zero(size, *axis, same_padding(size, *axis)))


def _inferred_x(values, w, y, paddings):
    """The output of a transposed convolution."""
    sizes = [y.sizes[0], values["groups"] * w.sizes[1]]
    extras = values["output_padding"] or (0,) * len(paddings)
    axes = zip(y.sizes[2:], w.sizes[2:], values["strides"], values["dilations"], paddings, extras, strict=True)
    sizes += [conv_transpose_size(*axis) for axis in axes]
    x = _inferred(sizes, y)
    for i, (stride, extra) in enumerate(zip(values["strides"], extras, strict=True)):
        if extra >= stride:
            raise ValueError(f"output_padding[{i}] must be less than strides[{i}] = {stride}, not {extra}")
    return x


def _inferred_y(values, x, w, paddings):
    """The output of a convolution."""
    sizes = [x.sizes[0], w.sizes[0]]
    axes = zip(x.sizes[2:], w.sizes[2:], values["strides"], values["dilations"], paddings, strict=True)
    for size, *axis in axes:
        padding = rounded_toward_zero(size, *axis)
        sizes.append(conv_size(size, *axis[:-1], padding))
    return _inferred(sizes, x)


def _inferred(sizes, given):
    if min(sizes) < 0:
        message = f"{given.name} of shape {given.shape} is too small: the result would have the sizes {sizes}"
        raise GraphValueError(message, INFERENCE)
    return Tensor("the result", tuple(sizes), given.order)
