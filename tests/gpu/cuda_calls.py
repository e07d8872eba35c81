"""Small calls of aten's two operators on imagined GPUs, their exact results, and the counts of where they went."""

import sys
from contextlib import contextmanager

import fake_cupy
import torch
from cuda_tensors import CudaTensor, Torch, aten, format_of_cudnn, on_gpu, theirs

import convgrad_cy.torch as override
from convgrad_cy.torch import cuda, kernels, plans

FORWARD, BACKWARD = "_convolution on CUDA", "convolution_backward on CUDA"
_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def _refused(*_):
    raise AssertionError("memory was asked of CuPy")


@contextmanager
def imagined(monkeypatch):
    """A block with CuPy and PyTorch on two imagined H200. No call is known, and nothing is enabled."""
    fake_cupy.install(monkeypatch)
    monkeypatch.setattr(sys.modules["cupy"].cuda, "alloc", _refused)
    monkeypatch.setattr(plans, "PLAIN", (*plans.PLAIN, CudaTensor))
    monkeypatch.setattr(plans, "memory_format", format_of_cudnn)
    made = Torch()
    made.install(monkeypatch)
    override.enable(cuda=True)  # registers the kernels
    override.disable()
    kernels.forget()
    for operator, kernel in cuda.KERNELS.items():
        monkeypatch.setattr(kernel, "previous", theirs(operator))
    yield made
    override.disable()
    kernels.forget()


def integers(*shape, dtype=torch.float32, format=torch.contiguous_format):
    """Integers whose sums are exact in each type."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randint(-2, 3, shape, generator=generator).to(dtype).contiguous(memory_format=format)


class Call:
    """The arguments of both operators, for tensors on a CPU."""

    def __init__(self, x, w, dy, bias, *geometry):
        self.tensors, self.geometry = [dy, x, w, bias], geometry

    def on(self, index=0):
        """The call for copies on a GPU."""
        return Call(*(None if t is None else on_gpu(t, index) for t in self.in_order()), *self.geometry)

    def in_order(self):
        dy, x, w, bias = self.tensors
        return x, w, dy, bias

    def forward(self):
        _, x, w, bias = self.tensors
        return aten.convolution(x, w, bias, *self.geometry)

    def backward(self, *mask):
        dy, x, w, bias = self.tensors
        mask = mask or (True, True, bias is not None)
        return aten.convolution_backward(dy, x, w, None if bias is None else [*bias.shape], *self.geometry, [*mask])


def call(
    rank=2, groups=1, dtype=torch.float32, last=False, transposed=False, bias=False, stride=1, kernel=3, channels=4
):
    """A small call with ``channels`` channels, but at least one for each group."""
    format = _LAST[rank + 2] if last else torch.contiguous_format
    extents, channels = {1: (9,), 2: (6, 5), 3: (4, 3, 5)}[rank], max(channels, groups)
    x = integers(2, channels, *extents, dtype=dtype, format=format)
    w = integers(channels, channels // groups, *[kernel] * rank, dtype=dtype, format=format)
    geometry = ([stride] * rank, [kernel // 2] * rank, [1] * rank, transposed, [0] * rank, groups)
    y = aten.convolution(x.double(), w.double(), None, *geometry)
    dy = integers(*y.shape, dtype=dtype, format=format)
    return Call(x, w, dy, integers(channels, dtype=dtype) if bias else None, *geometry)


def exact(call):
    """y, dx, dw and the gradient of the bias."""
    wide = Call(*(None if t is None else t.double() for t in call.in_order()), *call.geometry)
    return wide.forward(), *wide.backward()


def check(results, expected, like):
    """Check the values, types and devices of results. ``like`` is a tensor of the call."""
    for result, value in zip(results, expected, strict=True):
        if value is None:
            assert result is None
            continue
        assert type(result) is CudaTensor and result.dtype is like.dtype and result.device == like.device
        assert torch.equal(result.host.double(), value)


def since(before):
    """(calls computed, reasons of calls passed on) on GPUs since a status."""
    after = override.status()
    computed = {name: after.computed[name] - before.computed.get(name, 0) for name in (FORWARD, BACKWARD)}
    reasons = [
        (name, reason)
        for (name, reason), count in after.passed_on.items()
        for _ in range(count - before.passed_on.get((name, reason), 0))
        if name in computed
    ]
    return computed, reasons
