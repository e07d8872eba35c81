"""Sums of Winograd's algorithm: their error, and their overflow anywhere in a result."""

import numpy as np
import pytest
from operations import KERNELS, OPERATIONS, bits, real_tensors
from problems import parse

from convgrad_cy import conv_backward_filter

PROBLEM = parse('mb2ic21ih14oc23kh3ph1n"overflow"')
BY_KERNEL = {"fprop": "conv", "dgrad": "conv_backward_data", "wgrad": "conv_backward_filter"}
#: The operand and the axis along which results have one output each, and the other operand.
OUTPUTS = {"fprop": ("w", 0, "x"), "dgrad": ("w", 1, "y"), "wgrad": ("y", 1, "x")}


def test_error_does_not_grow_with_positions():
    """wgrad of two million positions must keep its error: sums continued over boxes would have 4 to 9 times as much."""
    random = np.random.default_rng(0)
    x, dy = (random.standard_normal((32, 8, 65536)).astype(np.float32) for _ in range(2))
    exact, result = (
        conv_backward_filter(*arrays, (8, 8, 3), padding=1, algorithm=how)
        for arrays, how in (((x.astype(np.float64), dy.astype(np.float64)), "direct"), ((x, dy), "winograd"))
    )
    assert abs(result - exact).max() <= 1e-5 * abs(exact).max()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("output", (0, 7, -1))
def test_overflow_of_one_output_is_seen(kernel, output):
    """If one output overflows, the result must be the direct algorithm's. Operands and other outputs are in range."""
    tensors = real_tensors(PROBLEM, "float32")
    name, axis, other = OUTPUTS[kernel]
    array = getattr(tensors, name).copy()
    np.moveaxis(array, axis, 0)[output] *= np.float32(1e20)
    tensors = tensors._replace(**{name: array, other: getattr(tensors, other) * np.float32(1e20)})
    with np.errstate(over="ignore"):
        direct, result = (
            OPERATIONS[BY_KERNEL[kernel]].call(PROBLEM, tensors, algorithm=how) for how in ("direct", "winograd")
        )
    finite = np.isfinite(direct).all(tuple(i for i in range(4) if i != (0 if kernel == "wgrad" else 1)))
    assert np.flatnonzero(~finite).tolist() == [output % len(finite)]
    assert bits(result) == bits(direct)
