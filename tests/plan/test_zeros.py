"""A problem without products: the result is zeros, and no family is asked to compute it."""

import numpy as np
import pytest
from operations import DTYPES, dtype_of

import convgrad_cy as cg
from convgrad_cy import calls, cpu
from convgrad_cy.cpu import families
from convgrad_cy.problem import FPROP, ConvProblem

#: The name of a function, the shapes of its two arrays, and its other arguments.
PADDED = [
    ("conv", [(1, 4, 0), (4, 4, 5000)], {"padding": 5000}),
    ("conv", [(1, 64, 0, 9), (4, 64, 9, 9)], {"padding": 9}),
    ("conv_transpose_backward_data", [(1, 3, 0), (3, 3, 3)], {"padding": 3, "dilation": 2}),
    ("conv_backward_filter", [(1, 1, 0), (1, 1, 2)], {"w_shape": (1, 1, 1), "padding": 1}),
    ("conv_backward_filter", [(1, 8, 0), (1, 1, 2)], {"w_shape": (1, 8, 1), "padding": ((0, 2),)}),
    ("conv_transpose_backward_filter", [(1, 1, 5), (1, 1, 0)], {"w_shape": (1, 1, 2), "padding": 3}),
]
EMPTY = [
    ("conv", [(2, 0, 9), (4, 0, 3)], {}),
    ("conv_backward_data", [(2, 0, 7), (0, 3, 3)], {"x_shape": (2, 3, 9)}),
    ("conv_backward_filter", [(0, 3, 9), (0, 4, 7)], {"w_shape": (4, 3, 3)}),
    ("conv_transpose", [(2, 0, 7), (0, 3, 3)], {}),
]
CASES = PADDED + EMPTY


def called(case, dtype="float32", **more):
    name, shapes, keywords = case
    keywords = {**keywords, **more}
    asked = [keywords.pop(key) for key in ("x_shape", "w_shape") if key in keywords]
    return getattr(cg, name)(*(np.ones(shape, dtype_of(dtype)) for shape in shapes), *asked, **keywords)


@pytest.mark.parametrize("algorithm", ("auto", "direct", "winograd"))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_results(case, dtype, algorithm):
    made = called(case, dtype, algorithm=algorithm)
    assert made.size and made.dtype == dtype_of(dtype) and not made.astype(np.float64).any()
    backwards = np.full(made.shape[::-1], 7, made.dtype).T
    assert called(case, dtype, algorithm=algorithm, out=backwards) is backwards
    assert not backwards.astype(np.float64).any()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_family_is_asked(case, monkeypatch):
    monkeypatch.setattr(families, "pipeline", None)
    monkeypatch.setattr(families, "chosen", None)
    calls.forget()
    assert not called(case).any()
    name, shapes, keywords = case
    found = cg.explain(name, shapes, **keywords)
    assert (found.family, found.declined, found.details) == (None, (), {})
    assert str(found).endswith("nothing to compute: no sum has a term, so the result is zeros")


def test_both_gradients():
    """The filter's gradient must be zeros; x's gradient must have no element."""
    dy, x, w = np.ones((1, 1, 2)), np.ones((1, 1, 0)), np.ones((1, 1, 1))
    out = np.full((1, 1, 1), 7.0)
    dx, dw = cg.conv_backward(dy, x, w, padding=1, out=(None, out))
    assert dx.shape == (1, 1, 0) and dw is out and not out.any()


def test_what_comes_before_is_done_first():
    problem = ConvProblem(1, 1, 1, 1, (1, 1, 0), (1, 1, 2), (1, 1, 1), pad_begin=(0, 0, 1))
    result, seen = np.ones(2), []
    operands = [None, None, cpu.Operand(2, 0, result.reshape(1, 1, 1, 1, 1, 2))]
    work = cpu.prepare(FPROP, problem, None, "auto", operands)
    work.run(np.ones(0), np.ones(1), result, lambda: seen.append(result.copy()))
    assert seen[0].all() and not result.any()
