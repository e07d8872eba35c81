"""The common part of the three functions of ``cupy_cudnn``: check the arguments and call the core."""

import functools
from collections.abc import Callable
from contextlib import nullcontext
from operator import index
from typing import NamedTuple

from ..api import conv, conv_backward_data, conv_backward_filter
from ..arrays import NUMPY, Foreign, library_of
from ..checks import functions
from ..checks.keywords import integer, per_axis
from ..checks.shapes import Axis, Tensor, check_channels, check_conv_size

#: Values of ``d_layout`` and ``w_layout``. CuPy had them in ``cupy.cuda.cudnn``.
CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC = 0, 1

#: Characters of the dtypes. CuPy supported the real ones only.
_TYPES = "efdFD"


class CuDNNError(ValueError, RuntimeError):
    """Arguments that no convolution has. CuPy raises RuntimeError from inside cuDNN, without the reason."""


class Operation(NamedTuple):
    """One of the three functions."""

    compute: Callable  # the core's function
    names: tuple  # the caller's names of the convolution's x, w and y
    places: tuple  # indices in ``names`` of the core's two arguments and of the result


FORWARD = Operation(conv, ("x", "W", "y"), (0, 1, 2))
BACKWARD_DATA = Operation(conv_backward_data, ("y", "W", "x"), (2, 1, 0))
BACKWARD_FILTER = Operation(conv_backward_filter, ("x", "gW", "gy"), (0, 2, 1))


def check_tensor_core(mode):
    if mode not in ("always", "auto", "never"):
        raise ValueError('tensor_code_mode must be either of "always", "auto", or "never".')


def run(operation, tensors, b, pad, stride, dilation, groups, d_layout, w_layout):
    """Write the result, which is one of the ``tensors`` x, w and y of the convolution."""
    for name, value in (("pad", pad), ("stride", stride), ("dilation", dilation)):
        if not isinstance(value, tuple) and (name != "dilation" or value is not None):
            raise TypeError(f"Argument '{name}' has incorrect type (expected tuple, got {type(value).__name__})")
    names = operation.names
    library, arrays = _arrays(dict(zip((*names, "b"), (*tensors, b), strict=True)))
    try:
        tensors = [arrays[name] for name in names]
        rank = _rank(names, tensors)
        layouts = (("d_layout", d_layout), ("w_layout", w_layout), ("d_layout", d_layout))
        orders = tuple([_order(name, layout, rank) for name, layout in layouts])
        if len(pad) != len(stride):
            raise ValueError("pad and stride must be of same length")
        keywords = _keywords(
            names,
            tuple([tensor.shape for tensor in tensors]),
            orders,
            per_axis(pad, "pad", rank, 0),
            per_axis(stride, "stride", rank, 1),
            (1,) * rank if dilation is None else per_axis(dilation, "dilation", rank, 1),
            integer(groups, "groups", 1),
        )
        first, second, made = operation.places
        tensors = [tensor.transpose(order) for tensor, order in zip(tensors, orders, strict=True)]
        bias = _bias(arrays.get("b"), names[made], tensors[made])
        _check_target(library, arrays, names[made])
        asked = () if operation is FORWARD else (tensors[made].shape,)

        def compute(one, other, out=None):
            return operation.compute(one, other, *asked, out=out, **keywords)

        with nullcontext() if library is NUMPY else tensors[made].device:
            _write(tensors[made], compute, tensors[first], tensors[second], bias)
    except ValueError as error:
        raise CuDNNError(str(error)) from error


def _arrays(given):
    """The library, and name -> array without its subclass. A bias of None is omitted."""
    x = given["x"]
    library = library_of("x", x)
    if type(library) is Foreign:
        raise TypeError(f"x must be a numpy.ndarray or a cupy.ndarray, not a {library.name}")
    x = library.plain("x", x, None)
    if x.dtype.char not in _TYPES or not x.dtype.isnative:
        raise TypeError(f"Dtype {x.dtype} is not supported in cuDNN")
    arrays = {}
    for name, array in given.items():
        if array is not None or name != "b":
            array = arrays[name] = library.plain(name, array, "x")
            library.check_device(name, array, "x", x)
            if array.dtype != x.dtype:
                raise TypeError(f"{name} must have the dtype of x, {x.dtype}, not {array.dtype}")
    return library, arrays


def _rank(names, tensors):
    """The number of spatial axes."""
    axes = tensors[names.index("x")].ndim
    if not 3 <= axes <= 5:
        raise ValueError(f"x must have 3 to 5 axes (batch, channels, 1 to 3 spatial ones), not {axes}")
    for name, tensor in zip(names, tensors, strict=True):
        if tensor.ndim != axes:
            raise ValueError(f"{name} must have as many axes as x, {axes}, not {tensor.ndim}")
    return axes - 2


def _order(name, layout, rank):
    """The caller's axes in the order (batch, channels, spatial) or (out, in, kernel)."""
    try:
        layout = index(layout)  # NumPy deprecates comparing some of its types with integers
    except TypeError:
        raise ValueError(f"unknown cudnnTensorFormat: {layout}") from None
    if layout == CUDNN_TENSOR_NCHW:
        return tuple(range(rank + 2))
    if layout != CUDNN_TENSOR_NHWC:
        raise ValueError(f"unknown cudnnTensorFormat: {layout}")
    if rank != 2:
        raise ValueError(f"{name} must be CUDNN_TENSOR_NCHW for {rank} spatial axes, not CUDNN_TENSOR_NHWC")
    return 0, 3, 1, 2


@functools.lru_cache(maxsize=256)
def _keywords(names, shapes, orders, pad, stride, dilation, groups):
    """The core's keywords, if the shapes agree."""
    x, w, y = (
        Tensor(name, tuple([shape[axis] for axis in order]), order, True)
        for name, shape, order in zip(names, shapes, orders, strict=True)
    )
    w.check_not_empty()
    check_channels(groups, x, w, y)
    for i, (kernel, step, gap, size) in enumerate(zip(w.sizes[2:], stride, dilation, pad, strict=True)):
        check_conv_size(Axis(kernel, step, gap, (size, size)), x, y, i)
    return {"padding": pad, "stride": stride, "dilation": dilation, "groups": groups, "algorithm": "direct"}


def _bias(b, name, target):
    """The bias as an array that can be added to the target. As in cuDNN, it may be one number for all channels."""
    if b is None:
        return None
    channels = target.shape[1]
    if b.size not in (1, channels):
        raise ValueError(f"b must have one element for each of the {channels} channels of {name}, not {b.size}")
    return b.reshape(-1, *(1,) * (target.ndim - 2))


def _check_target(library, arrays, made):
    """Check that the array called ``made`` can be written and overlaps no other array."""
    shape = arrays[made].shape
    target = library.seen(functions.checked_out(library, made, "x", arrays["x"], arrays[made], shape))
    for name, array in arrays.items():
        if name != made:
            functions.check_no_overlap(made, target, name, library.seen(array))


def _write(target, compute, one, other, bias):
    """target = compute(one, other) + bias. ``compute`` is linear in both arrays and takes real arrays only."""
    if target.dtype.kind == "c":  # (a + ib)(c + id) = (ac - bd) + i(ad + bc)
        real, imag = target.real, target.imag
        compute(one.real, other.real, real)
        real -= compute(one.imag, other.imag)
        compute(one.real, other.imag, imag)
        imag += compute(one.imag, other.real)
    else:
        compute(one, other, target)
    if bias is not None:
        target += bias
