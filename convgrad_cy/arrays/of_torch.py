"""PyTorch's tensors on a CPU, seen as NumPy's arrays in the same memory."""

import sys

import numpy as np

from ..dtypes import BFLOAT16_BITS
from .library import Foreign
from .torch_refusals import check_plain, check_without_gradient, check_writeable, note_change, refusal


def _view(name, tensor, like, first):
    torch = sys.modules["torch"]
    # What is asked here takes a good part of a small call's time, so what is wrong is found out elsewhere.
    if type(tensor) is not torch.Tensor:
        check_plain(torch, name, tensor, like)
    if tensor.requires_grad or getattr(torch.autograd.forward_ad, "_current_level", 0) >= 0:
        check_without_gradient(torch, name, tensor)
    try:
        if tensor.dtype is torch.bfloat16:  # NumPy has none
            seen = tensor.view(torch.int16).numpy().view(BFLOAT16_BITS)
        else:
            seen = tensor.numpy()
    except (TypeError, RuntimeError) as error:
        raise refusal(torch, name, tensor, like, first, error) from error
    if not tensor.data_ptr() and seen.size:  # NumPy has made up memory of its own
        raise TypeError(f"{name} must have memory, not a storage that was freed")
    return seen


def _view_out(name, out, like, first):
    seen = _view(name, out, like, first)
    check_writeable(name, out)
    return seen


def _returned(result, out, first):
    torch = sys.modules["torch"]
    if out is not None:
        note_change(torch, out)
        return out
    if first.dtype is torch.bfloat16:
        return torch.from_numpy(result.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(result)


TORCH = Foreign("torch.Tensor", _view, _view_out, None, None, _returned)
