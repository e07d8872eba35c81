"""PyTorch's tensors on a CPU, seen as NumPy's arrays in the same memory."""

import sys
from functools import cache, partial

import numpy as np

from .._aten import array_of, array_of_new
from .._repeat import check_bound, new_array
from ..dtypes import BFLOAT16_BITS
from .library import Foreign
from .torch_refusals import check_plain, check_without_gradient, check_writeable, note_change, refusal

#: The types that NumPy has, too. Some of them have no kernels.
_NAMES = (
    "float16",
    "float32",
    "float64",
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "complex64",
    "complex128",
)


@cache
def numpy_dtypes():
    """PyTorch's dtypes -> NumPy's dtypes. The caller has imported PyTorch."""
    torch = sys.modules["torch"]
    return {torch.bfloat16: BFLOAT16_BITS} | {getattr(torch, name): np.dtype(name) for name in _NAMES}


@cache
def _makers():
    """NumPy's dtypes -> functions that make a tensor from a shape and strides."""
    torch = sys.modules["torch"]
    cpu = torch.device("cpu")
    return {dtype: partial(torch.empty_strided, dtype=kind, device=cpu) for kind, dtype in numpy_dtypes().items()}


def _view(name, tensor, like, first):
    torch = sys.modules["torch"]
    # Only cheap checks: they are a large part of a small call's time. ``refusal`` finds the reason of a failure.
    if type(tensor) is not torch.Tensor:
        check_plain(torch, name, tensor, like)
    if tensor.requires_grad or getattr(torch.autograd.forward_ad, "_current_level", 0) >= 0:
        check_without_gradient(torch, name, tensor)
    try:
        return array_of(tensor, numpy_dtypes()[tensor.dtype])
    except BufferError as error:
        raise TypeError(f"{name} must have memory, not a storage that was freed") from error
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise refusal(torch, name, tensor, like, first, error) from error


def _view_out(name, out, like, first):
    seen = _view(name, out, like, first)
    check_writeable(name, out)
    return seen


def _empty(shape, dtype, like):
    """A new array in PyTorch's memory, so that the caller can resize the result."""
    check_bound(shape, dtype)
    try:
        return array_of_new(_makers()[dtype], shape, dtype)
    except (BufferError, RuntimeError):  # PyTorch's transforms give tensors without memory, or there is too little
        return new_array(shape, dtype)


def _returned(result, out, first):
    torch = sys.modules["torch"]
    if out is not None:
        note_change(torch, out)
        return out
    if isinstance(result.base, torch.Tensor):
        return result.base
    if first.dtype is torch.bfloat16:
        return torch.from_numpy(result.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(result)


TORCH = Foreign("torch.Tensor", _view, _view_out, None, _empty, _returned)
