"""``convgrad_cy.shims.cupy_cudnn`` on a real GPU: sigpy's calls, complex arrays, and the bias, which CuPy adds."""

import numpy as np
import pytest
import sigpy_calls
from cudnn_calls import MAKES, PROBLEMS, call
from on_device import missing, require_gpu, to_device, to_host
from operations import integer_tensors

require_gpu()
if missing() is None:
    import cupy


@pytest.mark.parametrize("case", sigpy_calls.CASES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("kind", sigpy_calls.KINDS)
def test_what_sigpy_asks(kind, dtype, case):
    sizes, one, other = sigpy_calls.drawn(kind, case, dtype)
    result = sigpy_calls.asked(cupy, kind, sizes, one, other)
    np.testing.assert_array_equal(result, sigpy_calls.defined(kind, sizes, one, other))


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("kernel", MAKES)
def test_values(kernel, layout, dtype):
    """Values must be exact, with a bias except in the gradient of the filter."""
    problem = PROBLEMS["cudnn_2d"]
    tensors, expected = integer_tensors(problem, "float16")
    expected = expected[kernel]
    bias = None if kernel == "wgrad" else np.arange(expected.shape[1]) - 2
    if bias is not None:
        expected = expected + bias.reshape(-1, 1, 1)
    if layout:
        tensors, expected = [array.transpose(0, 2, 3, 1) for array in tensors], expected.transpose(0, 2, 3, 1)
    arrays = [to_device(np.ascontiguousarray(array.astype(dtype))) for array in tensors]
    target = cupy.empty(expected.shape, dtype)
    given = None if bias is None else to_device(bias.astype(dtype))
    call(kernel, problem, arrays, target, given, d_layout=layout, w_layout=layout)
    np.testing.assert_array_equal(to_host(target), expected)
