"""Stand-ins for PyTorch's tensors, allocator and streams on GPUs, whose memory the simulator reads and writes."""

from contextlib import contextmanager
from types import SimpleNamespace

import fake_cupy
import numpy as np
import torch
from fake_streams import Stream, current_device, process
from torch.utils._pytree import tree_map

aten = torch.ops.aten
_CUDA = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)
#: Operators that go to the dispatch key CUDA. PyTorch computes all others on the tensors' memory.
_OURS = (aten._convolution.default, aten.convolution_backward.default)
#: The byte that fills new memory: NaN in every floating type.
POISON = 0xFF
_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


class CudaTensor(torch.Tensor):
    """A tensor that says it is on a GPU. ``host`` is a tensor of its memory.

    It has the shape and the strides of ``like``, which is ``host`` unless the tensor has no memory.
    """

    @staticmethod
    def __new__(cls, host, index=0, like=None):
        like, device = host if like is None else like, f"cuda:{index}"
        tensor = torch.Tensor._make_wrapper_subclass(
            cls, like.shape, strides=like.stride(), dtype=host.dtype, device=device, requires_grad=False
        )
        tensor.host = host
        return tensor

    def data_ptr(self):
        return self.host.data_ptr()

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if function is aten.convolution.default:
            return aten._convolution(*args, False, False, True, True)
        if function in _OURS:
            return function._handle.redispatch_boxed(_CUDA, *args)
        return _on_hosts(function, args, kwargs)


def _on_hosts(function, args, kwargs=None):
    """Let PyTorch compute on the memory of tensors."""
    tensors = [value for value in args if isinstance(value, CudaTensor)]
    own = {id(tensor.host): tensor for tensor in tensors}
    index = tensors[0].device.index

    def host_of(value):
        return value.host if isinstance(value, CudaTensor) else value

    def returned(value):
        if not isinstance(value, torch.Tensor):
            return value
        return own[id(value)] if id(value) in own else CudaTensor(value, index)

    result = function(*tree_map(host_of, args), **tree_map(host_of, kwargs or {}))
    return tree_map(returned, result)


def theirs(operator):
    """A stand-in for PyTorch's own kernel. A PyTorch without CUDA has none for depthwise convolutions on a GPU."""
    function = getattr(aten, operator).default
    return lambda *call: _on_hosts(function, call)


def _memory(shape, strides, dtype, index):
    """A tensor of new memory on a device."""
    extent = 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    memory = np.full(max(1, extent * dtype.itemsize) + 512, POISON, np.uint8)
    memory = memory[-memory.__array_interface__["data"][0] % 512 :]
    process.driver.place(memory, index)
    whole = torch.from_numpy(memory)[: extent * dtype.itemsize].view(dtype)
    return CudaTensor(whole.as_strided(shape, strides), index)


def on_gpu(host, index=0):
    """A copy of a tensor on a device, with its strides."""
    tensor = _memory(host.shape, host.stride(), host.dtype, index)
    tensor.host.copy_(host)
    return tensor


def ghost(meta):
    """A tensor with the type, shape and strides of a meta tensor, of any size, at the address of one element."""
    return CudaTensor(torch.empty(8, dtype=meta.dtype)[:1], like=meta)


class Torch:
    """PyTorch's allocator and current streams. ``install`` puts them into PyTorch."""

    def __init__(self):
        self.allocated = []  # (bytes, device, handle of the device's current stream)
        self.streams = {}  # the current stream of each device; the legacy one is not there
        self.is_full = False
        self._empty, self._empty_strided = torch.empty, torch.empty_strided

    def _new(self, shape, strides, dtype, device):
        if self.is_full:
            raise torch.OutOfMemoryError("CUDA out of memory")
        tensor = _memory(shape, strides, dtype, device.index)
        self.allocated.append((tensor.host.nbytes, device.index, self.current_stream(device).cuda_stream))
        return tensor

    def empty(self, *shape, **options):
        device = torch.device(options.get("device", "cpu"))
        if device.type != "cuda":
            return self._empty(*shape, **options)
        (size,) = shape
        return self._new((size,), (1,), options["dtype"], device)

    def empty_strided(self, shape, strides, **options):
        device = torch.device(options.get("device", "cpu"))
        if device.type != "cuda":
            return self._empty_strided(shape, strides, **options)
        return self._new(shape, strides, options["dtype"], device)

    def current_stream(self, device):
        stream = self.streams.get(torch.device(device).index)
        return SimpleNamespace(cuda_stream=0 if stream is None else stream.ptr)

    def is_current_stream_capturing(self):
        stream = self.streams.get(current_device())
        return stream is not None and stream.is_capturing()

    @contextmanager
    def stream(self, index=0):
        """A block in which a new stream is the device's current one."""
        with fake_cupy.Device(index):
            stream = Stream(non_blocking=True)
        before = self.streams.get(index)
        self.streams[index] = stream
        try:
            yield stream
        finally:
            self.streams[index] = before

    def install(self, monkeypatch):
        for name in ("empty", "empty_strided"):
            monkeypatch.setattr(torch, name, getattr(self, name))
        for name in ("current_stream", "is_current_stream_capturing"):
            monkeypatch.setattr(torch.cuda, name, getattr(self, name))
        monkeypatch.setattr(torch.cuda, "device", lambda device: fake_cupy.Device(device.index))


def format_of_cudnn(x, w, *_, **__):
    """The memory format of results on a GPU with cuDNN. A PyTorch without CUDA does not apply this rule."""
    last = _LAST.get(x.ndim)
    if last is None or x.dtype is torch.float64:
        return torch.contiguous_format
    is_last = [each.is_contiguous(memory_format=last) and not each.is_contiguous() for each in (x, w)]
    return last if any(is_last) else torch.contiguous_format
