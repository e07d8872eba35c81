"""``convgrad_cy.torch.enable(cuda=True)`` without a GPU: stand-ins for CuPy and PyTorch's GPU, and the simulator."""

import sys

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

import fake_cupy  # noqa: E402
import fake_streams  # noqa: E402
from cuda_calls import BACKWARD, FORWARD, call, check, exact, imagined, since  # noqa: E402
from cuda_tensors import format_of_cudnn  # noqa: E402

import convgrad_cy.torch as override  # noqa: E402
from convgrad_cy.gpu import mma  # noqa: E402
from convgrad_cy.torch import cuda, kernels  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.simulator]

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@pytest.fixture(autouse=True)
def pytorch(monkeypatch):
    with imagined(monkeypatch) as made:
        yield made


CALLS = {
    "1d": {"rank": 1, "bias": True},
    "1d depthwise": {"rank": 1, "groups": 8},
    "2d": {"bias": True},
    "2d depthwise": {"groups": 8, "bias": True},
    "2d groups": {"groups": 2},
    "2d channels last": {"last": True, "bias": True},
    "2d pointwise": {"kernel": 1, "stride": 2},
    "2d transposed": {"transposed": True, "stride": 2, "bias": True},
    "3d channels last": {"rank": 3, "last": True},
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_all_calls(pytorch, name, dtype):
    """Values, strides and memory of both operators must be right, on the second GPU while the first is current."""
    host = call(dtype=dtype, **CALLS[name])
    expected = exact(host)
    there = host.on(1)
    override.enable(cuda="all")
    before = override.status()
    for _ in range(2):
        y, (dx, dw, db) = there.forward(), there.backward()
        check((y, dx, dw, db), expected, there.tensors[1])
    assert since(before) == ({FORWARD: 2, BACKWARD: 2}, [])
    format = format_of_cudnn(*host.in_order()[:2])
    for result in (y, dx, dw):
        if result.ndim > 3:
            assert result.is_contiguous(memory_format=format)
        else:
            assert result.is_contiguous()
    assert {(device, stream) for _, device, stream in pytorch.allocated} == {(1, 0)}
    assert fake_cupy.Device().id == 0


@pytest.mark.parametrize("mask", [(True, False, False), (False, True, True), (True, True, False)], ids=str)
def test_asked_gradients(mask):
    """Only the gradients that are asked for must be computed."""
    host = call(groups=8, bias=True)
    _, *gradients = exact(host)
    expected = [value if wanted else None for value, wanted in zip(gradients, mask, strict=True)]
    there = host.on()
    override.enable(cuda="all")
    before = override.status()
    check(there.backward(*mask), expected, there.tensors[1])
    assert since(before) == ({FORWARD: 0, BACKWARD: 1}, [])


def test_the_bias_alone_is_pytorchs():
    there = call(bias=True).on()
    override.enable(cuda="all")
    before = override.status()
    assert there.backward(False, False, True)[:2] == (None, None)
    assert since(before) == ({FORWARD: 0, BACKWARD: 0}, [(BACKWARD, "the gradient of the bias alone")])


# ---- memory and streams ----


def test_workspaces_are_pytorchs(pytorch, monkeypatch):
    """Each call must take its results and one allocation for its workspaces from PyTorch, on PyTorch's stream."""
    monkeypatch.setattr(mma, "suits", mma.can)  # tensor cores, which need packed operands
    host = call(channels=16)
    there = host.on()
    override.enable(cuda="all")
    with pytorch.stream() as stream:
        there.backward()
        pytorch.allocated.clear()
        results = there.backward()
    check(results, exact(host)[1:], there.tensors[1])
    dx, dw, space = (size for size, _, _ in pytorch.allocated)
    (plan,) = (plan for known in kernels._KNOWN for plan in known.entries.values() if type(plan) is cuda.Plan)
    assert (dx, dw) == (there.tensors[1].host.nbytes, there.tensors[2].host.nbytes)
    assert space == plan.work.size and len(plan.work._offsets) > 1
    assert {(device, handle) for _, device, handle in pytorch.allocated} == {(0, stream.ptr)}


def test_kernels_are_on_pytorchs_stream(pytorch, monkeypatch):
    """Launches must go to the stream that is PyTorch's at the call, on the device of the tensors."""
    seen = []
    launch = fake_streams.process.driver.launch
    monkeypatch.setattr(
        fake_streams.process.driver,
        "launch",
        lambda stream, run: (seen.append((stream.device_id, stream.ptr)), launch(stream, run)),
    )
    theirs = [call(rank=1, groups=8).on(index) for index in (0, 1)]
    override.enable(cuda="all")
    with pytorch.stream(0) as first, pytorch.stream(1) as second:
        for there in theirs:
            there.forward()
        assert set(seen) == {(0, first.ptr), (1, second.ptr)}
        del seen[:]
        with pytorch.stream(1) as third:
            theirs[1].forward()
        assert set(seen) == {(1, third.ptr)}
    del seen[:]
    theirs[0].forward()
    assert set(seen) == {(0, 0)}
    assert sys.modules["cupy"].cuda.get_current_stream().ptr == 0


def test_a_graph(pytorch):
    """A captured call must compute from the tensors' later values, without memory of CuPy and without waiting."""
    host = call(groups=8, dtype=torch.bfloat16)
    there = host.on()
    override.enable(cuda="all")
    there.backward()
    with pytorch.stream() as stream:
        stream.begin_capture(0)
        pytorch.allocated.clear()
        dx, dw, _ = there.backward()
        graph = stream.end_capture()
    assert bool(dx.host.isnan().all()) and len(pytorch.allocated) == 3
    there.tensors[0].host.mul_(-1)
    for result in (dx, dw):
        result.host.fill_(float("nan"))
    graph.launch()
    _, *expected = exact(host)
    check((dx, dw), [-value for value in expected[:2]], there.tensors[1])


def test_a_first_call_within_a_capture(pytorch):
    """A call whose kernels are not loaded must go to PyTorch and leave the capture valid. It is planned later."""
    there = call(groups=8).on()
    override.enable(cuda="all")
    before = override.status()
    with pytorch.stream() as stream:
        stream.begin_capture(0)
        y = there.forward()
        stream.end_capture()
    reason = "the first call with these shapes was within a graph's capture"
    assert since(before) == ({FORWARD: 0, BACKWARD: 0}, [(FORWARD, reason)])
    before = override.status()
    assert torch.equal(there.forward().host, y.host)
    assert since(before) == ({FORWARD: 1, BACKWARD: 0}, [])


@pytest.mark.parametrize("is_known", (False, True))
def test_too_little_memory(pytorch, is_known):
    """PyTorch's kernel may need less memory, so it must compute. The next call must be ours again."""
    host = call(groups=8)
    there = host.on()
    override.enable(cuda="all")
    if is_known:
        there.forward()
    before = override.status()
    pytorch.is_full = True
    assert torch.equal(there.forward().host.double(), exact(host)[0])
    assert since(before) == ({FORWARD: 0, BACKWARD: 0}, [(FORWARD, "too little memory on the GPU")])
    pytorch.is_full = False
    there.forward()
    assert since(before)[0] == {FORWARD: 1, BACKWARD: 0}


def test_tma():
    """Tensor maps must be made from the addresses of PyTorch's tensors and workspace."""
    host = call(channels=64, dtype=torch.bfloat16, last=True)
    override.enable(cuda="all")
    for _ in range(2):
        there = host.on()  # at other addresses
        y, (dx, dw, _) = there.forward(), there.backward()
        check((y, dx, dw, None), exact(host), there.tensors[1])
    plans = [plan for known in kernels._KNOWN for plan in known.entries.values() if type(plan) is cuda.Plan]
    assert [any(maps for *_, maps, _, _ in plan.work._launches) for plan in plans] == [True, True]
