"""The stride phases of a data gradient along one axis, and the first tap of each.

Tap t reaches the elements ``p * stride + t * dilation - pad_begin`` of x. Taps whose offsets agree modulo the stride
form one phase, and this remainder is the first element of x in the phase. A long filter can have millions of phases
that begin beyond the end of a short x. So the loop is over the taps or over the elements of x, whichever are fewer.
"""

from math import gcd

import numpy as np


def first_taps(x, kernel, stride, dilation, pad_begin):
    """The first taps, in ascending order, of all phases that visit an element of x.

    If x is long, the first taps of the other phases are among them.
    """
    common = gcd(stride, dilation)
    count = stride // common  # taps t and t + count are in one phase
    if x >= min(kernel, count):
        return np.arange(min(kernel, count))
    # A tap visits element e if tap * dilation = e + pad_begin modulo the stride. Both sides are divided by ``common``.
    least = -pad_begin % common
    inverse = pow(dilation // common, -1, count)
    taps = _progression((least + pad_begin) // common * inverse % count, inverse, len(range(least, x, common)), count)
    return np.sort(taps[taps < kernel])


def count_phases(x, kernel, stride, dilation, pad_begin):
    """Number of phases that visit an element of x."""
    if x >= stride:
        return min(kernel, stride // gcd(stride, dilation))
    taps = first_taps(x, kernel, stride, dilation, pad_begin)
    return int(((taps * dilation - pad_begin) % stride < x).sum())


def _progression(first, step, size, modulus):
    """``(first + i * step) % modulus`` for i in range(size), without a product that overflows an int64."""
    values = np.empty(size, np.int64)
    values[:1] = first
    done = 1
    while done < size:
        further = values[done : 2 * done]
        further[:] = (values[: len(further)] + done * step % modulus) % modulus
        done *= 2
    return values
