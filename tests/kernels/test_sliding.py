"""Depthwise layers: rows of any length, taps and strides, whether the sliding tile supports them or not."""

import numpy as np
import pytest
from operations import DTYPES, OPERATIONS, assert_exact, bits, integer_tensors, real_tensors
from problems import Problem

import convgrad_cy
from convgrad_cy.problem import conv_size

#: Positions beyond the longest chunk of a sliding tile, and up to three times its most taps.
ROWS, TAPS = (1, 2, 7, 13, 30), (1, 2, 3, 5, 7, 9, 15)
FORMATS = (("NCX", "OIX"), ("NXC", "XIO"))


def depthwise(rows, taps, stride=1, dilation=1, channels=40, multiplier=1, beyond=0):
    """A depthwise layer. ``rows`` and ``taps`` are (depth, height, width); about half of the taps meet padding.

    ``beyond`` is additional padding.
    """
    strides, dilations, x = (stride,) * 3, (dilation,) * 3, tuple(stride * row for row in rows)
    reach = [(t - 1) * dilation for t in taps]
    padding = tuple((r // 2 + beyond, r - r // 2 + beyond) for r in reach)
    y = tuple(map(conv_size, x, taps, strides, dilations, padding))
    name = f"{'x'.join(map(str, taps))}_taps_{'x'.join(map(str, rows))}_rows_by_{stride}_{dilation}_{channels}_{beyond}"
    return Problem(name, 2, channels, channels, channels * multiplier, x, y, taps, strides, dilations, padding)


PROBLEMS = [
    *(depthwise((1, 5, row), (1, 3, taps), stride) for row in ROWS for taps in TAPS for stride in (1, 2, 3)),
    *(depthwise((1, 9, 13), (1, 3, 3), stride, dilation) for stride in (1, 2) for dilation in (2, 3)),
    *(depthwise((4, 5, 14), (3, 2, 3), stride) for stride in (1, 2)),
    *(depthwise((1, 6, 14), (1, 7, 7), channels=channels) for channels in (8, 33, 160)),
    depthwise((1, 6, 14), (1, 3, 3), channels=32, multiplier=2),
    *(depthwise((1, 2, 5), (1, 3, taps), stride, beyond=16) for taps in (1, 3, 9) for stride in (1, 2)),  # chunks of it
    depthwise((1, 12, 120), (1, 3, 3), channels=288),  # channels last has a few rows at a time
]


@pytest.mark.parametrize("operation", ("conv", "conv_backward_data", "conv_backward_filter"))
@pytest.mark.parametrize("formats", FORMATS, ids="-".join)
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_exact(operation, formats, problem):
    operation = OPERATIONS[operation]
    for dtype in DTYPES:
        tensors, _ = integer_tensors(problem, dtype)
        assert_exact(operation.call(problem, tensors, *formats), operation.expected(problem, tensors, *formats), dtype)


@pytest.mark.parametrize("operation", ("conv", "conv_backward_data", "conv_backward_filter"))
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_layouts_have_the_same_bits(operation, problem):
    """Both layouts must have the same bits.

    One reads tensors in place, the other copies; their blocks of lanes differ.
    """
    tensors = real_tensors(problem, "float32")
    first, last = (OPERATIONS[operation].call(problem, tensors, data_format, "OIX") for data_format in ("NCX", "NXC"))
    if operation != "conv_backward_filter":
        last = last.transpose(0, 4, 1, 2, 3)
    assert bits(first) == bits(last)


def placed(shape, offset, fill):
    """A float32 array of ``fill`` whose address is ``offset`` bytes past a multiple of 4096."""
    memory = np.empty(4 * np.prod(shape) + 8192, np.uint8)
    begin = -memory.ctypes.data % 4096 + offset
    array = memory[begin : begin + 4 * np.prod(shape)].view(np.float32).reshape(shape)
    array[:] = fill
    return array


@pytest.mark.parametrize("channels", (1000, 512, 1024))  # the last two have columns in few sets of the L1 cache
@pytest.mark.parametrize("x_offset, y_offset", ((0, 0), (0, 64), (64, 0), (16, 528), (4, 3072)))
def test_addresses_do_not_matter(x_offset, y_offset, channels):
    """The order of the lanes depends on the distance of x and y, and must not change a result."""
    numbers = np.random.default_rng(0)
    w = numbers.standard_normal((4, 1, channels)).astype(np.float32)
    x = numbers.standard_normal((2, 33, channels)).astype(np.float32)
    keywords = {"groups": channels, "data_format": "NXC", "filter_format": "XIO"}
    out = placed((2, 30, channels), y_offset, np.nan)
    convgrad_cy.conv(placed(x.shape, x_offset, x), w, out=out, **keywords)
    np.testing.assert_array_equal(out, convgrad_cy.conv(x, w, **keywords))
    expected = sum(x[:, t : t + 30].astype(float) * w[t, 0] for t in range(4))
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-5)
