"""Filters with taps that meet only padding at each position of y."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import INPUTS, OUTPUTS
from operations import (
    DATA_FORMATS,
    DTYPES,
    FILTER_FORMATS,
    OPERATIONS,
    assert_exact,
    bits,
    integer_tensors,
    real_tensors,
)
from problems import parse

import convgrad_cy as cg
from convgrad_cy.problem import reached_taps

#: Problems with such taps at the beginning, at the end, at both; dilated, strided, one axis of several, depthwise.
PROBLEMS = [
    parse(text)
    for text in (
        'mb2ic5iw2oc7ow2kw43pw21n"both"',
        'mb2ic17ih9oc20oh9kh3dh8ph9n"dilated"',
        'mb1ic3ih4iw30oc5oh4ow10kh41kw3sh1sw3ph20pw0n"one_of_two"',
        'mb3ic4iw30oc6ow4kw31sw8dw3pw60n"strided"',
        'mb2g6ic6ih3oc6oh3kh21ph10n"depthwise"',
    )
]
problems = pytest.mark.parametrize("problem", PROBLEMS, ids=str)
operations = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))


@problems
@operations
@pytest.mark.parametrize("data_format", DATA_FORMATS)
@pytest.mark.parametrize("filter_format", FILTER_FORMATS)
def test_exact(problem, operation, data_format, filter_format):
    for dtype in DTYPES:
        tensors, _ = integer_tensors(problem, dtype)
        expected = operation.expected(problem, tensors, data_format, filter_format)
        for algorithm in ("direct", "auto") if dtype in ("float64", "int32") else ("direct",):
            result = operation.call(problem, tensors, data_format, filter_format, algorithm=algorithm)
            assert_exact(result, expected, dtype)


def test_no_tap_is_left():
    """All results must be zero if x lies between two taps at each position."""
    x, w = np.ones((2, 3, 3), np.float32), np.ones((2, 3, 18), np.float32)
    keywords = {"padding": 93, "dilation": 11}
    y = cg.conv(x, w, **keywords)
    assert y.shape == (2, 2, 2) and not y.any()
    assert not cg.conv_backward_data(y + 1, w, x.shape, **keywords).any()


@problems
def test_layouts(problem):
    """The layouts must agree bit by bit, each call with its own array."""
    for name in ("conv", "conv_backward_data"):
        operation, tensors = OPERATIONS[name], real_tensors(problem, "float32")
        plain = operation.call(problem, tensors, algorithm="auto")
        for layout in INPUTS:
            assert bits(operation.call(problem, tensors, layout=layout, algorithm="auto")) == bits(plain)
        for layout in OUTPUTS:
            out = layout(np.full(plain.shape, np.nan, np.float32))
            operation.call(problem, tensors, out=out, algorithm="auto")
            assert bits(out) == bits(plain)
        other = operation.call(problem, real_tensors(problem, "float32", 1), algorithm="auto")
        assert bits(other) != bits(plain) or not plain.any()


@problems
def test_taps_that_nothing_meets_reach_nothing(problem):
    """Taps that meet only padding must reach no result, not even with NaN."""
    x, w, y = real_tensors(problem, "float32")
    plain, spoilt = w.copy(), np.full_like(w, np.nan)
    inside = (..., *(slice(*reached_taps(*axis)) for axis in axes_of(problem)))
    spoilt[inside] = w[inside]
    for name in ("conv", "conv_backward_data"):
        results = [
            OPERATIONS[name].call(problem, (type(real_tensors(problem, "float32")))(x, f, y)) for f in (plain, spoilt)
        ]
        assert bits(results[0]) == bits(results[1])


def axes_of(problem):
    pads = [begin for begin, _ in problem.padding]
    return zip(problem.x, problem.y, problem.kernel, problem.stride, problem.dilation, pads, strict=True)


axis = st.tuples(*(st.integers(1, most) for most in (9, 5, 12, 4, 4)), st.integers(0, 60))


@settings(max_examples=500)
@given(axis=axis)
def test_reached_taps(axis):
    """No tap outside may meet x. Both ends must, unless no tap does, or a stride leaps over x."""
    x, y, kernel, stride, dilation, pad = axis
    first, end = reached_taps(*axis)
    meet = [any(0 <= p * stride + t * dilation - pad < x for p in range(y)) for t in range(kernel)]
    assert 0 <= first < end <= kernel and not any(meet[:first]) and not any(meet[end:])
    if any(meet) and stride <= x:
        assert meet[first] and meet[end - 1]


def test_explained():
    """The plan must have only the reached taps, except if Winograd's algorithm is asked for."""
    problem = PROBLEMS[1]
    plan = cg.explain("conv", [problem.x_shape, problem.w_shape], **problem.keywords)
    assert dict(plan.declined)["winograd"] == "there are fewer than 2000000 products"
    wide = {"padding": 36, "dilation": 36}
    plan = cg.explain("conv", [(8, 64, 33, 33), (64, 64, 3, 3)], **wide)
    assert dict(plan.declined)["winograd"] == "it cannot compute a filter of one tap" and plan.shape == (8, 64, 33, 33)
    plan = cg.explain("conv_backward_filter", [(8, 64, 33, 33)] * 2, w_shape=(64, 64, 3, 3), **wide)
    assert dict(plan.declined)["winograd"] == "it cannot compute a filter of one tap" and plan.shape == (64, 64, 3, 3)


@pytest.mark.parametrize("shape", [(2, 16, 1, 1), (2, 16, 1, 24)])
def test_winograd_by_name_has_all_taps(shape):
    """The whole filter must be computed: it decides about legality, although only one tap, or row of taps, meets x."""
    plan = cg.explain("conv", [shape, (16, 16, 3, 3)], padding=1, algorithm="winograd")
    assert plan.family == "winograd" and plan.details["points of a tile on an axis"][1] > 1
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(one).astype(np.float32) for one in (shape, (16, 16, 3, 3)))
    expected = cg.conv(x.astype(np.float64), w.astype(np.float64), padding=1)
    result = cg.conv(x, w, padding=1, algorithm="winograd")
    assert abs(result - expected).max() <= 2e-5 * abs(expected).max()


def test_a_known_call_keeps_no_array():
    x, w = np.ones((2, 5, 2), np.float32), np.ones((7, 5, 43), np.float32)
    before = sys.getrefcount(x), sys.getrefcount(w)
    cg.conv(x, w, padding=21)
    assert (sys.getrefcount(x), sys.getrefcount(w)) == before
