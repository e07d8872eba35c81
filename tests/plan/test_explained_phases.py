"""``explain`` of many stride phases takes about as long as the plan: no Python code runs for each phase."""

import sys

import numpy as np
import pytest

import convgrad_cy as cg
from convgrad_cy import calls
from convgrad_cy.cpu.direct.plan import plan as of_direct
from convgrad_cy.cpu.small_groups.plan import plan as of_small_groups

MANY = [
    ((1, 3, 8), (3, 1, 70_000), {"x_shape": (1, 3, 560_003), "groups": 3, "stride": 70_000, "padding": 3}),
    (
        (1, 4, 200, 3),
        (4, 4, 249, 130),
        {"x_shape": (1, 4, 50_003, 395), "stride": (250, 130), "padding": ((1, 0), (4, 0))},
    ),
]


def python_calls(function):
    """The number of called functions. Unlike seconds, it is the same on a busy machine."""
    calls.forget()
    for plan in (of_direct, of_small_groups):
        plan.cache_clear()
    counted = []
    sys.setprofile(lambda frame, event, argument: counted.append(event) if event in ("call", "c_call") else None)
    try:
        function()
    finally:
        sys.setprofile(None)
    return len(counted)


@pytest.mark.parametrize("dy, w, keywords", MANY)
def test_explaining_costs_little_more_than_planning(dy, w, keywords):
    found = cg.explain("conv_backward_data", [dy, w], **keywords)
    assert found.details["walks"] > 30_000
    arrays = [np.ones(shape, np.float32) for shape in (dy, w)]
    planning = python_calls(lambda: cg.conv_backward_data(*arrays, **keywords))
    explaining = python_calls(lambda: cg.explain("conv_backward_data", [dy, w], **keywords))
    assert explaining < 2 * planning + 1000
