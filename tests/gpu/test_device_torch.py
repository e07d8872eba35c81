"""``convgrad_cy.torch.enable(cuda=True)`` on a real GPU: values, strides, streams, graphs, and the compiler."""

import pytest
from on_device import require_gpu

torch = pytest.importorskip("torch", minversion="2.9")

import convgrad_cy.torch as override  # noqa: E402

require_gpu()
if not torch.cuda.is_available():
    pytest.skip("PyTorch finds no GPU", allow_module_level=True)

pytestmark = pytest.mark.torch

FORWARD, BACKWARD = "_convolution on CUDA", "convolution_backward on CUDA"
#: Relative to the greatest element.
BOUNDS = {torch.float64: 1e-13, torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 6e-3}
CALLS = {
    "1d depthwise": ((4, 64, 300), (64, 1, 4), {"padding": 3, "groups": 64}),
    "2d depthwise": ((4, 64, 20, 20), (64, 1, 7, 7), {"padding": 3, "groups": 64}),
    "2d": ((4, 32, 20, 20), (64, 32, 3, 3), {"padding": 1, "stride": 2}),
    "2d wide": ((8, 128, 28, 28), (128, 128, 3, 3), {"padding": 1}),
    "3d": ((2, 16, 8, 9, 10), (24, 16, 3, 3, 3), {"padding": 1}),
}
LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


@pytest.fixture(autouse=True)
def as_before():
    override.disable()
    yield
    override.disable()


def step(x, w, keywords):
    """y, dx and dw."""
    x, w = (tensor.detach().requires_grad_() for tensor in (x, w))
    y = getattr(torch.nn.functional, f"conv{x.ndim - 2}d")(x, w, **keywords)
    return y.detach(), *torch.autograd.grad(y, (x, w), torch.ones_like(y) / 8)


def operands(name, dtype, is_last, device="cuda"):
    x_shape, w_shape, keywords = CALLS[name]
    x, w = (torch.randn(shape, device=device, dtype=torch.float64).to(dtype) for shape in (x_shape, w_shape))
    if is_last and x.ndim in LAST:
        x, w = (tensor.contiguous(memory_format=LAST[x.ndim]) for tensor in (x, w))
    return x, w, keywords


def computed():
    counts = override.status().computed
    return counts.get(FORWARD, 0), counts.get(BACKWARD, 0)


@pytest.mark.parametrize("is_last", (False, True))
@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_values_and_strides(name, dtype, is_last):
    x, w, keywords = operands(name, dtype, is_last)
    theirs = step(x, w, keywords)
    expected = step(x.double().cpu(), w.double().cpu(), keywords)
    override.enable(cuda="all")
    before = computed()
    ours = step(x, w, keywords)
    assert computed() == (before[0] + 1, before[1] + 1)
    for result, other, exact in zip(ours, theirs, expected, strict=True):
        assert (result.dtype, result.device, result.stride()) == (other.dtype, other.device, other.stride())
        assert (result.cpu().double() - exact).abs().max() <= BOUNDS[dtype] * exact.abs().max()


def test_a_kind():
    """The gradient of the smallest timed layer must be ours, and its forward call PyTorch's."""
    x, w = (torch.randn(shape, device="cuda").bfloat16() for shape in ((128, 384, 14, 14), (384, 1, 7, 7)))
    override.enable(cuda=True)
    before = computed()
    step(x, w, {"padding": 3, "groups": 384})
    taken = torch.cuda.get_device_capability() == (9, 0)
    assert computed() == (before[0], before[1] + taken)


def test_a_graph_on_another_stream():
    x, w, keywords = operands("2d wide", torch.bfloat16, True)
    dy = torch.ones_like(torch.nn.functional.conv2d(x, w, **keywords))
    arguments = (None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False])
    override.enable(cuda="all")
    backward = torch.ops.aten.convolution_backward
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        backward(dy, x, w, *arguments)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dx, dw, _ = backward(dy, x, w, *arguments)
    for factor in (1, -2):
        dy.fill_(factor)
        others = [torch.full((1 << 22,), 7.0, device="cuda") for _ in range(8)]
        graph.replay()
        expected = backward(dy, x, w, *arguments)
        assert torch.equal(dx, expected[0]) and torch.equal(dw, expected[1])
        assert all(bool((other == 7).all()) for other in others)


def test_compiled():
    x, w, keywords = operands("2d wide", torch.float32, True)
    override.enable(cuda="all")
    eager = step(x, w, keywords)
    compiled = torch.compile(lambda x, w: torch.nn.functional.conv2d(x, w, **keywords).relu())
    x, w = x.requires_grad_(), w.requires_grad_()
    before = computed()
    y = compiled(x, w)
    y.backward(torch.ones_like(y))
    assert computed()[0] > before[0] and computed()[1] > before[1]
    torch.testing.assert_close(y, eager[0].relu())
    assert x.grad.stride() == eager[1].stride()


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there is one GPU")
def test_another_gpu():
    x, w, keywords = operands("2d", torch.float32, False, "cuda:1")
    theirs = step(x, w, keywords)
    override.enable(cuda="all")
    ours = step(x, w, keywords)
    assert torch.cuda.current_device() == 0 and ours[0].device == x.device
    torch.testing.assert_close(ours[2], theirs[2])
