"""Checks that every algorithm of an operation has to pass, for tests that force one, and geometries to try it with."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st
from layouts import INPUTS, OUTPUTS
from operations import DATA_FORMATS, Tensors, bits, integer_tensors, real_tensors

import convgrad_cy as cg


def check_layouts(operation, problem, dtype="float32", threads=(1, 2, 5)):
    """The bits must be equal: neither strides, formats nor threads may change the order of a sum."""
    tensors = real_tensors(problem, dtype)
    plain = operation.call(problem, tensors)
    for layout in INPUTS:
        assert bits(operation.call(problem, tensors, layout=layout)) == bits(plain)
    for layout in OUTPUTS:
        out = layout(np.full(plain.shape, np.nan, np.float32).astype(plain.dtype))
        operation.call(problem, tensors, out=out)
        assert bits(out) == bits(plain)
    for number in threads:
        with cg.num_threads(number):
            assert bits(operation.call(problem, tensors)) == bits(plain)


def check_formats(operation, problem, threads=(1, 2, 5)):
    """Bits must be equal in all formats of fprop and dgrad, if formats do not change the order of a sum."""
    tensors = real_tensors(problem, "float32")
    plain = operation.call(problem, tensors)
    for data_format in DATA_FORMATS:
        for number in threads:
            with cg.num_threads(number):
                other = operation.call(problem, tensors, data_format, "XIO")
            assert bits(np.moveaxis(other, -1, 1) if data_format == "NXC" else other) == bits(plain)


def check_contract(operation, problem, terms):
    """The error must be at most (terms + 1) * eps times the sum of the terms' magnitudes."""
    tensors = real_tensors(problem, "float32")
    exact = operation.expected(problem, Tensors(*(each.astype(np.float64) for each in tensors)))
    magnitude = operation.expected(problem, Tensors(*(abs(each.astype(np.float64)) for each in tensors)))
    error = abs(operation.call(problem, tensors) - exact)
    assert (error <= (terms + 1) * np.finfo(np.float32).eps * magnitude).all()


def check_not_finite(operation, problem, values=(np.inf, np.nan)):
    """A value that is not finite must reach the results of its taps only. A position of padding has no term."""
    tensors, _ = integer_tensors(problem, "float32")
    for value in values:
        for i, tensor in enumerate(tensors):
            spoilt = [each.copy() for each in tensors]
            spoilt[i][tuple(size // 2 for size in tensor.shape)] = value
            spoilt = Tensors(*spoilt)
            with np.errstate(invalid="ignore"):
                expected, result = operation.expected(problem, spoilt), operation.call(problem, spoilt)
            np.testing.assert_array_equal(np.isfinite(result), np.isfinite(expected))


def check_no_memory(run, huge, out):
    """``run(out, before)`` and ``huge(out, before)`` find no memory: they must raise and leave ``out`` unchanged."""

    def refuse():
        raise MemoryError("none")

    run(out, None)
    before = out.copy()
    for call, asked in ((run, refuse), (huge, None)):  # ``run`` first has enough memory
        out[...] = 7
        with pytest.raises(MemoryError):
            call(out, asked)
        assert (out == 7).all()
    run(out, lambda: None)
    assert bits(out) == bits(before)


class Drawn(NamedTuple):
    """Small arrays of integers with a geometry."""

    x: np.ndarray
    w: np.ndarray
    y: np.ndarray
    keywords: dict


@st.composite
def geometries(draw, kernel=9, channels=(1,), outputs=(1,), dtypes=("float32",), axes=3):
    """Small geometries: ``kernel`` is the most taps, ``channels`` and ``outputs`` multiply the numbers in a group."""
    sizes, kernels, ys, strides, dilations, pads = [], [], [], [], [], []
    for _ in range(draw(st.integers(1, axes))):
        taps, y = draw(st.integers(1, kernel)), draw(st.integers(1, 4))
        stride, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 3))
        over = draw(st.integers(0, stride - 1))
        least = (y - 1) * stride + (taps - 1) * dilation + 1 + over  # x and its padding
        begin = draw(st.integers(0, min(taps * dilation, least - 1)))
        end = draw(st.integers(0, min(taps * dilation, least - 1 - begin)))
        for each, value in zip(
            (sizes, kernels, ys, strides, dilations, pads),
            (least - begin - end, taps, y, stride, dilation, (begin, end)),
            strict=True,
        ):
            each.append(value)
    batch, groups, c, o = (draw(st.integers(1, 3)) for _ in range(4))
    c, o, dtype = c * draw(st.sampled_from(channels)), o * draw(st.sampled_from(outputs)), draw(st.sampled_from(dtypes))
    rng = np.random.default_rng(0)

    def tensor(*shape):
        return rng.integers(-3, 4, shape).astype(dtype)

    x, w = tensor(batch, groups * c, *sizes), tensor(groups * o, c, *kernels)
    keywords = {"stride": tuple(strides), "dilation": tuple(dilations), "padding": tuple(pads), "groups": groups}
    return Drawn(x, w, tensor(batch, groups * o, *ys), {**keywords, "algorithm": "direct"})
