"""Walks that are planned once for each shape class expand to all walks of the definition."""

from itertools import product
from math import prod
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import convgrad_cy as cg
from convgrad_cy import calls, cpu, dtypes
from convgrad_cy.cpu.direct.plan import plan
from convgrad_cy.cpu.plan import walks
from convgrad_cy.cpu.plan.walks import walks_of
from convgrad_cy.problem import DGRAD, ConvProblem, conv_size

AXES = st.tuples(st.integers(1, 30), st.integers(1, 12), st.integers(1, 9), st.integers(1, 7), st.integers(0, 5))


def problem_of(axes):
    x, kernel, stride, dilation, pad = zip(*axes, strict=True)
    y = tuple(conv_size(*axis, (p, p)) for *axis, p in zip(x, kernel, stride, dilation, pad, strict=True))
    return None if min(y) <= 0 else ConvProblem(1, 1, 1, 1, x, y, kernel, stride, dilation, pad)


@pytest.mark.parametrize("few", (0, walks.FEW_WALKS))
@settings(max_examples=150)
@given(axes=st.tuples(AXES, AXES, AXES))
def test_rows_are_those_of_all_walks(few, axes):
    """The rows must expand to all walks, also if a shape class has several rows. The first one identifies it."""
    problem = problem_of(axes)
    if problem is None:
        return
    kept, walks.FEW_WALKS = walks.FEW_WALKS, few
    try:
        every = walks_of.__wrapped__(problem, True)  # not the remembered walks of the other number
    finally:
        walks.FEW_WALKS = kept
    defined = problem.backward_walks()
    assert len(every) == len(defined) == sum(every.counts)
    extents = [len(phases) for phases in problem.backward_phases()]
    assert problem.count_backward_phases() == prod(extents)
    assert every.extents == (extents if prod(extents) else [1, 1, 1])  # without phases, one walk leaves zeros
    rows, first = every.rows([[[*sum(walk, ()), i]] for i, walk in enumerate(every.shapes)])
    assert rows[:, :-1].tolist() == [list(sum(walk, ())) for walk in defined]
    assert np.array_equal(np.arange(len(defined)), np.zeros(1) if len(defined) == 1 else first)
    assert np.bincount(rows[:, -1]).tolist() == every.counts
    assert rows[-1, -1] == len(every.shapes) - 1
    lengths = [1 + i % 3 for i in range(len(every.shapes))]
    many, first = every.rows(
        [[[*sum(w, ()), i, j] for j in range(n)] for i, (w, n) in enumerate(zip(every.shapes, lengths, strict=True))]
    )
    expected = [[*row, j] for row in rows.tolist() for j in range(lengths[row[-1]])]
    assert many.tolist() == expected
    if len(defined) > 1:
        begins = np.flatnonzero(np.diff(first, prepend=-1))
        assert begins.tolist() == np.unique(first).tolist() and len(begins) == len(defined)


def test_kinds_are_few():
    """1024 phases must have few shape classes: at most for the two ends of rows and columns."""
    problem = problem_of(((1, 1, 1, 1, 0), (568, 64, 32, 1, 5), (560, 70, 32, 1, 0)))
    every = walks_of(problem, True)
    assert len(every) == 1024
    assert len(every.shapes) <= 16 and len(set(every.shapes)) == len(every.shapes)


@pytest.mark.parametrize("rank", (1, 2))
@pytest.mark.parametrize("excess", (0, 1))
def test_many_phases_take_no_time(rank, excess):
    """The time of planning must be in proportion to the phases."""
    stride = (50_000,) if rank == 1 else (200, 250)
    w = np.arange(prod(n + excess for n in stride), dtype=np.float32).reshape(1, 1, *(n + excess for n in stride))
    y = np.ones((1, 1, *[2] * rank), np.float32)
    calls.forget()
    plan.cache_clear()
    begin = process_time()
    x = cg.conv_transpose(y, w, stride=stride)
    assert process_time() - begin < 10
    expected = np.zeros(x.shape, np.float32)
    for position in product(range(2), repeat=rank):
        begins = [p * n for p, n in zip(position, stride, strict=True)]
        expected[(0, 0, *(slice(b, b + n) for b, n in zip(begins, w.shape[2:], strict=True)))] += w[0, 0]
    np.testing.assert_array_equal(x, expected)


def test_too_many_phases():
    """Too many phases must be refused before anything is written."""
    stride = walks.MOST_WALKS + 1
    y, w = np.ones((1, 1, 2), np.float32), np.ones((1, 1, stride), np.float32)
    out = np.full((1, 1, 2 * stride - 1), 7, np.float32)
    message = f"stride must have at most {stride - 1} phases that taps of the filter reach, not {stride}"
    with pytest.raises(ValueError, match=f"^{message}$"):
        cg.conv_transpose(y, w, stride=stride, padding=[(1, 0)], out=out, algorithm="direct")
    assert (out == 7).all()
    problem = ConvProblem(1, 1, 1, 1, (1, 1, stride), (1, 1, 1), (1, 1, stride - 2), (1, 1, stride))
    assert len(plan(DGRAD, problem, dtypes.TABLE[2], True, cpu.this_machine()).steps) == stride - 1  # one for zeros
    plan.cache_clear()
    assert cg.conv_transpose(y, w, stride=stride).sum() == 2 * stride  # no phases if taps are channels
