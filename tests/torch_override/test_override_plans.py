"""Plans that fail or are out of date, and the settings that they are for: PyTorch computes if no plan is right."""

import ctypes
import logging
from pathlib import Path
from threading import Event, Thread

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

import convgrad_cy.torch as override  # noqa: E402
from convgrad_cy import _cpu_features, cpu  # noqa: E402
from convgrad_cy._aten import UNREADABLE, Result  # noqa: E402
from convgrad_cy.calls import prepared  # noqa: E402
from convgrad_cy.cpu.machine import matrix_units  # noqa: E402
from convgrad_cy.cpu.plan import walks  # noqa: E402
from convgrad_cy.settings import threads  # noqa: E402
from convgrad_cy.torch import call_texts, kernels, plans  # noqa: E402

pytestmark = pytest.mark.torch

functional = torch.nn.functional
OPERATORS = ("_convolution", "convolution_backward")


@pytest.fixture(autouse=True)
def nothing_known():
    kernels.forget()
    yield
    kernels.forget()


def step(dtype=torch.float32):
    """y, dx and dw of ones, which are exact."""
    x, w = torch.ones(2, 4, 6, 6, dtype=dtype).requires_grad_(), torch.ones(3, 4, 3, 3, dtype=dtype).requires_grad_()
    y = functional.conv2d(x, w)
    dx, dw = torch.autograd.grad(y, (x, w), torch.ones_like(y))
    assert (y == 36).all() and (dw == 32).all() and dx.amax() == 27
    return x, w


def passed_on(before):
    """(operator, reason) -> calls since ``before``."""
    after = override.status()
    assert after.computed == before.computed
    since = {key: count - before.passed_on.get(key, 0) for key, count in after.passed_on.items()}
    return {key: count for key, count in since.items() if count}


ERRORS = (
    ZeroDivisionError("by the planner"),
    ValueError("max() arg is an empty sequence"),
    AssertionError(),
    KeyError(3),
)


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_error_of_a_planner(monkeypatch, caplog, error):
    """PyTorch must compute the call. The error must be logged once for each operator, with its place, and counted."""

    def prepare(*arguments):
        raise error

    monkeypatch.setattr(cpu, "prepare", prepare)
    reason = f"an error of convgrad_cy, {type(error).__name__}: {error}"
    for operator in OPERATORS:
        kernels.PASSED_ON.pop((operator, reason), None)
    before = override.status()
    with override.enabled(), caplog.at_level(logging.INFO, "convgrad_cy.torch"):
        for _ in range(2):
            step()
        kernels.forget()
        step()
    assert passed_on(before) == {(operator, reason): 3 for operator in OPERATORS}
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 2
    for operator, record in zip(OPERATORS, caplog.records, strict=True):
        assert record.getMessage().startswith(f"aten::{operator} went to PyTorch: {reason}")
        assert record.exc_info[1] is error and "in prepare" in caplog.text
    kernels.forget()
    monkeypatch.undo()
    with override.enabled():
        step()
    assert all(
        count == before.computed[name] + ("CUDA" not in name) for name, count in override.status().computed.items()
    )


class Broken:
    """Work that is refused when it is run, after it has written nonsense."""

    def run(self, *arrays):
        ctypes.memset(arrays[-1], 7, 4)  # an address
        raise ValueError("a plan that does not belong to these arrays")


def test_an_error_of_a_plan_that_is_run(monkeypatch, caplog):
    monkeypatch.setattr(prepared, "prepare", lambda *arguments: Broken())
    reason = "an error of convgrad_cy, ValueError: a plan that does not belong to these arrays"
    before = override.status()
    with override.enabled(), caplog.at_level(logging.INFO, "convgrad_cy.torch"):
        for _ in range(3):
            step()
    assert passed_on(before) == {(operator, reason): 3 for operator in OPERATORS}
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 2


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_errors_that_are_the_callers(monkeypatch, caplog, error):
    """Too little memory, and a user's interrupt, must be raised."""

    def prepare(*arguments):
        raise error

    monkeypatch.setattr(cpu, "prepare", prepare)
    with override.enabled(), pytest.raises(error):
        functional.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2))
    assert not caplog.records


def test_a_stride_of_too_many_phases(monkeypatch, caplog):
    """A documented refusal of a planner is no error: it must be counted, and not logged."""
    monkeypatch.setattr(walks, "MOST_WALKS", 8)
    before = override.status()
    dy, w = torch.ones(1, 1, 3), torch.ones(1, 1, 9)
    with override.enabled("direct"), caplog.at_level(logging.INFO, "convgrad_cy.torch"):
        y = functional.conv_transpose1d(dy, w, stride=9, padding=1)
    assert y.sum() == 25
    ((operator, reason),) = passed_on(before)
    assert operator == "_convolution" and reason.startswith("stride must have at most 8 phases")
    assert not caplog.records


def test_other_threads_run_while_pytorch_computes():
    """A call that is passed on must not hold Python's lock."""
    ticks, stop = [0], Event()

    def tick():
        while not stop.wait(0.001):
            ticks[0] += 1

    x, w = torch.ones(2, 64, 56, 56, dtype=torch.int64), torch.ones(64, 64, 3, 3, dtype=torch.int64)
    thread = Thread(target=tick)
    thread.start()
    try:
        before = override.status()
        with override.enabled():
            begun = ticks[0]
            y = functional.conv2d(x, w)
            ended = ticks[0]
    finally:
        stop.set()
        thread.join()
    assert passed_on(before) == {("_convolution", "tensors of torch.int64"): 1} and (y == 576).all()
    assert ended - begun > 3


def test_a_setting_that_changes_during_planning(monkeypatch):
    """The call must end with the plan that it began. The next one must get a plan of the new setting."""
    x, w = torch.randn(2, 64, 28, 28), torch.randn(64, 64, 3, 3)
    override.enable("direct")
    expected = functional.conv2d(x, w)
    override.enable("auto")
    kernels.forget()
    original = prepared.prepare

    def prepare(*arguments):
        work = original(*arguments)
        thread = Thread(target=override.enable, args=["direct"])
        thread.start()
        thread.join()
        return work

    with monkeypatch.context() as patched:
        patched.setattr(prepared, "prepare", prepare)
        assert not torch.equal(functional.conv2d(x, w), expected)
    assert override.status().algorithm == "direct"
    assert torch.equal(functional.conv2d(x, w), expected)


@pytest.fixture
def maker(monkeypatch):
    """A function that returns the ``make`` of a kernel with another planner."""
    monkeypatch.setattr(kernels, "_KNOWN", [])
    return lambda plan: kernels.kernel("_convolution", lambda known, make, *rest: make, plan, call_texts.forward)


def test_a_plan_is_made_for_the_threads_of_its_key(monkeypatch, maker):
    """A plan must be for the threads of its key, although the number may be another one by now."""
    monkeypatch.setattr(threads, "_has_openmp", True)
    make = maker(lambda *call: threads.get_num_threads())
    assert [make(("key", number)) for number in (1, 3, 2)] == [1, 3, 2]


def test_a_tensor_without_memory_is_no_example(maker):
    """Nothing may be planned or remembered for a tensor without memory: the next call like it may have memory."""
    freed, w = torch.ones(1, 2, 5), torch.ones(3, 2, 2)
    freed.untyped_storage().resize_(0)
    make, rest = maker(plans.forward), (w, None, [1], [0], [1], False, [0], 1)
    assert make((1,), freed, *rest) == UNREADABLE
    assert not kernels._KNOWN[0].entries
    assert type(make((1,), torch.ones(1, 2, 5), *rest)) is Result
    assert len(kernels._KNOWN[0].entries) == 1


FOUND = {
    ("AMX-BF16", "AMX-FP16", "AVX512-FP16"): {torch.bfloat16: "AMX-BF16", torch.float16: "AMX-FP16 and AVX512-FP16"},
    ("AMX-BF16", "AVX512-FP16"): {torch.bfloat16: "AMX-BF16", torch.float16: "AVX512-FP16"},
    ("AVX512-FP16",): {torch.float16: "AVX512-FP16"},
    (): {},
}


@pytest.mark.parametrize("units", FOUND)
def test_types_that_the_processor_multiplies(monkeypatch, units):
    """If PyTorch has instructions that we lack, it must compute the types of these instructions."""
    monkeypatch.setattr(matrix_units, "units", lambda: {*units})
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        before = override.status()
        with override.enabled():
            for _ in range(2):
                step(dtype)
        used = FOUND[units].get(dtype)
        if used is None:
            after = override.status()
            assert all(
                count == before.computed[name] + 2 * ("CUDA" not in name) for name, count in after.computed.items()
            )
            assert after.passed_on == before.passed_on
        else:
            reason = f"tensors of {dtype}, which PyTorch multiplies with {used} here"
            assert passed_on(before) == {(operator, reason): 2 for operator in OPERATORS}


AMX_BF16, AVX512_FP16, AMX_TILE, AMX_FP16 = 1 << 22, 1 << 23, 1 << 24, 1 << 21
VECTORS, TILES = 0xE7, 0x60000  # bits of XCR0, including those for SSE and AVX
SAPPHIRE_RAPIDS = AMX_BF16 | AVX512_FP16 | AMX_TILE


@pytest.mark.parametrize(
    "edx, eax, saved, expected",
    [
        (SAPPHIRE_RAPIDS, 0, VECTORS | TILES, ("AMX-BF16", "AVX512-FP16")),
        (SAPPHIRE_RAPIDS, AMX_FP16, VECTORS | TILES, ("AMX-BF16", "AMX-FP16", "AVX512-FP16")),
        # The operating system does not save the tiles, or one of their two registers, or no vectors either.
        (SAPPHIRE_RAPIDS, AMX_FP16, VECTORS, ("AVX512-FP16",)),
        (SAPPHIRE_RAPIDS, AMX_FP16, VECTORS | 0x20000, ("AVX512-FP16",)),
        (SAPPHIRE_RAPIDS, AMX_FP16, 0x7, ()),
        (AMX_BF16, AMX_FP16, VECTORS | TILES, ()),
        (AVX512_FP16, 0, VECTORS, ("AVX512-FP16",)),
        (AMX_TILE, 0, VECTORS | TILES, ()),
        (0, 0, VECTORS | TILES, ()),
    ],
)
def test_flags_of_processors(edx, eax, saved, expected):
    assert _cpu_features.matrix_units_of(edx, eax, saved) == expected


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="this system does not list its flags")
def test_flags_of_this_processor():
    """The flags must be the ones that Linux lists for programs."""
    flags = Path("/proc/cpuinfo").read_text().split()
    names = {"AMX-BF16": "amx_bf16", "AMX-FP16": "amx_fp16", "AVX512-FP16": "avx512_fp16"}
    assert _cpu_features.matrix_units() == tuple(name for name, flag in names.items() if flag in flags)
