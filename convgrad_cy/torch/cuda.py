"""The two kernels for tensors on NVIDIA's GPUs, at the dispatch key CUDA.

CuPy compiles and launches. All memory, results and workspaces, comes from PyTorch's allocator, and all work goes to
PyTorch's current stream. So a graph that PyTorch captures owns this memory, and nothing waits for the GPU. ``kinds``
decides which calls are taken.
"""

import logging
from contextlib import nullcontext
from functools import partial
from time import perf_counter
from typing import NamedTuple

import torch

from .. import gpu
from .._aten import UNREADABLE
from .._repeat import array_at
from ..arrays import CUPY, numpy_dtypes
from ..calls.prepared import gpu_work, part_of
from ..checks.functions import OneResult
from . import kinds, plans
from .kernels import forget, kernel
from .memory_format import strides
from .plans import Declined, Unreadable

logger = logging.getLogger("convgrad_cy.torch")

#: Whether kernels take all calls that they support: ``enable(cuda="all")``.
takes_all = False

#: The alignment of addresses on which plans depend.
_ALIGNMENT = 16

#: The reason to pass on a call that finds no memory: PyTorch's own kernel may need less.
_NO_MEMORY = "too little memory on the GPU"

_NEEDED = "cuda=True needs CuPy: pip install 'cupy-cuda13x[ctk]', or cupy-cuda12x with a PyTorch for CUDA 12"


def check(cuda):
    """Check ``enable``'s argument ``cuda`` and the packages that it needs, and return it."""
    if not (isinstance(cuda, bool) or (isinstance(cuda, str) and cuda == "all")):
        raise ValueError(f"cuda must be False, True or 'all', not {cuda!r}")
    if cuda is False:
        return cuda
    if torch.version.hip is not None:
        raise ValueError(f"cuda must be False with this PyTorch, which is for ROCm, not {cuda!r}")
    try:
        import cupy
    except ImportError as error:
        raise ImportError(f"{_NEEDED} ({error})") from error
    if cupy.cuda.runtime.is_hip:
        raise ValueError(f"cuda must be False with this CuPy, which is for ROCm, not {cuda!r}")
    return cuda


def has_tf32():
    """Whether PyTorch may round float32 to TF32. The older ``allow_tf32`` raises after some settings."""
    return torch.backends.cudnn.conv.fp32_precision == "tf32"


# ---- plans ----


def _view(tensor):
    """A NumPy array of a tensor's address, shape and strides, whose memory must not be touched."""
    size = tensor.element_size()
    steps = tuple(size * step for step in tensor.stride())
    return array_at(tensor.data_ptr(), tuple(tensor.shape), steps, numpy_dtypes()[tensor.dtype])


def _layout(format, tensors):
    """The layout that the results have in this memory format, or "other" if one of the tensors has another one."""
    for tensor in tensors:
        expected = strides(tuple(tensor.shape), format)
        steps = zip(tensor.shape, tensor.stride(), expected, strict=True)
        if any(size > 1 and step != wanted for size, step, wanted in steps):
            return "other"
    return "NCX" if format is torch.contiguous_format else "NXC"


def _check_kind(calls, transposed, format, tensors):
    """Decline calls that are of no kind, unless all are taken. One result that is not taken declines all."""
    if takes_all:
        return
    arch, layout = gpu.device_of(tensors[0].device.index).arch, _layout(format, tensors)
    common = {"arch": arch, "has_tf32": has_tf32(), "is_transposed": transposed, "layout": layout}
    for call in calls:
        operation, (problem, dtype, *_), _ = part_of(call.function, call.checked)
        reason = kinds.refusal(kinds.asked(operation, problem, call.first.ndim - 2, dtype=dtype.name, **common))
        if reason is not None:
            raise Declined(reason)


class Plan(NamedTuple):
    """The plan of a call: its work, and a function for each result that makes its tensor."""

    work: gpu.Work
    device: torch.device
    makers: tuple

    def run(self, tensors):
        """New tensors with the results. ``tensors`` have the layout and alignment of the first call's."""
        addresses = [tensor.data_ptr() for tensor in tensors]
        if 0 in addresses:
            raise Unreadable(UNREADABLE)
        made = [make() for make in self.makers]
        space = torch.empty(self.work.size, dtype=torch.uint8, device=self.device)
        addresses += [tensor.data_ptr() for tensor in made]
        self.work.run_at(addresses, space.data_ptr(), torch.cuda.current_stream(self.device).cuda_stream)
        return made


def _check(tensors, others=()):
    """Decline tensors that kernels cannot read. ``others`` are tensors of the call that PyTorch reads."""
    plans.check_tensors(*tensors, *others)
    first = tensors[0]
    for tensor in (*tensors, *others):
        if tensor.device != first.device:
            raise Declined(f"tensors on {first.device} and {tensor.device}")
    if any(tensor.data_ptr() % tensor.element_size() for tensor in tensors):
        raise Declined(UNREADABLE)


def _checked(*call):
    """The call, if it is legal. Where PyTorch may use TF32, three products are more accurate than TF32's one."""
    return plans.checked(*call, library=CUPY, view=_view, precision="medium" if has_tf32() else "high")


def _plan(tensors, calls, transposed, format):
    """The plan of legal calls on some of the tensors, whose results have this memory format."""
    _check_kind(calls, transposed, format, tensors)
    device, begin = tensors[0].device, perf_counter()
    with torch.cuda.device(device):
        if torch.cuda.is_current_stream_capturing():  # kernels may have to be loaded, which ends some captures
            raise Unreadable("the first call with these shapes was within a graph's capture")
    numbers = {id(tensor): number for number, tensor in enumerate(tensors)}
    parts = [OneResult(call.function, numbers[id(call.first)], numbers[id(call.second)]) for call in calls]
    geometries = [call.checked for call in calls]
    new = partial(torch.empty_strided, dtype=tensors[0].dtype, device=device)
    makers = tuple(partial(new, found.shape, strides(found.shape, format)) for found in geometries)
    results = [make() for make in makers]
    work = gpu_work(parts, geometries, [_view(tensor) for tensor in (*tensors, *results)], device.index)
    logger.info("kernels for %s on %s were ready after %.1f s", geometries[0].problem, device, perf_counter() - begin)
    return Plan(work, device, makers)


def forward(x, w, bias, *arguments):
    """The plan of the result y of ``aten::_convolution``, without the bias."""
    _check((x, w), [] if bias is None else [bias])
    geometry = plans.geometry_of(x, *arguments[:6])
    call, format = plans.forward_call(_checked, x, w, bias, geometry)
    return _plan((x, w), [call], geometry.transposed, format)


def backward(dy, x, w, bias_sizes, *arguments):
    """The plan of ``aten::convolution_backward`` for the results dx and dw where the mask has True."""
    *arguments, mask = arguments
    _check((dy, x, w))
    geometry = plans.geometry_of(x, *arguments)
    calls, format = plans.backward_calls(_checked, dy, x, w, bias_sizes, geometry, mask)
    calls = [call for call in calls if call is not None]
    if not calls:
        raise Declined("the gradient of the bias alone")
    return _plan((dy, x, w), calls, geometry.transposed, format)


# ---- kernels ----


def _described(tensor):
    """The part of a call's key for a tensor, or for None instead of a tensor."""
    if tensor is None:
        return None
    kind = type(tensor)
    place = tensor.data_ptr() % _ALIGNMENT if kind in plans.PLAIN else None
    return tensor.shape, tensor.stride(), tensor.dtype, kind, tensor.get_device(), place


def _settings(dtype):
    """PyTorch's settings on which plans depend."""
    cudnn = torch.backends.cudnn
    return cudnn.enabled, cudnn.deterministic, dtype is torch.float32 and has_tf32()


class Kernel:
    """The common part of both kernels, with the interface of ``_aten.Kernel``."""

    tensors = 3  # the number of leading arguments that are tensors or None
    read: int  # the number of tensors that our kernels read

    def __init__(self, known, make, fail, count, _):
        self._known, self._make, self._fail, self._count = known, make, fail, count
        self.active, self.previous, self.computed = False, None, 0

    def __call__(self, *call):
        if not self.active:
            return self.previous(*call)
        tensors, others = call[: self.tensors], call[self.tensors :]
        described = [tuple(other) if type(other) is list else other for other in others]
        key = (*map(_described, tensors), *described, *_settings(tensors[0].dtype))
        plan = self._known.get(key)
        if plan is None:
            plan = self._make(key, *call)
        if type(plan) is Plan:
            try:
                made = plan.run(call[: self.read])
            except torch.OutOfMemoryError:
                plan = _NO_MEMORY
            except Declined as reason:
                plan = str(reason)
            except Exception as error:
                plan = self._fail(key, error)
            else:
                self.computed += 1
                return self.finished(made, call)
        self._count(plan)
        return self.previous(*call)


class Forward(Kernel):
    read = 2

    @staticmethod
    def finished(made, call):
        (y,), bias = made, call[2]
        return y if bias is None else y.add_(bias.view((-1, *[1] * (y.dim() - 2))))


class Backward(Kernel):
    read = 3

    @staticmethod
    def finished(made, call):
        dy, mask, made = call[0], call[-1], iter(made)
        dx, dw = (next(made) if wanted else None for wanted in mask[:2])
        return dx, dw, dy.sum((0, *range(2, dy.dim()))) if mask[2] else None


def _counted(operator):
    """The name of an operator in ``status()``."""
    return f"{operator} on CUDA"


def _kernel(operator, kind, plan):
    def planned(*call):
        try:
            return plan(*call)
        except torch.OutOfMemoryError as error:
            raise Unreadable(_NO_MEMORY) from error

    return kernel(_counted(operator), kind, planned, within=lambda key: nullcontext())


#: Operator -> our kernel for CUDA.
KERNELS = {
    "_convolution": _kernel("_convolution", Forward, forward),
    "convolution_backward": _kernel("convolution_backward", Backward, backward),
}


def computed():
    """Operator -> number of calls that were computed here."""
    return {_counted(operator): each.computed for operator, each in KERNELS.items()}


def switch(cuda):
    """Let the kernels take calls as ``enable``'s argument ``cuda`` says."""
    global takes_all
    if takes_all != (cuda == "all"):
        takes_all = cuda == "all"
        forget()
    for each in KERNELS.values():
        each.active = bool(cuda)
