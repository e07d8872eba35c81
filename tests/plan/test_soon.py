"""A planner must not visit each of millions of taps or phases: it plans or refuses within milliseconds."""

import re
from time import thread_time

import pytest
from test_nothing_legal_fails import CACHES

import convgrad_cy as cg
from convgrad_cy.cpu.winograd.work import _without_padding
from convgrad_cy.problem import ConvProblem

FUNCTION, LONG, STRIDE = "conv_backward_data", 16_760_595, 1_000_000
CASES = {
    "a filter of millions of phases over a short x": (
        ((1, 3, 2), (3, 1, LONG)),
        {"x_shape": (1, 3, 212), "groups": 3, "stride": LONG, "padding": ((LONG - 106, LONG - 106),)},
        None,
    ),
    "no tap reaches x along the other axis": (
        ((1, 1, 8, 1), (1, 1, 1, 2 * STRIDE)),
        {"x_shape": (1, 1, 8, 2 * STRIDE), "stride": (283, 2 * STRIDE), "padding": ((619, 1434), (0, 0))},
        None,
    ),
    "most taps meet padding": (
        ((1, 3, 37, 5), (3, 1, 7, STRIDE)),
        {
            "x_shape": (1, 3, 43, 5),
            "groups": 3,
            "stride": (1, STRIDE),
            "padding": ((0, 0), (4 * STRIDE, STRIDE - 5)),
        },
        None,
    ),
    "more phases than there may be": (
        ((1, 1, 2), (1, 1, 4 * STRIDE - 1)),
        {"x_shape": (1, 1, 8 * STRIDE - 1), "stride": 4 * STRIDE},
        r"^stride must have at most 262144 phases that taps of the filter reach, not 3999999$",
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("algorithm", ("auto", "direct"))
def test_soon(case, algorithm):
    shapes, keywords, refused = CASES[case]
    seconds = []
    for _ in range(3):
        for cached in CACHES:
            cached.cache_clear()
        begin = thread_time()
        try:
            cg.explain(FUNCTION, shapes, algorithm=algorithm, **keywords)
        except ValueError as error:
            assert algorithm == "direct" and re.match(refused or "$", str(error))
        else:
            assert refused is None or algorithm == "auto"
        seconds.append(thread_time() - begin)
    assert min(seconds) < 0.05


@pytest.mark.parametrize("stride, dilation", ((1, 1), (3, 2), (2, 3)))
@pytest.mark.parametrize("y, taps", ((4, 9), (9, 4), (6, 6)))
def test_products_without_padding(stride, dilation, y, taps):
    """Products must be counted by the taps or by the positions, whichever are fewer."""
    for x in (1, 5, 11):
        for pad in (0, 3, 20):
            problem = ConvProblem(
                *(1, 1, 1, 1, (1, 1, x), (1, 1, y), (1, 1, taps)),
                stride=(1, 1, stride),
                dilation=(1, 1, dilation),
                pad_begin=(0, 0, pad),
            )
            met = [(p, t) for p in range(y) for t in range(taps) if 0 <= p * stride + t * dilation - pad < x]
            assert _without_padding(problem) == len(met) / (y * taps)
