"""The definition of the three operations, as loops over the taps. Imports nothing from the package.

    y[n, g, o, p] += x[n, g, i, p * stride + t * dilation - pad_begin] * w[g, o, i, t]

All three kernels visit the same triples (p, t, q = p * stride + t * dilation - pad_begin) and skip a triple whose q
lies outside x: its term does not exist. (Multiplying with a zero there would turn an infinite weight into NaN.) For
one t, the existing p are consecutive, and their q differ. They are two slices, and a tap is applied to them at once.
Integers are int64, whose wrap-around modulo 2^64 is also one modulo 2^32.
"""

from itertools import product

import numpy as np


def _wide(array):
    """A copy in float64 or int64, in either case without loss."""
    return np.array(array, dtype=np.int64 if array.dtype.kind in "iu" else np.float64)


def _taps(x, y, kernel, stride, dilation, pad_begin):
    """Every t with the slices of its p and of its q, as tuples over the axes."""
    axes = []
    for size, positions, taps, step, gap, begin in zip(x, y, kernel, stride, dilation, pad_begin, strict=True):
        axes.append([])
        for t in range(taps):
            pairs = ((p, p * step + t * gap - begin) for p in range(positions))
            if exist := [(p, q) for p, q in pairs if 0 <= q < size]:
                (first_p, first_q), (last_p, last_q) = exist[0], exist[-1]
                axes[-1].append((t, slice(first_p, last_p + 1), slice(first_q, last_q + 1, step)))
    for combination in product(*axes):
        yield zip(*combination, strict=True)


def _correlate(subscripts, result, left, right, geometry):
    """``result += left * right`` for every tap; each operand is (array, 'p', 't' or 'q')."""
    subscripts = subscripts.replace("...", "xyz"[: len(geometry[0])])
    with np.errstate(invalid="ignore", over="ignore"):
        for t, p, q in _taps(*geometry):
            at = {"p": (..., *p), "t": (..., *t), "q": (..., *q)}
            result[0][at[result[1]]] += np.einsum(subscripts, left[0][at[left[1]]], right[0][at[right[1]]])


def _grouped(array, groups, channel_axis):
    """The channel axis split into (groups, channels of a group)."""
    before, channels, after = array.shape[:channel_axis], array.shape[channel_axis], array.shape[channel_axis + 1 :]
    return array.reshape(*before, groups, channels // groups, *after)


def fprop(x, w, y_shape, *, stride, dilation, pad_begin, groups):
    """The convolution of x (N, C, ...) with w (O, C / groups, ...)."""
    x, w = _wide(x), _wide(w)
    y = np.zeros(y_shape, x.dtype)
    geometry = (x.shape[2:], y.shape[2:], w.shape[2:], stride, dilation, pad_begin)
    _correlate(
        "ngi...,goi->ngo...",
        (_grouped(y, groups, 1), "p"),
        (_grouped(x, groups, 1), "q"),
        (_grouped(w, groups, 0), "t"),
        geometry,
    )
    return y


def dgrad(dy, w, x_shape, *, stride, dilation, pad_begin, groups):
    """The gradient with respect to x: each term of the convolution, scattered back to the x that it read."""
    dy, w = _wide(dy), _wide(w)
    dx = np.zeros(x_shape, dy.dtype)
    geometry = (dx.shape[2:], dy.shape[2:], w.shape[2:], stride, dilation, pad_begin)
    _correlate(
        "ngo...,goi->ngi...",
        (_grouped(dx, groups, 1), "q"),
        (_grouped(dy, groups, 1), "p"),
        (_grouped(w, groups, 0), "t"),
        geometry,
    )
    return dx


def wgrad(x, dy, w_shape, *, stride, dilation, pad_begin, groups):
    """The gradient with respect to w: each term of the convolution, summed into the w that it read."""
    x, dy = _wide(x), _wide(dy)
    dw = np.zeros(w_shape, x.dtype)
    geometry = (x.shape[2:], dy.shape[2:], dw.shape[2:], stride, dilation, pad_begin)
    _correlate(
        "ngo...,ngi...->goi",
        (_grouped(dw, groups, 0), "t"),
        (_grouped(dy, groups, 1), "p"),
        (_grouped(x, groups, 1), "q"),
        geometry,
    )
    return dw
