"""The planner's choice of how steps read their operands."""

import pytest

from convgrad_cy import dtypes
from convgrad_cy.cpu.direct.plan import plan
from convgrad_cy.cpu.machine import Machine
from convgrad_cy.cpu.plan.steps import Reads
from convgrad_cy.problem import FPROP, WGRAD, ConvProblem

BFLOAT16, FLOAT32 = dtypes.TABLE[1:3]
WIDE, NARROW = (6, 256, 64, True, 32 << 20), (6, 64, 32, False, 8 << 20)  # the first has pairs of bfloat16


def problem_of(channels, outputs, x, kernel=3, stride=1, batch=1):
    """Two axes, without padding."""
    y = (x - kernel) // stride + 1
    return ConvProblem(batch, 1, channels, outputs, (1, x, x), (1, y, y), (1, kernel, kernel), (1, stride, stride))


def reads(operation, problem, tile=WIDE, dtype=FLOAT32):
    steps = plan(operation, problem, dtype, False, Machine(*tile, threads=2)).steps
    return [Reads(*map(bool, row[-4:-1])) for row in steps.tolist()]


@pytest.mark.parametrize(
    "problem, expected",
    [
        (problem_of(64, 128, 30), True),  # nine taps of many outputs see each element
        (problem_of(64, 112, 30), False),  # few outputs
        (problem_of(64, 128, 60, kernel=1, stride=2), False),  # one tap
        (problem_of(64, 2048, 6), False),  # few positions
        (problem_of(64, 128, 60, kernel=2, stride=2), True),  # each is seen once, but positions skip some
        (ConvProblem(1, 1, 64, 128, (1, 1, 300), (1, 1, 299), (1, 1, 2)), False),  # each is seen by two taps
    ],
)
def test_windows_pay(problem, expected):
    """A source of several taps must be copied if many outputs would read it."""
    assert {each.copies for each in reads(FPROP, problem)} == {expected}


@pytest.mark.parametrize(
    "problem, tile, expected",
    [
        (problem_of(64, 128, 30), WIDE, True),
        (problem_of(64, 128, 30), NARROW, False),  # transposed: channels make squares, taps share them
        (problem_of(8, 128, 30), NARROW, True),  # few channels
        (problem_of(64, 128, 30, kernel=1), NARROW, True),  # one tap
    ],
)
def test_windows_of_wgrad(problem, tile, expected):
    """Narrow vectors must transpose channels last in the window of wgrad."""
    assert {each.channels_inside for each in reads(WGRAD, problem, tile)} == {expected}


@pytest.mark.parametrize(
    "problem, dtype, expected",
    [
        (problem_of(512, 512, 4), FLOAT32, True),
        (problem_of(512, 512, 4), BFLOAT16, False),  # pairs of channels have to be packed
        (problem_of(512, 512, 7), FLOAT32, False),  # more positions than three tiles have
        (problem_of(64, 64, 30), FLOAT32, False),  # packed before the tasks
    ],
)
def test_filters_read_in_place(problem, dtype, expected):
    """Boxes of few positions must read the filter itself."""
    assert {each.strips for each in reads(FPROP, problem, dtype=dtype)} == {expected}
