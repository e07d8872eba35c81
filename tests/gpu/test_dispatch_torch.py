"""Tensors of PyTorch on a GPU go through CuPy: with stand-ins for both, and the simulator instead of the GPU."""

import sys
from types import ModuleType, SimpleNamespace

import fake_cupy
import numpy as np
import pytest
from operations import DTYPES, OPERATIONS, assert_exact, dtype_of, integer_tensors
from problems import PROBLEMS
from sim.executor import COMPILER

import convgrad_cy as cg
from convgrad_cy import arrays
from convgrad_cy.arrays import library, of_torch_cuda

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile kernels for the simulator")

SAME = PROBLEMS["2d_same"]


class Tensor:
    """A tensor with the memory of an array of the stand-in for CuPy."""

    __module__ = "torch"
    is_cuda, requires_grad, is_nested, is_quantized, layout = True, False, False, False, "strided"

    def __init__(self, held):
        self.held, self.shape, self.version = held, held.shape, 0
        self.dtype = sys.intern(held.dtype.name)  # compared by identity, as types of PyTorch are
        self.device = Device(held.data.device_id)

    def detach(self):
        return self

    def view(self, dtype):
        return Tensor(self.held.view(dtype_of(dtype)))

    def data_ptr(self):
        return self.held.data.ptr

    @property
    def nbytes(self):
        return self.held.nbytes

    def is_neg(self):
        return False

    is_inference = is_neg


class Device:
    type = "cuda"

    def __init__(self, index):
        self.index = index

    def __eq__(self, other):
        return self.index == other.index

    def __str__(self):
        return f"cuda:{self.index}"


class Stream:
    """CuPy's stream for a stream of PyTorch, which is a number on a device."""

    entered = []  # noqa: RUF012

    def __init__(self, number, device):
        self.now = number, device

    def __enter__(self):
        self.entered.append(self.now)

    def __exit__(self, *_):
        self.entered.append(None)


def from_dlpack(tensor):
    assert tensor.dtype != "bfloat16", "CuPy's DLPack has none"
    assert Stream.entered[-1] == (1000 + tensor.device.index, tensor.device.index)
    return tensor.held


#: Tensors that PyTorch's allocator made.
ALLOCATED = []


def empty(shape, *, dtype, device):
    assert Stream.entered[-1] == (1000 + device.index, device.index)
    with fake_cupy.Device(device.index):
        ALLOCATED.append(Tensor(fake_cupy.empty(shape, dtype_of(dtype))))
    return ALLOCATED[-1]


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    fake_cupy.install(monkeypatch)
    cupy = sys.modules["cupy"]
    cupy.from_dlpack, cupy.cuda.ExternalStream = from_dlpack, Stream
    module = ModuleType("torch")
    module.Tensor, module.strided, module.empty = Tensor, Tensor.layout, empty
    module.device = lambda kind, index: Device(index)
    for name in (*DTYPES, "int16"):
        setattr(module, name, name)
    module.version = SimpleNamespace(hip=None)
    module.nn = SimpleNamespace(Parameter=None)
    module.autograd = SimpleNamespace(
        forward_ad=SimpleNamespace(unpack_dual=lambda tensor: SimpleNamespace(tangent=None)),
        graph=SimpleNamespace(increment_version=lambda tensor: setattr(tensor, "version", tensor.version + 1)),
    )
    module.cuda = SimpleNamespace(
        current_stream=lambda device: SimpleNamespace(cuda_stream=1000 + device.index),
    )
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr(arrays, "_OF_CLASS", {})
    of_torch_cuda._memory_class.cache_clear()
    ALLOCATED.clear()
    yield module
    of_torch_cuda._memory_class.cache_clear()


def tensor(array):
    return Tensor(fake_cupy.array(array))


def check(result, expected, dtype):
    assert type(result) is Tensor and result.dtype == dtype
    assert_exact(result.held.view(dtype_of(dtype)).get(), expected, dtype)
    assert Stream.entered[-1] is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operation", ["conv", "conv_backward_data", "conv_backward_filter"])
def test_functions(operation, dtype):
    operation = OPERATIONS[operation]
    tensors, _ = integer_tensors(SAME, dtype)
    expected = operation.expected(SAME, tensors)
    with fake_cupy.Device(1):
        on_another = [operation.call(SAME, tensors, layout=tensor) for _ in range(2)]
    assert all(one is other for one, other in zip(on_another, ALLOCATED, strict=True))
    for result in on_another:
        assert result.device.index == 1
        check(result, expected, dtype)
    ALLOCATED.clear()
    out = tensor(np.full(expected.shape, 77, dtype_of(dtype)))
    assert operation.call(SAME, tensors, layout=tensor, out=out) is out and out.version == 1
    check(out, expected, dtype)
    assert ALLOCATED == []


def test_both_gradients():
    tensors, expected = integer_tensors(SAME, "float32")
    x, w, dy = map(tensor, tensors)
    out = [tensor(np.zeros_like(tensors.x)), None]
    dx, dw = cg.conv_backward(dy, x, w, out=out, **SAME.keywords)
    assert dx is out[0]
    assert [dw] == ALLOCATED
    check(dx, expected["dgrad"], "float32")
    check(dw, expected["wgrad"], "float32")


def test_refused(monkeypatch):
    tensors, _ = integer_tensors(SAME, "float32")
    x, w = tensor(tensors.x), tensor(tensors.w)
    with fake_cupy.Device(1):
        elsewhere = tensor(tensors.w)
    for arrays_of_call, message in (
        ((x, elsewhere), "w must be on the device of x, cuda:0, not on cuda:1"),
        ((x, w.held), "w must be a torch.Tensor like x, not a cupy.ndarray"),
        ((x.held, w), "w must be a cupy.ndarray like x, not a torch.Tensor"),
        ((tensors.x, w), "w must be a numpy.ndarray like x, not a torch.Tensor"),
    ):
        with pytest.raises(TypeError) as caught:
            cg.conv(*arrays_of_call)
        assert str(caught.value) == message
    monkeypatch.delitem(sys.modules, "cupy")
    monkeypatch.setattr(library, "find_spec", lambda name: None)
    with pytest.raises(ImportError) as caught:
        cg.conv(x, w)
    assert str(caught.value) == "x is on a GPU, a torch.Tensor, which takes CuPy: pip install 'cupy-cuda13x[ctk]'"
    assert fake_cupy.launches == []


@pytest.mark.parametrize("package", ("PyTorch", "CuPy"))
def test_arrays_of_amd_gpus_are_refused(torch, monkeypatch, package):
    tensors, _ = integer_tensors(SAME, "float32")
    x, w = tensor(tensors.x), tensor(tensors.w)
    if package == "PyTorch":
        torch.version.hip = "6.4"
    else:
        monkeypatch.setattr(sys.modules["cupy"].cuda.runtime, "is_hip", True)
        x, w = x.held, w.held
    with pytest.raises(TypeError) as caught:
        cg.conv(x, w)
    assert str(caught.value) == f"x must be on the CPU or on an NVIDIA GPU, but this {package} is for ROCm"
    assert fake_cupy.launches == fake_cupy.compiled == []
