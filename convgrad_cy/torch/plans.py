"""Plans of PyTorch's calls in convgrad_cy. One plan serves all calls with equal shapes, strides and arguments."""

from functools import partial
from typing import Any, NamedTuple

import torch

from .. import _aten, calls, cpu
from .._aten import Result, Untraced
from .._repeat import Work
from ..arrays import NUMPY, numpy_dtypes
from ..calls import prepared
from ..checks import functions
from ..memo.bounded import count, counted
from .memory_format import memory_format, strides

#: The types of the kernels, except int32: PyTorch has no convolution of int32.
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


#: The classes of tensors whose memory may be read.
PLAIN = (torch.Tensor, torch.nn.Parameter)

#: The algorithm of `enable`, or None for the default algorithm.
algorithm = None

#: The choices between our kernel and PyTorch's (choices.py), or False without ``benchmark``.
choices = False


class Declined(Exception):
    """PyTorch's own kernel must compute the call. The message is the reason."""


class Unreadable(Declined):
    """The memory of these tensors cannot be read. Other calls with the same key may have readable tensors."""


class Geometry(NamedTuple):
    """The arguments of PyTorch's operators, in their order, with one entry for each spatial axis."""

    stride: tuple
    padding: tuple
    dilation: tuple
    transposed: bool
    output_padding: tuple
    groups: int


def array_of(tensor):
    """A NumPy array of the tensor's memory."""
    try:
        return _aten.array_of(tensor, numpy_dtypes()[tensor.dtype])
    except BufferError as error:
        raise Unreadable(_aten.UNREADABLE) from error


def check_tensors(*tensors):
    """Decline tensors that are not plain, have no elements, or have other types than ours."""
    first = tensors[0]
    for tensor in tensors:
        if type(tensor) not in PLAIN:
            raise Declined(f"a subclass of Tensor, {type(tensor).__name__}")
        if tensor.layout is not torch.strided:
            raise Declined(f"a tensor of the layout {tensor.layout}")
        if tensor.dtype not in DTYPES:
            raise Declined(f"tensors of {tensor.dtype}")
        if tensor.dtype is not first.dtype:
            raise Declined(f"tensors of {first.dtype} and {tensor.dtype}")
        if tensor.numel() == 0:
            raise Declined("a tensor without elements")


def check_processor(dtype):
    """Decline the types that PyTorch multiplies faster on this processor."""
    units = cpu.units_of_frameworks(str(dtype).removeprefix("torch."))
    if units:
        raise Declined(f"tensors of {dtype}, which PyTorch multiplies with {units} here")


def geometry_of(x, stride, padding, dilation, transposed, output_padding, groups):
    """The arguments of a call with one entry for each axis. A list of one entry stands for all axes."""
    rank = x.ndim - 2
    if not 1 <= rank <= 3:
        raise Declined(f"tensors of {x.ndim} axes")
    lists = []
    for name, values in zip(Geometry._fields, (stride, padding, dilation, None, output_padding), strict=False):
        if values is not None:
            if len(values) not in (1, rank):
                raise Declined(f"{name} with {len(values)} entries for {rank} axes")
            lists.append(tuple(values) * (rank if len(values) == 1 else 1))
    if (
        not transposed
    ):  # PyTorch ignores output_padding here, but passes one in second derivatives of transposed convolutions
        if min(lists[3]) < 0:
            raise Declined("a negative output_padding")
        lists[3] = (0,) * rank
    return Geometry(*lists[:3], transposed, lists[3], groups)


class Call(NamedTuple):
    """A legal call of one of our functions on two tensors."""

    function: functions.Function
    first: torch.Tensor
    second: torch.Tensor
    checked: Any  # the geometry of the core


def checked(function, first, second, asked, geometry, library=NUMPY, view=array_of, precision="high"):
    """The call, if it is legal. This check precedes PyTorch's functions, which crash on some illegal arguments.

    ``view`` gives the array of ``library`` for a tensor.
    """
    keywords = (
        geometry.stride,
        geometry.padding,
        geometry.dilation,
        geometry.groups,
        "NCX",
        "OIX",
        algorithm,
        precision,
    )
    try:
        found = calls.checked(library, function, view(first), view(second), asked, keywords)
    except (TypeError, ValueError) as error:
        raise Declined(str(error)) from error
    if 0 in found.shape:
        raise Declined("a result without elements")
    return Call(function, first, second, found)


def format_of(x, w, geometry, **bias):
    """The memory format of the results, if PyTorch accepts the call."""
    try:
        return memory_format(x, w, *geometry, **bias)
    except torch.OutOfMemoryError:  # this says nothing about the next call
        raise
    except RuntimeError as error:  # PyTorch's kernel raises it, too
        raise Declined(str(error).partition("\n")[0]) from error


def result_of(call, format, like=None):
    """The plan of a call with a result of this memory format. ``like`` is the tensor whose gradient it is, or None."""
    function, first, second, found = call
    laid_out = strides(found.shape, format)
    target = array_of(first.new_empty_strided(found.shape, laid_out))
    arrays = array_of(first), array_of(second), target
    before = counted()  # bytes of the other gradient, which is remembered with this one
    try:
        work = prepared.prepare(function, found, arrays)
    except ValueError as error:
        if not str(error).startswith("stride must"):  # the only refusal of a planner
            raise
        raise Declined(str(error)) from error
    count(before)
    # Name the device: otherwise a default device (``with torch.device("meta")``) would decide.
    new = partial(torch.empty_strided, dtype=first.dtype, device=first.device)
    is_alike = like is not None and torch.empty_like(like).stride() == laid_out
    return Result(
        work.run if type(work) is Work else Untraced(work.run),
        new,
        torch.empty_like if is_alike else None,
        found.shape,
        laid_out,
        target.itemsize,
        partial(prepared.too_little, function, found.shape, target.dtype),
    )


def forward_call(check, x, w, bias, geometry):
    """The call for the result y of ``aten::_convolution`` without the bias, and the memory format of y.

    ``check`` is the function ``checked`` or a variant of it.
    """
    if geometry.transposed:
        call = check(functions.CONV_TRANSPOSE, x, w, (geometry.output_padding, None), geometry)
    else:
        call = check(functions.CONV, x, w, (), geometry)
    channels = call.checked.shape[1]
    if bias is not None and bias.shape != (channels,):
        raise Declined(f"a bias of the shape {tuple(bias.shape)} for {channels} channels")
    return call, format_of(x, w, geometry, bias=bias)


def backward_calls(check, dy, x, w, bias_sizes, geometry, mask):
    """The calls for the results (dx, dw) of ``aten::convolution_backward``, and the memory format of both.

    ``check`` has the same meaning as in ``forward_call``. A call is None where the mask has False.
    """
    if geometry.transposed:
        data = check(functions.CONV_TRANSPOSE_BACKWARD_DATA, dy, w, (geometry.output_padding,), geometry)
        filter = check(functions.CONV_TRANSPOSE_BACKWARD_FILTER, x, dy, (None, None, w.shape), geometry)
    else:
        data = check(functions.CONV_BACKWARD_DATA, dy, w, (x.shape,), geometry)
        filter = check(functions.CONV_BACKWARD_FILTER, x, dy, (w.shape,), geometry)
    if data.checked.shape != x.shape:
        raise Declined(f"a dy that belongs to the shape {data.checked.shape}, where x has {tuple(x.shape)}")
    sizes = bias_sizes if mask[2] else None
    if sizes is not None and tuple(sizes) != dy.shape[1:2]:
        raise Declined(f"a bias of the shape {tuple(sizes)} for {dy.shape[1]} channels")
    format = format_of(x, w, geometry, bias=None, bias_sizes=sizes)
    return [call if wanted else None for call, wanted in ((data, mask[0]), (filter, mask[1]))], format


def forward(x, w, bias, *geometry):
    """The plan of the result y of ``aten::_convolution``, without the bias."""
    check_tensors(x, w, *([] if bias is None else [bias]))
    check_processor(x.dtype)
    return result_of(*forward_call(checked, x, w, bias, geometry_of(x, *geometry)))


def backward(dy, x, w, bias_sizes, *geometry_and_mask):
    """The plans of (dx, dw) of ``aten::convolution_backward`` (None where the mask has False), and no other mask."""
    *geometry, mask = geometry_and_mask
    check_tensors(x, w, dy)
    check_processor(x.dtype)
    planned, format = backward_calls(checked, dy, x, w, bias_sizes, geometry_of(x, *geometry), mask)
    dx, dw = (
        None if call is None else result_of(call, format, like) for call, like in zip(planned, (x, w), strict=True)
    )
    return dx, dw, None
