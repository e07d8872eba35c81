"""Rows of channels last, cut into their ends and the part between, which is read in place."""

from itertools import chain

import numpy as np
import pytest
from operations import DTYPES, OPERATIONS, assert_exact, bits, integer_tensors, real_tensors
from problems import parse
from test_segments import terms

from convgrad_cy import calls
from convgrad_cy.cpu import direct
from convgrad_cy.cpu.direct.padding import without_ends
from convgrad_cy.cpu.machine.tuning import WIDE
from convgrad_cy.problem import ConvProblem, conv_size

LAYERS = (
    parse('mb2ic5iw300oc64kw3pw1n"1d_long_row"'),
    parse('mb3g2ic40iw500oc128kw7dw3pw9n"1d_long_row_of_groups"'),
    parse('mb2ic20iw400oc64kw4sw2pw1n"1d_long_row_strided"'),
    parse('mb1ic300iw90oc66kw2pw0n"1d_long_row_unpadded"'),
    parse('mb2ic9ih4iw70oc64kh3ph1kw3pw1n"2d_padded_rows"'),
)
CUT = ("1d_long_row", "1d_long_row_of_groups", "1d_long_row_strided")
FORMATS = ("NXC", "XIO")


@pytest.mark.parametrize("stride, dilation, pad", ((1, 1, 1), (1, 5, 7), (2, 1, 3), (3, 2, 0)))
@pytest.mark.parametrize("row", (4, 90, 200))
def test_terms(stride, dilation, pad, row):
    """Each part must have the walk's taps, the terms must be the same, and at most one part may see no padding."""
    axes = (1, 1, stride), (1, 1, dilation)
    y = tuple(map(conv_size, (1, 2, row), (1, 1, 3), *axes, ((0, 0), (0, 0), (pad, pad))))
    problem = ConvProblem(2, 1, 1, 1, (1, 2, row), y, (1, 1, 3), *axes, (0, 0, pad))
    for walks in ([problem.forward_walk()], problem.backward_walks()):
        parts = without_ends(walks, WIDE)
        assert terms(walks)[0] == terms([*chain(*parts)])[0]
        for walk, its_parts in zip(walks, parts, strict=True):
            assert {axis.taps for axis in chain(*its_parts)} == {axis.taps for axis in walk}
            inner = [part for part in its_parts if not terms([part])[1]]
            assert (len(inner) == 1 and len(its_parts) <= 3) or its_parts == [walk]
            if len(its_parts) > 1:
                assert 8 * inner[0][2].positions >= 7 * walk[2].positions


@pytest.mark.parametrize("problem", LAYERS, ids=str)
@pytest.mark.parametrize("dtype", ("float16", "float32"))
@pytest.mark.parametrize("data_format", ("NCX", "NXC"))
def test_are_cut(monkeypatch, problem, dtype, data_format):
    """Long rows of channels last must be cut if their elements can be read in place."""
    made = []
    monkeypatch.setattr(direct, "make_plan", lambda *a, make=direct.make_plan: made.append(make(*a)) or made[-1])
    calls.forget()
    tensors, _ = integer_tensors(problem, dtype)
    OPERATIONS["conv"].call(problem, tensors, data_format, layout=np.ascontiguousarray)
    cut = problem.name in CUT and dtype == "float32" and data_format == "NXC"
    assert len(made[-1].steps) == (4 if cut else 1)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("problem", LAYERS, ids=str)
def test_exact(operation, dtype, problem):
    tensors, _ = integer_tensors(problem, dtype)
    result = operation.call(problem, tensors, *FORMATS, layout=np.ascontiguousarray)
    assert_exact(result, operation.expected(problem, tensors, *FORMATS), dtype)


@pytest.mark.parametrize("operation", ("conv", "conv_backward_data"))
@pytest.mark.parametrize("problem", LAYERS, ids=str)
def test_bits_and_nonfinite_values(operation, problem):
    """The bits must equal the bits of channels first. Infinities in the filter must meet no padding."""
    operation, tensors = OPERATIONS[operation], real_tensors(problem, "float32")
    for value in (1.0, np.nan, np.inf):
        w = tensors.w.copy()
        w.reshape(-1)[::131] = value
        first, last = (
            operation.call(problem, tensors._replace(w=w), data_format, layout=np.ascontiguousarray)
            for data_format in ("NCX", "NXC")
        )
        last = np.moveaxis(last, -1, 1)
        if value == 1:
            assert bits(last) == bits(first)
        np.testing.assert_array_equal(last, first)
