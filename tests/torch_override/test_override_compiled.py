"""torch.compile and Inductor: the part of their programs that reaches our kernels, with equal results."""

from shutil import which

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

from exact_network import LAYERS, Network, X, assert_same, counted, integers, train  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(which("g++") is None, reason="Inductor needs g++"),
    pytest.mark.filterwarnings("ignore"),  # PyTorch's compiler has many
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache with only the programs that these tests compile."""
    return tmp_path_factory.mktemp("inductor")


@pytest.fixture(autouse=True)
def compiler(cache, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache))
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def without_gradients(network, x=X):
    with torch.no_grad():
        return network(x)


class Picture(torch.nn.Module):
    """A network with the usual layers around convolutions. Its numbers are exact: means are of 4 * integers."""

    def __init__(self):
        super().__init__()
        self.one, self.other = torch.nn.Conv2d(2, 4, 3, padding=1), torch.nn.Conv2d(2, 4, 5, padding=2, groups=2)
        self.up = torch.nn.ConvTranspose2d(4, 2, 2, stride=2)
        for parameter in self.parameters():
            parameter.data = integers(-1, 1, *parameter.shape)

    def forward(self, x):
        small = torch.nn.functional.max_pool2d(torch.relu(self.one(x)), 2)
        pooled = torch.nn.functional.avg_pool2d(4 * torch.relu(self.other(x)), 2)
        return self.up(torch.nn.functional.leaky_relu(small - pooled, 0.5)) + x


def test_training():
    """Gradients must be equal. Their strides are the compiler's: they may differ on axes of one, also without us."""
    theirs = train(Picture())
    ours, calls = counted(lambda: train(torch.compile(Picture())))
    assert calls == (3, 3)
    assert_same(ours, theirs, strides=False)
    assert_same(ours[:2], theirs[:2])


def test_any_extents():
    compiled = torch.compile(Network(), dynamic=True)
    for x in (X, torch.cat([X, X])[:5], torch.cat([X, X], 2)):
        theirs = without_gradients(Network(), x)
        ours, calls = counted(lambda x=x: without_gradients(compiled, x))
        assert calls == (LAYERS, 0)
        assert_same(ours, theirs)


def test_max_autotune():
    network = torch.compile(Network(), mode="max-autotune")
    ours, calls = counted(lambda: without_gradients(network))
    assert calls[0] >= LAYERS  # the compiler may try a layer several times
    assert_same(ours, without_gradients(Network()))
    assert counted(lambda: without_gradients(network))[1] == (LAYERS, 0)


def test_channels_last():
    """Results must have the strides that the meta kernels promise, here other than the usual ones."""
    last = {"memory_format": torch.channels_last}
    theirs = train(Network().to(**last), X.to(**last))
    ours, calls = counted(lambda: train(torch.compile(Network().to(**last)), X.to(**last)))
    assert calls == (LAYERS, LAYERS)
    assert_same(ours, theirs)


def test_a_graph_made_before():
    """A graph made with PyTorch's kernels must run with ours, and the other way around."""
    network = torch.compile(Network())
    theirs = train(network)
    ours, calls = counted(lambda: train(network))
    assert calls == (LAYERS, LAYERS)
    assert_same(ours, theirs)
    torch.compiler.reset()
    network = torch.compile(Network())
    counted(lambda: train(network))
    assert_same(train(network), theirs)


@pytest.mark.slow
def test_cpp_wrapper():
    """The graph in C++ must reach our forward kernels by the dispatcher, and PyTorch's own function backward."""
    theirs = train(Network())
    network = torch.compile(Network(), options={"cpp_wrapper": True})
    ours, calls = counted(lambda: train(network))
    assert calls == (LAYERS, 0)
    assert_same(ours, theirs)
    ours, calls = counted(lambda: without_gradients(network))
    assert calls == (LAYERS, 0)
    assert_same(ours, theirs[0])


@pytest.mark.slow
def test_a_package_of_aot_inductor(tmp_path):
    theirs = without_gradients(Network())
    with torch.no_grad():
        program = torch.export.export(Network(), (X,))
        path = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "network.pt2"))
        package = torch._inductor.aoti_load_package(path)
    ours, calls = counted(lambda: without_gradients(package))
    assert calls == (LAYERS, 0)
    assert_same(ours, theirs)


def test_freezing():
    """Convolutions with constant filters become oneDNN's, which are not aten's operators (docs/pytorch.md)."""
    theirs = without_gradients(Network())
    with torch._inductor.config.patch(freezing=True):
        ours, calls = counted(lambda: without_gradients(torch.compile(Network().eval())))
    assert calls == (0, 0)
    assert_same(ours, theirs)


def test_a_default_device():
    """A graph that is called within `with torch.device(...)` must stay on the CPU. It runs below PyTorch's Python."""
    from test_override_paths import DefaultDevice

    network = torch.compile(Network())
    theirs = without_gradients(network)
    with DefaultDevice():
        ours, _ = counted(lambda: without_gradients(network))
    assert_same(ours, theirs)


class LeftToEager(torch.nn.Module):
    """The compiler gives this frame up, and traces every Python function that the frame then calls."""

    def __init__(self):
        super().__init__()
        self.filter, self.patches = integers(-1, 1, 4, 2, 3, 3), integers(-1, 1, 3, 4, 4, 4)

    def forward(self, x):
        try:
            torch._dynamo.graph_break()
        finally:
            x = torch.conv2d(torch.conv2d(x, self.filter, padding=1), self.patches, stride=4)
        return x


def test_what_the_compiler_leaves_to_eager_mode():
    """Python code of our kernels must stay untraced: it plans calls, and turns tensors into NumPy's arrays."""
    for dtype in (torch.float32, torch.bfloat16):
        network, x = LeftToEager(), X.to(dtype)
        network.filter, network.patches = network.filter.to(dtype), network.patches.to(dtype)
        theirs = without_gradients(network, x)
        compiled = torch.compile(network)
        for _ in range(2):
            ours, calls = counted(lambda compiled=compiled, x=x: without_gradients(compiled, x))
            assert calls == (2, 0)
            assert_same(ours, theirs)
