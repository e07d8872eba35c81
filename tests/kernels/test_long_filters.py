"""wgrad of filters that are cut into blocks of taps, because their sums would leave the cache."""

from math import prod

import numpy as np
import pytest
from operations import DTYPES, OPERATIONS, assert_exact, bits, integer_tensors, real_tensors
from problems import parse

import convgrad_cy as cg
from convgrad_cy import calls, cpu, dtypes
from convgrad_cy.cpu.direct.long_filters import most_taps, split_taps
from convgrad_cy.cpu.direct.plan import plan
from convgrad_cy.cpu.machine import Machine
from convgrad_cy.cpu.plan.sum_problem import sum_problem_of
from convgrad_cy.cpu.rewrites import exchanged
from convgrad_cy.problem import WGRAD, ConvProblem

WGRAD_OF = OPERATIONS["conv_backward_filter"]
LAYERS = (
    "mb2ic3iw40oc5kw17pw4",
    "mb2g2ic36ih9iw20oc70kh4kw11sh2sw1ph1pw3",
    "mb1ic20id4ih7iw9oc2kd3kh4kw5pd1ph2pw2",  # x and y are exchanged if it has one tap for many channels
    "mb1ic32ih11oc2kh5ph2",
    "mb3ic2iw50oc70kw13dw2sw3pw9",
    "mb1ic2iw30oc3kw30pw15",
    "mb2g3ic60ih8iw30oc69kh5kw9ph2",
)
FORMATS = (("NCX", "OIX"), ("NXC", "XIO"), ("NCX", "XIO"))


@pytest.fixture(autouse=True)
def not_exchanged(monkeypatch):
    """Turn the exchange off: the sum of the definition is tested here, with its own taps."""
    monkeypatch.setattr(exchanged, "refusal", lambda task: "not here")
    calls.forget()
    yield
    calls.forget()


@pytest.fixture
def short(machine_with):
    """Lower the limits of the tuning so that few taps count as many."""
    few = 32 * cpu.this_machine().vector_bytes
    tuning = cpu.this_machine().tuning._replace(large_filter_bytes=few, sums_bytes=8 << 10, box_positions=12)
    machine_with(own_tuning=tuning)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", LAYERS)
def test_exact(text, dtype):
    problem = parse(f'{text}n"long"')
    shapes = [problem.x_shape, problem.y_shape]
    plan = cg.explain("conv_backward_filter", shapes, w_shape=problem.w_shape, algorithm="direct", **problem.keywords)
    assert plan.family == "direct" and plan.details["walks"] > 1
    tensors, _ = integer_tensors(problem, dtype)
    for formats in FORMATS:
        for threads in (1, 3):
            with cg.num_threads(threads):
                result = WGRAD_OF.call(problem, tensors, *formats, algorithm="direct")
            assert_exact(result, WGRAD_OF.expected(problem, tensors, *formats), dtype)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("dtype", ("float32", "bfloat16"))
@pytest.mark.parametrize("text", LAYERS)
def test_same_bits(text, dtype):
    """The bits must be the same for any threads and layout."""
    problem = parse(f'{text}n"long"')
    tensors, found = real_tensors(problem, dtype), set()
    for formats in FORMATS:
        for threads in (1, 2, 5):
            with cg.num_threads(threads):
                result = WGRAD_OF.call(problem, tensors, *formats, algorithm="direct")
            if formats[1] == "XIO":
                result = np.moveaxis(result, (-1, -2), (0, 1))
            found.add(bits(np.ascontiguousarray(result)))
    assert len(found) == 1


def test_few_bytes():
    """A million taps must take few bytes: no task has all of them, and slices are few."""
    x, w = np.ones((1, 1, 1_000_100), np.float32), (1, 1, 1_000_000)
    dy = np.arange(101, dtype=np.float32).reshape(1, 1, 101)
    details = cg.explain("conv_backward_filter", [x.shape, dy.shape], w_shape=w, algorithm="direct").details
    assert details["walks"] > 10 and details["scratch bytes"] <= 64 << 20
    assert (cg.conv_backward_filter(x, dy, w, algorithm="direct") == dy.sum()).all()


@pytest.mark.parametrize("vector_bytes", (16, 32, 64))
@pytest.mark.parametrize(
    ("kernel", "channels", "outputs"), (((1, 1, 99_999), 1, 1), ((40, 50, 60), 8, 300), ((1, 2, 9_999), 3, 64))
)
def test_blocks_are_all_taps_once(kernel, channels, outputs, vector_bytes):
    """The blocks must cover all taps once. A block has whole rows if there is room."""
    machine = Machine(6, 4 * vector_bytes, vector_bytes, False, 32 << 20, threads=2)
    problem = ConvProblem(1, 1, channels, outputs, kernel, (1, 1, 1), kernel)
    sums = sum_problem_of(WGRAD, problem, dtypes.TABLE[2], machine.tile, False)
    cut, ((*parts,),) = split_taps(sums, [[walk] for walk in sums.walks])
    most = most_taps(sums)
    assert all(prod(axis.taps for axis in walk) <= most for walk in parts) and cut.walks == parts
    assert 1 < len(parts) <= 4 * prod(kernel) / most + 4
    seen = np.zeros(kernel, int)
    for walk in parts:
        seen[tuple(slice(axis.filter_begin, axis.filter_begin + axis.taps) for axis in walk)] += 1
        for axis in walk:
            assert axis.source_begin == axis.filter_begin and axis.positions == 1
    assert (seen == 1).all()
    steps = plan(WGRAD, problem, dtypes.TABLE[2], True, machine).steps
    assert len(steps) == len(parts)
