"""Which ways of running a network reach our kernels: each call of either operator is counted."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

torch = pytest.importorskip("torch")

import convgrad_cy.torch as override  # noqa: E402

functional = torch.nn.functional
# PyTorch itself warns, for instance of torch.jit.
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
compiles = pytest.mark.skipif(which("g++") is None, reason="torch.compile needs g++")


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Conv2d(2, 4, 3, padding="same"), torch.nn.Conv2d(4, 3, 3, bias=False)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


X = torch.linspace(-1, 1, 3 * 2 * 7 * 7).reshape(3, 2, 7, 7)


def counted(run):
    """The result, and the calls (forward, backward) that reached us."""
    before = override.status().computed
    with override.enabled():
        result = run()
    after = override.status().computed
    return result, tuple(after[name] - before[name] for name in ("_convolution", "convolution_backward"))


def train(network, x=X):
    network.zero_grad()
    network(x).square().sum().backward()
    return [parameter.grad.clone() for parameter in network.parameters()]


def agree(ours, theirs):
    """Both are off by 2e-5 of the greatest element of each layer; two layers, a square and a gradient add to that."""
    for one, other in zip(ours, theirs, strict=True):
        assert one.stride() == other.stride()
        assert ((one - other).abs() <= 1e-3 * other.abs().max()).all()


def test_eager():
    theirs = train(Network())
    ours, calls = counted(lambda: train(Network()))
    assert calls == (2, 2)
    agree(ours, theirs)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients(mode):
    network = Network()

    @mode()
    def run():
        return network(X), network(X[0])  # unbatched, too

    assert counted(run)[1] == (4, 0)


def test_autocast():
    def run():
        with torch.autocast("cpu", torch.bfloat16):
            y = Network()(X)
        y.float().sum().backward()
        return y

    y, calls = counted(run)
    assert y.dtype is torch.bfloat16 and calls == (2, 2)


def test_checkpoint():
    network = Network()
    x = X.clone().requires_grad_()
    run = lambda: torch.utils.checkpoint.checkpoint(network, x, use_reentrant=False).sum().backward()  # noqa: E731
    assert counted(run)[1] == (3, 2)  # y of the last one is not needed again


def test_func():
    """Per-sample gradients: a vmap of a gradient; and a forward derivative."""
    network = Network()
    weights = dict(network.named_parameters())

    def loss(weights, x):
        return torch.func.functional_call(network, weights, x[None]).square().sum()

    per_sample = torch.func.vmap(torch.func.grad(loss), (None, 0))
    theirs = per_sample(weights, X)
    ours, (forward, backward) = counted(lambda: per_sample(weights, X))
    assert forward >= 2 and backward >= 2
    for name, expected in theirs.items():
        assert ((ours[name] - expected).abs() <= 1e-3 * expected.abs().max()).all()
    (_, tangent), (forward, _) = counted(lambda: torch.func.jvp(network, (X,), (X,)))
    assert forward >= 4 and tangent.shape == (3, 3, 5, 5)


@pytest.mark.parametrize("make", [lambda net: torch.jit.trace(net, X), torch.jit.script], ids=["trace", "script"])
def test_jit(make):
    graph = make(Network())
    (_, calls) = counted(lambda: train(graph))
    assert calls == (2, 2)


def test_export():
    program = torch.export.export(Network(), (X,)).module()
    assert counted(lambda: program(X))[1] == (2, 0)


def test_meta_tensors_are_not_touched():
    with torch.device("meta"):
        network = Network()
    result, calls = counted(lambda: network(X.to("meta")))
    assert calls == (0, 0) and result.shape == (3, 3, 5, 5)


@compiles
@pytest.mark.parametrize("mode", ["default", "max-autotune"])
def test_compile(mode):
    theirs = train(Network())
    torch.compiler.reset()
    network = torch.compile(Network(), mode=mode)
    ours, (forward, backward) = counted(lambda: train(network))
    assert forward >= 2 and backward >= 2
    agree(ours, theirs)
    with torch.no_grad():
        assert counted(lambda: network(X))[1] == (2, 0)


@compiles
def test_a_graph_compiled_before():
    torch.compiler.reset()
    network = torch.compile(Network())
    theirs = train(network)
    ours, calls = counted(lambda: train(network))
    assert calls == (2, 2)
    agree(ours, theirs)


@compiles
@pytest.mark.parametrize(
    "option, gradients, calls",
    [
        ("cpp_wrapper", False, (2, 0)),
        ("cpp_wrapper", True, (2, 0)),  # its backward calls PyTorch's function, not the dispatcher
    ],
)
def test_inductor(option, gradients, calls):
    torch.compiler.reset()
    network = torch.compile(Network(), options={option: True})
    with torch.set_grad_enabled(gradients):
        assert counted(lambda: train(network) if gradients else network.eval()(X))[1] == calls


@compiles
def test_freezing():
    """Where it fuses convolutions, these are no longer aten's; else they are ours. The result is right in any case."""
    torch.compiler.reset()
    network = torch.compile(Network().eval(), options={"freezing": True})
    with torch.no_grad():
        result, calls = counted(lambda: network(X))
        assert calls in ((0, 0), (2, 0))
        agree([result], [Network()(X)])


@compiles
def test_aot_inductor(tmp_path):
    with torch.no_grad():
        program = torch.export.export(Network().eval(), (X,))
        path = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "network.pt2"))
        package = torch._inductor.aoti_load_package(path)
        result, calls = counted(lambda: package(X))
        assert calls == (2, 0)
        assert ((result - Network()(X)).abs() <= 1e-4).all()


CHILDREN = {
    "a fork, and a DataLoader's workers": """
import os
import numpy as np
import torch
import convgrad_cy.torch as override
override.enable()
x, w = torch.randn(4, 32, 28, 28), torch.randn(32, 32, 3, 3)
y = torch.conv2d(x, w)  # with a team, where there are processors
child = os.fork()
if not child:
    # NumPy compares: PyTorch's own threads do not survive a fork.
    os._exit(0 if np.array_equal(torch.conv2d(x, w).numpy(), y.numpy()) else 1)
assert os.waitpid(child, 0)[1] == 0

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, index):
        return torch.conv2d(x[index % 4], w)

for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2):
    torch.conv2d(batch, torch.randn(8, 32, 3, 3, requires_grad=True)).sum().backward()
assert override.status().computed["convolution_backward"] == 3
print("done")
""",
    "data-parallel training of two processes": """
import os, sys, tempfile
import torch

def build():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(2, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 4, 3), torch.nn.Flatten(),
        torch.nn.Linear(100, 3),
    ).double()

def steps(network, x, target):
    sgd = torch.optim.SGD(network.parameters(), 0.1)
    for _ in range(3):
        sgd.zero_grad()
        torch.nn.functional.cross_entropy(network(x), target).backward()
        sgd.step()

def work(rank, folder):
    import convgrad_cy.torch as override
    override.enable()
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    x, target = data()
    network = torch.nn.parallel.DistributedDataParallel(build())
    steps(network, x[rank::2], target[rank::2])
    assert override.status().computed["convolution_backward"] == 6, override.status()
    if rank == 0:
        torch.save([parameter.detach() for parameter in network.parameters()], f"{folder}/weights.pt")
    torch.distributed.destroy_process_group()

def data():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(8, 2, 7, 7, generator=generator, dtype=torch.float64)
    return x, torch.randint(3, (8,), generator=generator)

if __name__ == "__main__":
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (folder,), 2)
        network = build()
        steps(network, *data())
        # float64 throughout: sums of at most 1e4 terms near 1 are off by 1e4 * 2**-53 = 1e-12; three steps add up.
        for ours, whole in zip(torch.load(f"{folder}/weights.pt"), network.parameters(), strict=True):
            assert ((ours - whole).abs() <= 1e-10).all()
    print("done")
""",
}


@pytest.mark.parametrize("name", CHILDREN)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_processes(tmp_path, name):
    """In an interpreter of its own, as a deadlock would not end."""
    script = tmp_path / "script.py"
    script.write_text(CHILDREN[name])
    root = str(Path(override.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert done.stdout.splitlines()[-1:] == ["done"], done.stderr
