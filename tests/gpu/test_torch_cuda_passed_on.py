"""Calls that the kernels of ``enable(cuda=True)`` cannot compute, and PyTorch's compiler."""

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

from cuda_calls import BACKWARD, FORWARD, Call, call, exact, imagined, since  # noqa: E402
from cuda_tensors import CudaTensor, on_gpu  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

import convgrad_cy.torch as override  # noqa: E402
from convgrad_cy._aten import UNREADABLE  # noqa: E402
from convgrad_cy.gpu.work import Work  # noqa: E402
from convgrad_cy.torch import cuda  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.simulator]


@pytest.fixture(autouse=True)
def pytorch(monkeypatch):
    with imagined(monkeypatch) as made:
        yield made


def moved(tensor, by):
    """A copy on a GPU whose memory begins this number of bytes behind a multiple of 512."""
    size = tensor.element_size()
    raw = on_gpu(torch.zeros(by + size * tensor.numel(), dtype=torch.uint8)).host
    memory = torch.frombuffer(memoryview(raw.numpy()), dtype=tensor.dtype, offset=by).reshape(tensor.shape)
    memory.copy_(tensor)
    return CudaTensor(memory)


def test_addresses():
    """A call at other addresses must be planned for them, and one that kernels cannot read must be PyTorch's."""
    host = call(groups=8)
    x, there = host.tensors[1], host.on()
    override.enable(cuda="all")
    for by, reasons in ((0, []), (4, []), (2, [(FORWARD, UNREADABLE)])):
        before = override.status()
        moved_call = Call(moved(x, by), *there.in_order()[1:], *there.geometry)
        assert torch.equal(moved_call.forward().host.double(), exact(host)[0])
        assert since(before) == ({FORWARD: int(by != 2), BACKWARD: 0}, reasons)


def test_tensors_without_memory(monkeypatch):
    """Weights whose memory was freed for a while must go to PyTorch, although the call is known."""
    there = call(groups=8).on()
    override.enable(cuda="all")
    there.forward()
    before = override.status()
    monkeypatch.setattr(CudaTensor, "data_ptr", lambda tensor: 0)
    there.forward()
    assert since(before) == ({FORWARD: 0, BACKWARD: 0}, [(FORWARD, UNREADABLE)])


class Subclass(CudaTensor):
    pass


def of_subclass(there):
    there.tensors[1] = Subclass(there.tensors[1].host)


def on_another_gpu(there):
    there.tensors[2] = on_gpu(there.tensors[2].host, 1)


def of_integers(there):
    there.tensors[:] = [None if tensor is None else on_gpu(tensor.host.long()) for tensor in there.tensors]


def of_two_types(there):
    there.tensors[2] = on_gpu(there.tensors[2].host.double())


PASSED_ON = {
    "a subclass of Tensor, Subclass": of_subclass,
    "tensors on cuda:0 and cuda:1": on_another_gpu,
    "tensors of torch.int64": of_integers,
    "tensors of torch.float32 and torch.float64": of_two_types,
}


@pytest.mark.parametrize("reason", PASSED_ON)
def test_passed_on(reason):
    """The call must go to PyTorch's kernel, with PyTorch's result or error."""
    there = call(groups=8).on()
    PASSED_ON[reason](there)

    def result():
        try:
            return there.forward().host.tolist()
        except RuntimeError as error:
            return str(error)

    theirs = result()
    override.enable(cuda="all")
    before = override.status()
    assert result() == theirs
    assert since(before) == ({FORWARD: 0, BACKWARD: 0}, [(FORWARD, reason)])


def test_an_error_of_ours(monkeypatch, caplog):
    """PyTorch must compute the call, and the error must be logged once."""

    def fail(*_):
        raise ZeroDivisionError("of a launch")

    host = call(groups=8)
    there = host.on()
    override.enable(cuda="all")
    there.forward()
    monkeypatch.setattr(Work, "run_at", fail)
    before = override.status()
    for _ in range(2):
        assert torch.equal(there.forward().host.double(), exact(host)[0])
    reason = "an error of convgrad_cy, ZeroDivisionError: of a launch"
    assert since(before) == ({FORWARD: 0, BACKWARD: 0}, [(FORWARD, reason)] * 2)
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_fake_tensors_do_not_reach_the_kernels():
    """PyTorch's compiler must get its own fake results, whose strides our results have, too."""
    host = call(groups=8, dtype=torch.bfloat16)
    override.enable(cuda="all")
    before = override.status()
    with FakeTensorMode(allow_non_fake_inputs=True):
        dy, x, w = (torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta") for t in host.tensors[:3])
        fakes = Call(*(torch.empty_like(t, device="cuda") for t in (x, w, dy)), None, *host.geometry)
        expected = fakes.forward(), *fakes.backward()[:2]
    assert since(before) == ({FORWARD: 0, BACKWARD: 0}, [])
    there = host.on()
    results = there.forward(), *there.backward()[:2]
    assert [(t.shape, t.stride()) for t in results] == [(t.shape, t.stride()) for t in expected]


def test_a_fake_tensor_at_the_kernel(monkeypatch):
    """A kernel that gets a fake tensor all the same must pass it on without reading its memory."""
    with FakeTensorMode():
        x, w = torch.ones(1, 4, 5, device="cuda"), torch.ones(4, 4, 3, device="cuda")
    monkeypatch.setattr(cuda.KERNELS["_convolution"], "previous", lambda *call: call[0])
    override.enable(cuda="all")
    before = override.status()
    kernel = torch.library.get_kernel("aten::_convolution", "CUDA")
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)
    assert kernel.call_boxed(keys, x, w, None, [1], [0], [1], False, [0], 1, False, False, True, True) is x
    assert since(before) == ({FORWARD: 0, BACKWARD: 0}, [(FORWARD, "a subclass of Tensor, FakeTensor")])
