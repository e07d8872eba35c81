"""PyTorch's tensors on a CUDA device, seen as CuPy's arrays in the same memory. All work is on PyTorch's stream."""

import sys
from contextlib import contextmanager
from functools import cache

from .library import Foreign, check_cupy, refuse_rocm
from .torch_refusals import check_plain, check_without_gradient, check_writeable, note_change, refusal


@contextmanager
def _around(name, tensor):
    """The context in which CuPy works on a tensor's device, in PyTorch's current stream."""
    torch, device = sys.modules["torch"], tensor.device
    if torch.version.hip is not None:
        refuse_rocm(name, "PyTorch")
    check_cupy(name, "torch.Tensor")
    import cupy

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


@cache
def _memory_class():
    """A class of CuPy's memory that is a tensor's. The caller has imported CuPy."""
    import cupy

    class TensorMemory(cupy.cuda.UnownedMemory):
        def __init__(self, tensor):
            super().__init__(tensor.data_ptr(), tensor.nbytes, tensor, tensor.device.index)
            self.tensor = tensor

    return TensorMemory


def _empty(shape, dtype, like):
    """A new array in the memory of a new tensor.

    PyTorch's allocator knows the streams that use its memory (``record_stream``). It knows nothing of CuPy's memory.
    """
    import cupy

    torch = sys.modules["torch"]
    device = torch.device("cuda", like.data.device_id)
    tensor = torch.empty(shape, dtype=getattr(torch, dtype.name), device=device)
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(_memory_class()(tensor), 0))


def _returned(result, out, first):
    if out is not None:
        note_change(sys.modules["torch"], out)
        return out
    return result.data.mem.tensor


TORCH_CUDA = Foreign("torch.Tensor", _view, _view_out, _around, _empty, _returned)
