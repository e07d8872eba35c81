"""The first taps of stride phases, by both ways of finding them."""

from math import gcd
from random import Random

import numpy as np
import pytest

from convgrad_cy.phases import count_phases, first_taps
from convgrad_cy.problem import backward_axis_phases


def expected(x, kernel, stride, dilation, pad_begin):
    """The first tap of each remainder, if it lies in x."""
    found = {}
    for tap in range(kernel):
        found.setdefault((tap * dilation - pad_begin) % stride, tap)
    return sorted(tap for begin, tap in found.items() if begin < x)


@pytest.mark.parametrize("seed", range(200))
def test_small(seed):
    random = Random(seed)
    for _ in range(20):
        stride, dilation = random.randint(1, 40), random.randint(1, 40)
        axis = random.randint(0, 60), random.randint(1, 60), stride, dilation, random.randint(0, 99)
        x, kernel, *_ = axis
        taps = first_taps(*axis).tolist()
        wanted = expected(*axis)
        assert taps == wanted or (x >= min(kernel, stride // gcd(stride, dilation)) and set(wanted) <= set(taps))
        assert count_phases(*axis) == len(wanted)
        phases = backward_axis_phases(x, random.randint(1, 9), kernel, stride, dilation, axis[-1])
        assert [phase.filter_begin for phase in phases] == wanted


def test_numbers_stay_within_an_int64():
    """All numbers must fit an int64. The stride is a prime near 2**61, and one tap reaches each element of x."""
    stride, dilation, pad = (1 << 61) - 1, (1 << 60) + 12345, 987654321
    taps = [3, 5, 1000, 4093]
    for tap in taps:
        shift = (tap * dilation - pad) % stride
        assert tap in first_taps(4, 4096, stride, dilation, pad + shift)
    assert first_taps(4, 4096, stride, dilation, pad).dtype == np.int64


def test_a_long_filter_over_a_short_x_has_few():
    phases = backward_axis_phases(212, 2, 16_760_595, 16_760_595, 1, 16_760_489)
    assert len(phases) == 212
