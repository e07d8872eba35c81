"""The ways of running a network that reach our kernels: the calls of either operator, counted, and equal results.

test_override_compiled.py tests the ways of torch.compile. PyTorch's own kernels get equal numbers, all exact.
"""

import copy

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

from exact_network import DY, LAYERS, Network, X, assert_same, counted, integers, train  # noqa: E402
from torch.utils._device import _device_constructors  # noqa: E402

# PyTorch warns of its own code: TorchScript is deprecated, and "same" may copy.
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:.*torch.jit", "ignore:.*deprecated")]


def without_gradients(mode):
    def run(network):
        with mode():
            return network(X), network(X[0])  # an image alone, too

    return run


def autocast(dtype):
    def run(network):
        with torch.autocast("cpu", dtype):
            y = network(X)
        (y.float() * DY).sum().backward()
        assert y.dtype is dtype
        return y.detach(), *(parameter.grad for parameter in network.parameters())

    return run


class Checkpointed(torch.nn.Module):
    def __init__(self, network, reentrant):
        super().__init__()
        self.network, self.reentrant = network, reentrant

    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.network, x, use_reentrant=self.reentrant)


def loss(network):
    def of(weights, x, dy):
        return (torch.func.functional_call(network, weights, x[None])[0] * dy).sum()

    return of


def per_sample(network):
    of_each = torch.func.vmap(torch.func.grad(loss(network)), (None, 0, 0))
    return of_each(dict(network.named_parameters()), X, DY)


def ensemble(network):
    """Run several networks at once. Their filters have a mapped axis, too."""
    weights = {name: torch.stack([one, -one]) for name, one in network.named_parameters()}
    return torch.func.vmap(lambda weights: torch.func.functional_call(network, weights, X))(weights).detach()


def twice(network):
    """The gradient of a gradient: each layer's double backward, which convolves again."""
    x = X.clone().requires_grad_()
    (dx,) = torch.autograd.grad((network(x) * DY).sum(), x, create_graph=True)
    return torch.autograd.grad((dx * integers(-1, 1, *X.shape)).sum(), list(network.parameters()), allow_unused=True)


def frozen(network):
    """The gradient of the input only."""
    x = X.clone().requires_grad_()
    return torch.autograd.grad((network.requires_grad_(False)(x) * DY).sum(), x)


def hooked(network):
    seen = []
    network.strided.register_full_backward_hook(lambda module, dx, dy: seen.extend([*dx, *dy]))
    return *train(network), *seen


def from_tracing(network):
    return train(torch.jit.trace(network, X))


def exported(network):
    return torch.export.export(network, (X,)).module()(X).detach()


#: Way to run -> (function of a network, calls forward, calls backward). None: PyTorch decides how many calls it makes
#: of one, at least one for each layer.
WAYS = {
    "training": (train, LAYERS, LAYERS),
    "training in channels_last": (
        lambda network: train(network.to(memory_format=torch.channels_last), X.to(memory_format=torch.channels_last)),
        LAYERS,
        LAYERS,
    ),
    "a copied network": (lambda network: train(copy.deepcopy(network)), LAYERS, LAYERS),
    "backward hooks": (hooked, LAYERS, LAYERS),
    "no_grad": (without_gradients(torch.no_grad), 2 * LAYERS, 0),
    "inference_mode": (without_gradients(torch.inference_mode), 2 * LAYERS, 0),
    "frozen filters": (frozen, LAYERS, LAYERS),
    "autocast to bfloat16": (autocast(torch.bfloat16), LAYERS, LAYERS),
    "autocast to float16": (autocast(torch.float16), LAYERS, LAYERS),
    # Checkpointing computes again all layers but the last one, whose output is not needed.
    "checkpoint": (lambda network: train(Checkpointed(network, False)), 2 * LAYERS - 1, LAYERS),
    "reentrant checkpoint": (lambda network: train(Checkpointed(network, True)), 2 * LAYERS, LAYERS),
    "vmap": (lambda network: torch.func.vmap(network)(X).detach(), LAYERS, 0),
    "vmap over filters": (ensemble, LAYERS, 0),
    "gradients of each sample": (per_sample, None, None),
    "forward derivative": (lambda network: torch.func.jvp(network, (X,), (X.flip(0),)), None, 0),
    "Jacobian": (lambda network: torch.func.jacrev(lambda x: network(x[None]).sum(1))(X[0]).detach(), None, None),
    "gradient of a gradient": (twice, None, None),
    "TorchScript": (lambda network: train(torch.jit.script(network)), LAYERS, LAYERS),
    "fx": (lambda network: train(torch.fx.symbolic_trace(network)), LAYERS, LAYERS),
    "Dynamo without a compiler": (lambda network: train(torch.compile(network, backend="eager")), LAYERS, LAYERS),
    "AOTAutograd without a compiler": (
        lambda network: train(torch.compile(network, backend="aot_eager")),
        LAYERS,
        LAYERS,
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_that_reach_us(way):
    torch.compiler.reset()
    run, forward, backward = WAYS[way]
    theirs = run(Network())
    torch.compiler.reset()
    ours, calls = counted(lambda: run(Network()))
    for made, expected in zip(calls, (forward, backward), strict=True):
        assert made >= LAYERS if expected is None else made == expected, (way, calls)
    assert_same(ours, theirs)


def test_what_is_recorded_once_and_run_later():
    """Graphs made before we are enabled must run after it, and the other way around."""
    traced, program = torch.jit.trace(Network(), X), torch.export.export(Network(), (X,)).module()
    theirs = train(Network())
    ours, calls = counted(lambda: train(traced))
    assert calls == (LAYERS, LAYERS)
    assert_same(ours, theirs)
    ours, calls = counted(lambda: program(X).detach())
    assert calls == (LAYERS, 0)
    assert_same(ours, theirs[0])
    (traced, program), _ = counted(lambda: (torch.jit.trace(Network(), X), torch.export.export(Network(), (X,))))
    assert_same(train(traced), theirs)
    assert_same(program.module()(X).detach(), theirs[0])


def test_tensors_that_do_not_reach_us():
    """Tensors on other devices, without data, or in oneDNN's own format must not reach our kernels."""

    from torch.utils.mkldnn import to_mkldnn

    def run():
        with torch.device("meta"):
            assert torch.nn.Conv2d(2, 4, 3)(torch.empty(X.shape)).stride() == (144, 36, 6, 1)
        with torch._subclasses.fake_tensor.FakeTensorMode() as mode:
            assert torch.conv2d(mode.from_tensor(X), torch.empty(4, 2, 3, 3)).stride() == (144, 36, 6, 1)
        packed = to_mkldnn(torch.nn.Sequential(network.strided))
        return packed(x.to_mkldnn()).to_dense()

    network = Network()
    x = integers(-2, 2, 1, 4, 8, 8)
    theirs = network.strided(x).detach()
    ours, calls = counted(run)
    assert calls == (0, 0)
    assert_same(ours, theirs)


class DefaultDevice(torch.overrides.TorchFunctionMode):
    """PyTorch's own mode for `with torch.device(...)`. It refuses new tensors on the device: using them crashes."""

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        if function in _device_constructors() and (keywords or {}).get("device") is None:
            raise AssertionError(f"{function.__name__} makes a tensor on the default device")
        return function(*arguments, **(keywords or {}))


def test_a_default_device_is_not_for_results():
    """Within `with torch.device("meta")` or "cuda", a graph of TorchScript must still convolve on the CPU."""
    network = torch.jit.trace(Network(), X)
    theirs = network(X).detach()
    with DefaultDevice():
        ours, _ = counted(lambda: network(X))
    assert_same(ours.detach(), theirs)
