"""The three kernels are adjoint to each other: <conv(x, w), dy> = <x, dgrad(dy, w)> = <w, wgrad(x, dy)>, exactly."""

import numpy as np
import pytest
from operations import DATA_FORMATS, FILTER_FORMATS, OPERATIONS, integer_tensors, to_formats
from problems import PROBLEMS


def inner(tensor, result, formats, tensors):
    """The inner product of a result with the tensor of the same shape, as a Python integer."""
    other = to_formats(tensor, getattr(tensors, tensor), *formats)
    assert result.shape == other.shape
    return int((result.astype(np.int64) * other.astype(np.int64)).sum())


@pytest.mark.parametrize("prefix", ["conv", "conv_transpose"])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=str)
def test_adjoint(prefix, problem):
    tensors, _ = integer_tensors(problem, "float64")
    products = set()
    for data_format in DATA_FORMATS:
        for filter_format in FILTER_FORMATS:
            formats = (data_format, filter_format)
            for suffix in ("", "_backward_data", "_backward_filter"):
                operation = OPERATIONS[prefix + suffix]
                products.add(inner(operation.makes, operation.call(problem, tensors, *formats), formats, tensors))
    assert len(products) == 1


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=str)
def test_transposed_is_the_gradient(problem):
    """Each operation of the transposed convolution must equal one of the convolution with x and y exchanged."""
    tensors, _ = integer_tensors(problem, "float32")
    for transposed, plain in (
        ("conv_transpose", "conv_backward_data"),
        ("conv_transpose_backward_data", "conv"),
        ("conv_transpose_backward_filter", "conv_backward_filter"),
    ):
        left = OPERATIONS[transposed].call(problem, tensors)
        right = OPERATIONS[plain].call(problem, tensors)
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=str)
def test_linear_in_each_operand(problem):
    """Twice an operand must give twice the result, and a sum of two operands the sum of two results."""
    tensors, _ = integer_tensors(problem, "float64")
    for operation in OPERATIONS.values():
        result = operation.call(problem, tensors)
        for name in operation.reads:
            array = getattr(tensors, name)
            other = np.roll(array, 1) + 1
            total = operation.call(problem, tensors._replace(**{name: 2 * array + other}))
            np.testing.assert_array_equal(
                total, 2 * result + operation.call(problem, tensors._replace(**{name: other}))
            )
