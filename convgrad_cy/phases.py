"""The stride phases of a data gradient along one axis: with which tap each begins.

Tap t reaches the elements ``p * stride + t * dilation - pad_begin`` of x. Taps that agree modulo the stride make one
phase, whose first element of x is that remainder. A long filter has millions of phases, most of which begin beyond a
short x: so the phases are found by the shorter of both.
"""

from math import gcd

import numpy as np


def first_taps(x, kernel, stride, dilation, pad_begin):
    """The first taps of all phases that visit an element of x, in ascending order, among others if x is long."""
    common = gcd(stride, dilation)
    count = stride // common  # tap t + count is of the phase of tap t
    if x >= min(kernel, count):
        return np.arange(min(kernel, count))
    # Element e is visited if tap * dilation = e + pad_begin modulo the stride, which is divided by ``common``.
    least = -pad_begin % common
    inverse = pow(dilation // common, -1, count)
    taps = _progression((least + pad_begin) // common * inverse % count, inverse, len(range(least, x, common)), count)
    return np.sort(taps[taps < kernel])


def count_phases(x, kernel, stride, dilation, pad_begin):
    """How many phases visit an element of x."""
    if x >= stride:
        return min(kernel, stride // gcd(stride, dilation))
    taps = first_taps(x, kernel, stride, dilation, pad_begin)
    return int(((taps * dilation - pad_begin) % stride < x).sum())


def _progression(first, step, size, modulus):
    """``(first + i * step) % modulus`` for i in range(size); no product is formed that leaves an int64."""
    values = np.empty(size, np.int64)
    values[:1] = first
    done = 1
    while done < size:
        further = values[done : 2 * done]
        further[:] = (values[: len(further)] + done * step % modulus) % modulus
        done *= 2
    return values
