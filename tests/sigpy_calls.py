"""sigpy's calls of ``cupy.cudnn`` for its convolution and its two adjoints, and the definitions of the three.

The calls are the calls of ``sigpy/conv.py``: equal views, in the same order, with the same arguments. ``xp`` is NumPy
or the stand-in for CuPy. Arrays of NumPy are copied there before a call, and results are copied back.
"""

from math import prod
from typing import NamedTuple

import numpy as np

from convgrad_cy.shims import cupy_cudnn as cudnn

KINDS = ("convolve", "data_adjoint", "filter_adjoint")
#: Shape of the data, of the filter, mode, strides, and whether there are channels.
CASES = (
    ((2, 3, 7), (3,), "full", None, False),
    ((2, 6, 5), (3, 2), "full", (2, 1), False),
    ((6, 5), (3, 2), "valid", None, False),
    ((2, 3, 6, 7), (4, 3, 3, 2), "full", (1, 2), True),
    ((3, 6, 7), (4, 3, 3, 2), "valid", (2, 1), True),
    ((2, 4, 5, 3), (3, 2, 2), "full", None, False),
    ((2, 2, 3, 4, 4), (3, 2, 2, 2, 3), "valid", (1, 2, 1), True),
)


class Sizes(NamedTuple):
    """A case with the axes before the channels joined into one."""

    x: tuple
    w: tuple
    y: tuple
    output: tuple  # as sigpy's caller sees it
    strides: tuple
    pads: tuple
    first: tuple  # the position of the data that the filter's first tap meets for the first output


def sizes_of(data, filt, mode, strides, multi_channel):
    rank = len(filt) - 2 * multi_channel
    before, m, n = data[: len(data) - rank - multi_channel], data[-rank:], filt[-rank:]
    outs, ins = filt[:2] if multi_channel else (1, 1)
    strides = strides or (1,) * rank
    if rank == 1:  # sigpy makes it two axes, as cuDNN needs
        m, n, strides = (*m, 1), (*n, 1), (*strides, 1)
    more = [size - 1 if mode == "full" else 1 - size for size in n]
    p = tuple(-(-(size + extra) // step) for size, extra, step in zip(m, more, strides, strict=True))
    pads = tuple(size - 1 if mode == "full" else 0 for size in n)
    batch = prod(before)
    output = (*before, *(outs,) * multi_channel, *p[:rank])
    first = tuple(0 if mode == "full" else size - 1 for size in n)
    return Sizes((batch, ins, *m), (outs, ins, *n), (batch, outs, *p), output, strides, pads, first)


def _flipped(filt):
    return filt[(..., *(slice(None, None, -1),) * (filt.ndim - 2))]


def _host(array):
    return array if isinstance(array, np.ndarray) else array.get()


def _convolve(xp, sizes, data, filt):
    data, filt = data.reshape(sizes.x), filt.reshape(sizes.w)
    output = xp.empty(sizes.y, data.dtype)
    ones = (1,) * len(sizes.pads)
    cudnn.convolution_forward(
        data, _flipped(filt), None, output, sizes.pads, sizes.strides, ones, 1, auto_tune=True, tensor_core="auto"
    )
    return _host(output)


def _data_adjoint(xp, sizes, output, filt):
    output, filt = output.reshape(sizes.y), filt.reshape(sizes.w)
    data = xp.empty(sizes.x, output.dtype)
    ones = (1,) * len(sizes.pads)
    cudnn.convolution_backward_data(
        _flipped(filt), output, None, data, sizes.pads, sizes.strides, ones, 1,
        deterministic=False, auto_tune=True, tensor_core="auto",
    )  # fmt: skip
    return _host(data)


def _filter_adjoint(xp, sizes, output, data):
    data, output = data.reshape(sizes.x), output.reshape(sizes.y)
    filt = xp.empty(sizes.w, output.dtype)
    ones = (1,) * len(sizes.pads)
    cudnn.convolution_backward_filter(
        data, output, filt, sizes.pads, sizes.strides, ones, 1,
        deterministic=False, auto_tune=True, tensor_core="auto",
    )  # fmt: skip
    return _flipped(_host(filt))


def asked(xp, kind, sizes, one, other):
    """The result of sigpy, with the axes as in ``sizes``. Complex arrays need four calls."""
    function = {"convolve": _convolve, "data_adjoint": _data_adjoint, "filter_adjoint": _filter_adjoint}[kind]
    if one.dtype.kind != "c":
        return function(xp, sizes, xp.array(one), xp.array(other))
    one, other = xp.array(one), xp.array(other if kind == "convolve" else other.conj())
    real = function(xp, sizes, one.real, other.real)
    real -= function(xp, sizes, one.imag, other.imag)
    imag = function(xp, sizes, one.imag, other.real)
    imag += function(xp, sizes, one.real, other.imag)
    return (real + 1j * imag).astype(one.dtype)


def defined(kind, sizes, one, other):
    """The result by the definition: a sum over outputs and taps. The adjoints conjugate the other factor."""
    shape = {"convolve": sizes.y, "data_adjoint": sizes.x, "filter_adjoint": sizes.w}[kind]
    result = np.zeros(shape, np.complex128)
    of_one, of_other = {
        "convolve": (sizes.x, sizes.w), "data_adjoint": (sizes.y, sizes.w), "filter_adjoint": (sizes.y, sizes.x),
    }[kind]  # fmt: skip
    one, other = one.reshape(of_one), other.reshape(of_other)
    m, n, p = sizes.x[2:], sizes.w[2:], sizes.y[2:]
    for position in np.ndindex(p):
        for tap in np.ndindex(n):
            q = [s * i + f - t for s, i, f, t in zip(sizes.strides, position, sizes.first, tap, strict=True)]
            if all(0 <= at < size for at, size in zip(q, m, strict=True)):
                y, w, x = (..., *position), (..., *tap), (..., *q)
                if kind == "convolve":
                    result[y] += np.einsum("ki,ji->kj", one[x], other[w])
                elif kind == "data_adjoint":
                    result[x] += np.einsum("kj,ji->ki", one[y], other[w].conj())
                else:
                    result[w] += np.einsum("kj,ki->ji", one[y], other[x].conj())
    return result if np.iscomplexobj(one) else result.real


def drawn(kind, case, dtype):
    """The sizes and the two arrays of a case, of small integers."""
    sizes = sizes_of(*case)
    data, filt = case[:2]
    random = np.random.default_rng(7)
    arrays = []
    shapes = {"convolve": (data, filt), "data_adjoint": (sizes.output, filt), "filter_adjoint": (sizes.output, data)}
    for shape in shapes[kind]:
        array = random.integers(-4, 5, shape).astype(dtype)
        if array.dtype.kind == "c":
            array += (1j * random.integers(-4, 5, shape)).astype(dtype)
        arrays.append(array)
    return sizes, *arrays
