"""Reasons are data: no call formats a text, and no call fails because a text cannot be formatted."""

import ast
import inspect

import numpy as np
import pytest

import convgrad_cy as cg
from convgrad_cy import calls
from convgrad_cy.cpu import families
from convgrad_cy.cpu.plan.reasons import Ratio, Reason
from convgrad_cy.cpu.small_groups import limits as of_small_groups
from convgrad_cy.cpu.winograd import tilings

#: Sizes of x, taps, padding, dilation. The filter is larger than x, but not than y: an exchange would gain nothing.
NO_GAIN = [(71, 135, 115, 1), (69, 164, 159, 1), (167, 191, 311, 2)]


@pytest.mark.parametrize("x, taps, padding, dilation", NO_GAIN)
def test_an_exchange_that_gains_nothing(x, taps, padding, dilation):
    y = x + 2 * padding - (taps - 1) * dilation
    rng = np.random.default_rng(0)
    dy, w = (rng.integers(-8, 9, (1, 1, size)).astype(np.float32) for size in (y, taps))
    keywords = {"padding": padding, "dilation": dilation}
    calls.forget()
    made = cg.conv_backward_data(dy, w, (1, 1, x), **keywords)
    wide = np.zeros(y + (taps - 1) * dilation)
    for tap in range(taps):
        wide[tap * dilation : tap * dilation + y] += w[0, 0, tap] * dy[0, 0]
    np.testing.assert_array_equal(made[0, 0], wide[padding : padding + x])
    declined = dict(cg.explain("conv_backward_data", [dy.shape, w.shape], x_shape=(1, 1, x), **keywords).declined)
    assert declined["exchanged"] == "it takes inf times as long as direct"


@pytest.mark.parametrize("algorithm", ("auto", "direct"))
@pytest.mark.parametrize("groups", (1, 8))
def test_calls_form_no_text(algorithm, groups, monkeypatch):
    def fail(reason):
        raise AssertionError("a text is formed")

    monkeypatch.setattr(Reason, "__str__", fail)
    calls.forget()
    for size, taps in ((12, 3), (60, 3), (4, 4), (9, 9), (5, 71)):
        x, w = np.ones((2, 8, size, size), np.float32), np.ones((8, 8 // groups, taps, taps), np.float32)
        keywords = {"padding": taps // 2, "groups": groups, "algorithm": algorithm}
        dy = cg.conv(x, w, **keywords)
        cg.conv_backward(dy, x, w, **keywords)
    with pytest.raises(AssertionError, match="a text is formed"):
        cg.explain("conv", [(1, 8, 9), (8, 8, 3)])


@pytest.mark.parametrize("module", (*families.PREFERENCE, tilings, of_small_groups), ids=lambda one: one.__name__)
def test_no_family_formats_its_reasons(module):
    tree = ast.parse(inspect.getsource(module))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    formatted = {function.name for function in functions for node in ast.walk(function) if type(node) is ast.JoinedStr}
    assert formatted == set()


def test_text():
    limit = Reason("{} bytes, more than the limit of {}", 12, 3)
    assert str(Reason("it takes {}", limit)) == f"it takes {limit}" == "it takes 12 bytes, more than the limit of 3"
    assert str(Reason("{:.2f} times", Ratio(5.0, 4.0))) == "1.25 times"
    assert str(Reason("{:.1f} times", Ratio(1, 0))) == "inf times"
    assert limit == Reason("{} bytes, more than the limit of {}", 12, 3) != Reason("{} bytes", 12)
    assert len({limit, Reason("{} bytes, more than the limit of {}", 12, 3)}) == 1
