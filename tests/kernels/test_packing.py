"""The filter of fprop and dgrad, packed by tasks: strips of few outputs, chunks of many channels with a short end."""

import numpy as np
import pytest
from operations import OPERATIONS, assert_exact, integer_tensors
from problems import Problem

import convgrad_cy
from convgrad_cy import dtypes
from convgrad_cy.cpu.direct.plan import plan
from convgrad_cy.cpu.machine import Machine
from convgrad_cy.cpu.plan.steps import Blocks
from convgrad_cy.problem import FPROP, ConvProblem, conv_size

FORMATS = (("NCX", "OIX"), ("NXC", "XIO"))
MANY = 241  # channels: two chunks of 3 x 3 taps; for any vectors, no task packs a part of them for itself


def deep(taps, stride=1, dilation=1, groups=1, few=80):
    """MANY channels on one side and ``few`` on the other, in both directions: a problem for fprop and one for dgrad."""
    x = (1, 4, 30)
    strides, dilations = (1, stride, stride), (1, dilation, dilation)
    padding = tuple(((t - 1) * d // 2,) * 2 for t, d in zip(taps, dilations, strict=True))
    y = tuple(map(conv_size, x, taps, strides, dilations, padding))
    name = f"{'x'.join(map(str, taps))}_{stride}_{dilation}_{groups}"
    return [
        Problem(f"{name}_{ins}_{outs}", 3, groups, groups * ins, groups * outs, x, y, taps, strides, dilations, padding)
        for ins, outs in ((MANY, few), (few, MANY))
    ]


CASES = [
    *deep((1, 3, 3)),
    *deep((1, 1, 7)),
    *deep((1, 3, 3), few=70, groups=2),
    *deep((1, 3, 3), stride=2),
    *deep((1, 4, 4), stride=2, few=17),
    *deep((1, 3, 3), dilation=4),
]


@pytest.mark.parametrize("tile", [(6, 256, 64), (6, 64, 32), (4, 32, 16)], ids=str)
def test_cases_have_several_chunks(tile):
    problem = ConvProblem(3, 1, MANY, 80, (1, 4, 30), (1, 4, 30), (1, 3, 3), pad_begin=(0, 1, 1))
    for adjacent in (True, False):
        made = plan(FPROP, problem, dtypes.TABLE[2], adjacent, Machine(*tile, False, 32 << 20, 2))
        blocks = Blocks(*made.blocks.tolist())
        assert not blocks.packs
        assert blocks.chunk < MANY
        assert MANY % blocks.chunk


@pytest.mark.parametrize("formats", FORMATS, ids="-".join)
@pytest.mark.parametrize("problem", CASES, ids=str)
def test_exact(formats, problem):
    for dtype in ("bfloat16", "float32", "float64"):
        tensors, _ = integer_tensors(problem, dtype)
        for name in ("conv", "conv_backward_data"):
            operation = OPERATIONS[name]
            expected = operation.expected(problem, tensors, *formats)
            assert_exact(operation.call(problem, tensors, *formats), expected, dtype)


@pytest.mark.parametrize("place", [(0, 0), (79, 0), (3, MANY - 1), (79, MANY - 1)])
def test_infinity_of_any_part_is_seen(place):
    """If an infinite element of the filter meets padding only, the result must be finite: each task checks its part."""
    rng = np.random.default_rng(7)
    x = rng.uniform(1, 2, (3, MANY, 4, 30)).astype(np.float32)
    w = rng.uniform(1, 2, (80, MANY, 3, 3)).astype(np.float32)
    w[(*place, 0, 0)] = np.inf
    y = convgrad_cy.conv(x, w, padding=1, algorithm="direct")
    infinite = np.zeros(y.shape, bool)
    infinite[:, place[0], 1:, 1:] = True
    np.testing.assert_array_equal(np.isinf(y), infinite)
    assert not np.isnan(y).any()
