"""``enable(benchmark=True)``: the slower kernel of a shape is avoided, for each result, and results stay right."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

import planted  # noqa: E402
from planted import settled  # noqa: E402

import convgrad_cy.torch as override  # noqa: E402
from convgrad_cy.torch import choices, kernels, trial  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("no_choices")]

aten, functional = torch.ops.aten, torch.nn.functional
FORWARD, BACKWARD = "_convolution", "convolution_backward"
X, W, DY = torch.ones(2, 4, 6, 6), torch.ones(3, 4, 3, 3), torch.ones(2, 3, 4, 4)
BOTH, DATA, FILTER = [True, True, False], [True, False, False], [False, True, False]


def forward():
    return (functional.conv2d(X, W, torch.ones(3)),)


def backward(mask):
    found = aten.convolution_backward(DY, X, W, [3], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, mask)
    return tuple(result for result in found if result is not None)


def owners():
    """Operation -> the owner of its only shape."""
    shapes = override.status().benchmark.shapes
    assert set(shapes.values()) <= {1}
    return dict(shapes)


OURS, THEIRS = "convgrad_cy", "pytorch"


@pytest.mark.parametrize("slow, fast", [(OURS, THEIRS), (THEIRS, OURS)])
def test_a_slow_forward_kernel_is_avoided(monkeypatch, slow, fast):
    expected = forward()
    if slow == OURS:
        planted.slow_ours(monkeypatch, "conv")
    else:
        planted.slow_theirs(monkeypatch, FORWARD)
    with override.enabled(benchmark=True):
        settled(forward, expected)
        assert owners() == {("forward", fast): 1}
        before = override.status()
        forward()
        after = override.status()
    assert after.computed[FORWARD] - before.computed[FORWARD] == (fast == OURS)
    key = FORWARD, trial.SLOWER
    assert after.passed_on.get(key, 0) - before.passed_on.get(key, 0) == (fast == THEIRS)
    times = after.benchmark.microseconds
    assert times["chosen"] == times[fast] < 1e6 * planted.SLEEP <= times[slow]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("data", [OURS, THEIRS])
@pytest.mark.parametrize("filter", [OURS, THEIRS])
def test_each_gradient_has_its_own_kernel(monkeypatch, data, filter, bias):
    """The slow kernel of a gradient must be avoided, while the other gradient stays where it is fast."""
    mask = [True, True, bias]
    expected = backward(mask)
    fast = {"conv_backward_data": data, "conv_backward_filter": filter}
    planted.slow_ours(monkeypatch, *(name for name, owner in fast.items() if owner == THEIRS))
    planted.slow_theirs(
        monkeypatch,
        BACKWARD,
        lambda *call: (call[-1][0] and data == OURS) or (call[-1][1] and filter == OURS),
    )
    with override.enabled(benchmark=True):
        result = settled(lambda: backward(mask), expected)
        assert all(map(torch.equal, result, expected)) and len(result) == 2 + bias
        assert owners() == {("data gradient", data): 1, ("filter gradient", filter): 1}


@pytest.mark.parametrize("mask, name", [(DATA, "data gradient"), (FILTER, "filter gradient")])
def test_one_gradient(monkeypatch, mask, name):
    expected = backward(mask)
    planted.slow_ours(monkeypatch, "conv_backward_data", "conv_backward_filter")
    with override.enabled(benchmark=True):
        settled(lambda: backward(mask), expected)
        assert owners() == {(name, THEIRS): 1}


def test_the_gradient_of_a_bias_alone_is_not_measured():
    with override.enabled(benchmark=True):
        assert backward([False, False, True])[0].tolist() == [32, 32, 32]
        assert override.status().benchmark.measuring == 0 and owners() == {}


def test_types_and_strides_are_measured_apart(monkeypatch):
    planted.slow_ours(monkeypatch, "conv")
    last = X.to(memory_format=torch.channels_last)
    with override.enabled(benchmark=True):
        for x in (X, last, X.double()):
            settled(lambda x=x: (functional.conv2d(x, W.to(x.dtype)),))
        assert override.status().benchmark.shapes == {("forward", THEIRS): 3}
        functional.conv2d(torch.nn.Parameter(X), W)  # another class is no other shape
        assert override.status().benchmark.measuring == 0


class FakedCalls:
    """A kernel whose calls take the times of a table, one after the other, by the names of the candidates."""

    def __init__(self, monkeypatch, seconds):
        self.now, self.seconds, self.ran = 0.0, {name: list(times) for name, times in seconds.items()}, []
        monkeypatch.setattr(trial, "perf_counter", lambda: self.now)

    def run(self, plan, key, call):
        name = {trial.MEASURED: THEIRS, trial.SLOWER: THEIRS}.get(plan, plan)
        self.ran.append(name)
        times = self.seconds[name]
        self.now += times.pop(0) if len(times) > 1 else times[0]


def chosen(monkeypatch, seconds):
    """(the plan that is kept, the candidates that ran) of faked times."""
    kept, made = [], choices.Choices()
    plans = {**{name: name for name in seconds if name != THEIRS}, THEIRS: trial.SLOWER}
    call, calls = trial.Trial(plans, made, ("here", "forward: faked"), kept.append), FakedCalls(monkeypatch, seconds)
    while not kept:
        call(calls, (), ())
    assert len(calls.ran) <= 10 * len(seconds)
    return kept[0], calls.ran


@pytest.mark.parametrize(
    "ours, theirs, fast",
    [
        ([1.0], [1.0], OURS),
        ([1.015], [1.0], OURS),  # a tie
        ([1.03], [1.0], trial.SLOWER),
        ([1.0], [1.03], OURS),
        ([9.0, 1.0], [1.1], OURS),  # the first call does not count
        ([1.0], [9.0, 0.9], trial.SLOWER),
        ([1.0, 1.0, 7.0, 1.0], [1.2], OURS),  # one disturbed call
        ([1.2], [1.0, 1.0, 7.0, 1.0], trial.SLOWER),
        ([1.0, 3.0, 3.0, 1.0, 3.0], [1.2], OURS),  # a busy machine
    ],
)
def test_the_choice_of_two(monkeypatch, ours, theirs, fast):
    plan, ran = chosen(monkeypatch, {OURS: ours, THEIRS: theirs})
    assert plan == fast
    assert ran == [OURS, THEIRS] * (len(ran) // 2)  # in turn


def test_much_slower_candidates_are_left_out_early(monkeypatch):
    """A candidate that is clearly slower must be called four times, and a close one ten times."""
    mixed = f"{OURS}+{THEIRS}", f"{THEIRS}+{OURS}"
    plan, ran = chosen(monkeypatch, {OURS: [2.0], mixed[0]: [1.0], mixed[1]: [1.1], THEIRS: [1.5]})
    assert plan == mixed[0]
    assert [ran.count(name) for name in (OURS, *mixed, THEIRS)] == [4, 10, 10, 4]


@pytest.fixture
def readings(monkeypatch):
    """The readings of the clock by which calls are timed."""
    taken, original = [], trial.perf_counter

    def perf_counter():
        taken.append(original())
        return taken[-1]

    monkeypatch.setattr(trial, "perf_counter", perf_counter)
    return taken


def test_nothing_is_measured_while_a_graph_is_recorded(readings):
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    class Layer(torch.nn.Module):
        def forward(self, x, w):
            return torch.conv2d(x, w)

    with override.enabled(benchmark=True):
        for mode in ("real", "fake", "symbolic"):
            graph = make_fx(Layer(), tracing_mode=mode)(X, W)
            assert torch.equal(graph(X, W), Layer()(X, W)) and readings
            planted.forget()
            readings.clear()
            make_fx(Layer(), tracing_mode=mode)(X, W)
            assert readings == []
        torch.export.export(Layer(), (X, W))
        with FakeTensorMode() as fakes:
            Layer()(fakes.from_tensor(X), fakes.from_tensor(W))
        assert readings == []


def test_a_compiled_graph_is_measured_when_it_runs(readings, monkeypatch):
    """The compiler must record a graph without a measurement. The calls of this graph are like all others."""
    planted.slow_ours(monkeypatch, "conv")
    expected, at_the_end = (torch.conv2d(X, W),), []

    def backend(graph, inputs):
        at_the_end.append(len(readings))
        return graph.forward

    compiled = torch.compile(lambda: (torch.conv2d(X, W),), backend=backend)
    with override.enabled(benchmark=True):
        settled(compiled, expected)
        assert at_the_end == [0] and readings
        assert owners() == {("forward", THEIRS): 1}
    torch.compiler.reset()


def test_calls_that_the_compiler_leaves_to_eager_mode(monkeypatch):
    """Dynamo traces the Python functions that such a frame calls, but must leave the measurement alone."""
    planted.slow_ours(monkeypatch, "conv")

    def network(x):
        try:
            torch._dynamo.graph_break()
        finally:
            x = torch.conv2d(x, W)
        return x

    compiled, expected = torch.compile(network, backend="eager"), (torch.conv2d(X, W),)
    with override.enabled(benchmark=True):
        settled(lambda: (compiled(X),), expected)
        assert owners() == {("forward", THEIRS): 1}
    torch.compiler.reset()


def test_deterministic_algorithms(readings):
    """If results must be the same in each run, ours computes: a measurement could choose otherwise next time."""
    torch.use_deterministic_algorithms(True)
    try:
        with override.enabled(benchmark=True):
            for _ in range(30):
                forward()
            assert readings == [] and owners() == {}
    finally:
        torch.use_deterministic_algorithms(False)


def test_threads(monkeypatch):
    """All calls must be right, and at most one thread may measure a shape at a time."""
    inside, most, lock = [0], [0], threading.Lock()

    def enter():
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])

    planted.slow_theirs(monkeypatch, FORWARD, before=enter)
    slow = kernels.KERNELS[FORWARD].previous

    def previous(*call):
        try:
            return slow(*call)
        finally:
            with lock:
                inside[0] -= 1

    monkeypatch.setattr(kernels.KERNELS[FORWARD], "previous", previous)
    expected = forward()[0]

    def work(_):
        while override.status().benchmark.measuring or not owners():
            assert torch.equal(forward()[0], expected)

    with override.enabled(benchmark=True), ThreadPoolExecutor(4) as pool:
        forward()
        list(pool.map(work, range(4), timeout=120))
        assert owners() == {("forward", OURS): 1} and most[0] == 1


def test_switching(monkeypatch):
    """Choices must hold while measuring is on, and stay known when it is switched on again."""
    expected = forward()
    planted.slow_ours(monkeypatch, "conv")

    def is_ours():
        before = override.status().computed[FORWARD]
        assert all(map(torch.equal, forward(), expected))
        return override.status().computed[FORWARD] > before

    with override.enabled(benchmark=True):
        settled(forward)
        assert not is_ours()
        with override.enabled():
            assert not is_ours() and override.status().benchmark is not None
        with override.enabled(benchmark=False):
            assert is_ours() and override.status().benchmark is None
        assert not is_ours()
    override.enable(benchmark=True)
    assert not is_ours() and override.status().benchmark.measuring == 0
    override.enable()
    assert is_ours() and override.status().benchmark is None
    override.enable("direct", benchmark=True)  # another algorithm has other times
    assert is_ours() and override.status().benchmark.measuring == 1


def test_an_error_during_a_measurement(monkeypatch):
    """An error of either kernel must be the caller's or be passed on, and must not end the measurement."""
    planted.slow_ours(monkeypatch, "conv")
    kernel = kernels.KERNELS[FORWARD]
    expected, errors = forward(), [RuntimeError("a planted error")]
    with override.enabled(benchmark=True):
        forward()
        original = kernel.previous

        def previous(*call):
            if errors:
                raise errors.pop()
            return original(*call)

        monkeypatch.setattr(kernel, "previous", previous)
        with pytest.raises(RuntimeError, match="a planted error"):
            forward()
        settled(forward, expected)
        assert owners() == {("forward", THEIRS): 1}


def test_the_number_of_measured_shapes_is_limited(monkeypatch):
    monkeypatch.setattr(choices, "MOST", 3)
    with override.enabled(benchmark=True):
        for length in range(4, 12):
            functional.conv1d(torch.ones(1, 1, length), torch.ones(1, 1, 3))
        assert override.status().benchmark.measuring == 3


@pytest.mark.parametrize("value", [3, 1.0, b"choices", ["choices"]])
def test_types_of_the_argument(value):
    with pytest.raises(TypeError, match="benchmark must be a bool or the path of a file, not "):
        override.enable(benchmark=value)
    assert not override.is_enabled()
