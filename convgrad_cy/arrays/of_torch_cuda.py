"""PyTorch's tensors on a CUDA device, seen as CuPy's arrays in the same memory. All work is on PyTorch's stream."""

import sys
from contextlib import contextmanager

import numpy as np

from .library import Foreign, check_cupy
from .torch_refusals import check_plain, check_without_gradient, check_writeable, note_change, refusal


@contextmanager
def _around(name, tensor):
    """The context in which CuPy works on a tensor's device, in PyTorch's current stream."""
    check_cupy(name, "torch.Tensor")
    import cupy

    torch, device = sys.modules["torch"], tensor.device
    stream = torch.cuda.current_stream(device).cuda_stream
    with cupy.cuda.Device(device.index), cupy.cuda.ExternalStream(stream, device.index):
        yield


def _view(name, tensor, like, first):
    import cupy

    torch = sys.modules["torch"]
    check_plain(torch, name, tensor, like)
    check_without_gradient(torch, name, tensor)
    try:
        if tensor.is_neg() or tensor.device != first.device:
            raise TypeError("not as DLPack would have it")
        if tensor.dtype is torch.bfloat16:  # DLPack has bfloat16, but CuPy's import of DLPack has not
            import ml_dtypes

            return cupy.from_dlpack(tensor.detach().view(torch.int16)).view(ml_dtypes.bfloat16)
        return cupy.from_dlpack(tensor.detach())
    except (BufferError, TypeError, RuntimeError) as error:
        raise refusal(torch, name, tensor, like, first, error) from error


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
        return torch.from_dlpack(result.view(np.int16)).view(torch.bfloat16)
    return torch.from_dlpack(result)


TORCH_CUDA = Foreign("torch.Tensor", _view, _view_out, _around, None, _returned)
