"""Data gradients computed as blocks: few channels under kernels larger than their stride."""

import numpy as np
import pytest
from checks import check_formats, check_layouts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from operations import (
    DATA_FORMATS,
    DTYPES,
    FILTER_FORMATS,
    OPERATIONS,
    assert_exact,
    integer_tensors,
)
from problems import parse

import convgrad_cy as cg
from convgrad_cy import calls, cpu
from convgrad_cy.cpu.plan.pipeline import Sequence
from convgrad_cy.cpu.rewrites import overlaps

#: Problems that gain: a kernel of whole strides and not, padding within a block and beyond one, two axes, several
#: channels, and elements of x that no tap reaches.
PROBLEMS = [
    parse(text)
    for text in (
        'mb2ic1iw4096oc16ow13kw1024sw256n"whole"',
        'mb2ic1iw4130oc24ow64kw160sw64pw32n"half_a_stride_more"',
        'mb1ic2iw1100oc34ow34kw100sw33pw61n"padding_of_strides"',
        'mb1ic4ih61iw50oc28oh13ow11kh12kw10sh4sw4n"two_axes"',
        'mb1ic1id20ih23iw26oc9od5oh5ow6kd8kh8kw6sd4sh4sw4pd2pw0ph2n"three_axes"',
    )
]
GRADIENTS = {name: OPERATIONS[name] for name in ("conv_backward_data", "conv_transpose")}
problems = pytest.mark.parametrize("problem", PROBLEMS, ids=str)


@pytest.fixture(autouse=True)
def small_ones(request, machine_with):
    """Accept problems of few products, too: they take the tests less time."""
    if "tuning" not in request.keywords:
        machine_with(own_tuning=cpu.this_machine().tuning._replace(serial_products=0))


@pytest.fixture
def runs(monkeypatch):
    """Collect the gradients that are computed with copies."""
    counted, run = [], Sequence.run

    def counting(self, *arrays):
        counted.append(self)
        run(self, *arrays)

    monkeypatch.setattr(Sequence, "run", counting)
    return counted


@problems
@pytest.mark.parametrize("operation", GRADIENTS.values(), ids=list(GRADIENTS))
@pytest.mark.parametrize("data_format", DATA_FORMATS)
@pytest.mark.parametrize("filter_format", FILTER_FORMATS)
def test_exact(problem, operation, data_format, filter_format, runs):
    dtypes = DTYPES if data_format == "NCX" else ("float32", "float64")
    for dtype in dtypes:
        tensors, _ = integer_tensors(problem, dtype)
        result = operation.call(problem, tensors, data_format, filter_format)
        assert_exact(result, operation.expected(problem, tensors, data_format, filter_format), dtype)
    assert len(runs) == len(dtypes)


@problems
def test_layouts(problem):
    check_layouts(OPERATIONS["conv_backward_data"], problem, threads=(1, 2))
    check_formats(OPERATIONS["conv_backward_data"], problem, threads=(1, 2))


@problems
def test_infinity_reaches_what_its_taps_do(problem):
    """An infinity must reach the results of its taps only.

    Elements with a tap less must have no term with a zero tap.
    """
    operation, (x, w, dy) = OPERATIONS["conv_backward_data"], integer_tensors(problem, "float32")[0]
    dy = dy.copy()
    dy[(0, 1, *(size // 2 for size in dy.shape[2:]))] = np.inf
    tensors = type(integer_tensors(problem, "float32")[0])(x, w, dy)
    with np.errstate(invalid="ignore"):
        expected = operation.expected(problem, tensors)
        result = operation.call(problem, tensors)
    np.testing.assert_array_equal(np.isfinite(result), np.isfinite(expected))
    assert np.isfinite(expected).any() and not np.isfinite(expected).all()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_geometry(data):
    """Any geometry, however small, must be exact: kernel, stride, padding, and a rest at the end of x."""
    rank = data.draw(st.integers(1, 2))
    axes = []
    for _ in range(rank):
        kernel = data.draw(st.integers(1, 9))
        stride, y = (data.draw(st.integers(*ends)) for ends in ((1, kernel), (1, 4)))
        pad = tuple(data.draw(st.integers(0, kernel + 2)) for _ in range(2))
        over = data.draw(st.integers(0, stride - 1))
        size = (y - 1) * stride + kernel - sum(pad) + over
        if size < 1:
            return
        axes.append((size, kernel, stride, pad, y))
    sizes, kernels, strides, pads, ys = zip(*axes, strict=True)
    channels = data.draw(st.integers(1, 3))
    rng = np.random.default_rng(0)
    dy = rng.integers(-3, 4, (2, 3, *ys)).astype(np.float32)
    w = rng.integers(-3, 4, (3, channels, *kernels)).astype(np.float32)

    def gradient(**keywords):
        calls.forget()
        return cg.conv_backward_data(dy, w, (2, channels, *sizes), stride=strides, padding=pads, **keywords)

    expected = gradient(algorithm="direct")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlaps, "problem_refusal", lambda *_: None)
        result = gradient()
    calls.forget()
    np.testing.assert_array_equal(result, expected)


def test_all_taps_meet_padding():
    """If all taps meet padding, x must be zero, also if its memory held other values."""
    dy, w = np.ones((1, 3, 1), np.float32), np.ones((3, 1, 4), np.float32)
    out = np.full((1, 1, 2), np.nan, np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlaps, "problem_refusal", lambda *_: None)
        result = cg.conv_backward_data(dy, w, out.shape, stride=4, padding=((5, 0),), out=out)
    np.testing.assert_array_equal(result, np.zeros_like(out))


@pytest.mark.tuning
@pytest.mark.parametrize(
    ("text", "reason"),
    (
        ('mb1ic1iw64oc8ow13kw16sw4n"small"', "fewer than 4000000 products"),
        ('mb2g2ic2iw16384oc700ow61kw1024sw256n"groups"', "there are groups"),
        ('mb2ic17iw16384oc70ow61kw1024sw256n"channels"', "more than 16 channels"),
        ('mb1ic1iw8980oc2000ow300kw10sw30n"gaps"', "smaller than the stride"),
        ('mb9ic2iw25648oc16ow800kw80sw32n"few_products"', "fewer than 96 products"),
        ('mb8ic3ih224oc64oh112kh7sh2ph3n"few_elements"', "a part of fewer than 32 elements"),
    ),
)
def test_declines(text, reason):
    problem = parse(text)
    found = cg.explain(
        "conv_backward_data", [problem.y_shape, problem.w_shape], x_shape=problem.x_shape, **problem.keywords
    )
    assert reason in dict(found.declined)["overlaps"]


def test_explained():
    problem = PROBLEMS[1]
    found = cg.explain(
        "conv_backward_data", [problem.y_shape, problem.w_shape], x_shape=problem.x_shape, **problem.keywords
    )
    blocks = 2 * (66 * 32 + 65 * 32)  # images x blocks x elements of both parts
    assert found.family == "overlaps" and found.details["parts of a cell"] == 2
    assert 4 * blocks <= found.details["scratch bytes"] <= 4 * (blocks + 24 * 160)
