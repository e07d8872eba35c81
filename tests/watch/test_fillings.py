"""Results of data that is hard on sums: bounds on each element of the direct algorithm, a contract for the others."""

import numpy as np
import pytest
from fillings import LEAST, MODES, filled
from operations import FLOATS, OPERATIONS, Tensors, dtype_of, reference_kernel
from problems import PROBLEMS, parse

from convgrad_cy.cli.check import reference as definition

modes = pytest.mark.parametrize("mode", MODES)
NAMES = ("conv", "conv_backward_data", "conv_backward_filter")
DIRECT = [
    PROBLEMS[name]
    for name in (
        "2d_same",
        "2d_depthwise_many",
        "2d_groups_of_four",
        "2d_stride3",
        "2d_channels65",
        "2d_depth1200",
        "2d_positions_1445",
        "2d_blocks_stride2",
        "3d_mixed_stride",
        "2d_pointwise_whole_vectors",
    )
]
#: A layer that gains from Winograd's algorithm.
TILES = parse('mb2ic64ih28oc64kh3ph1n"tiles"')
CONTRACT = 2e-5
#: If terms cancel, no sum in float32 is within the contract. The bound is then this many eps of the greatest sum of
#: magnitudes. (Measured: 3; the direct algorithm 1.)
CANCELLED = 8
#: Half the distance of two numbers near one.
HALF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}


@pytest.fixture
def exact_for(monkeypatch):
    """Give the reference's sums more bits than the results of a type: long double for float64."""

    def prepare(dtype):
        if dtype == "float64":
            if np.finfo(np.longdouble).eps == np.finfo(np.float64).eps:
                pytest.skip("long double is double here")
            monkeypatch.setattr(definition, "_wide", lambda array: np.array(array, np.longdouble))

    return prepare


def operands(operation, problem, mode, dtype):
    """The tensors x, w and y. The result's tensor is empty."""
    shapes = [getattr(problem, f"{part}_shape") for part in operation.reads]
    first, second = filled(mode, shapes, dtype, dtype_of(dtype))
    given = dict(zip(operation.reads, (first, second), strict=True))
    return Tensors(*(given.get(part, np.empty(0, first.dtype)) for part in "xwy"))


def exact_and_sizes(operation, problem, tensors):
    """The exact result and, for each element, the sum of its terms' magnitudes."""
    absolute = Tensors(*(abs(array) for array in tensors))
    return [reference_kernel(operation.kernel, problem, each) for each in (tensors, absolute)]


def bound(exact, sizes, terms, dtype):
    """(K + 1) eps sum|ab| in the type of the sums, the loss of products below its numbers, and one rounding."""
    summed = "float32" if dtype in ("float16", "bfloat16") else dtype
    limit = (terms + 1) * (2 * HALF[summed] * sizes + np.ldexp(np.longdouble(1), LEAST[summed] - 1))
    return limit + (HALF[dtype] * abs(exact) + np.ldexp(np.longdouble(1), LEAST[dtype] - 1) if summed != dtype else 0)


def terms_of(operation, problem):
    """The largest number of terms of an element."""
    ones = Tensors(*(np.ones(shape) for shape in (problem.x_shape, problem.w_shape, problem.y_shape)))
    return int(reference_kernel(operation.kernel, problem, ones).max())


def is_within(result, exact, limit):
    return bool((abs(result.astype(np.longdouble) - exact) <= limit).all())


@pytest.mark.parametrize("dtype", FLOATS)
@modes
def test_each_element_of_direct(mode, dtype, exact_for, figures):
    exact_for(dtype)
    for name in NAMES:
        operation = OPERATIONS[name]
        for problem in DIRECT:
            tensors = operands(operation, problem, mode, dtype)
            exact, sizes = exact_and_sizes(operation, problem, tensors)
            assert sizes.max() < np.finfo(dtype_of(dtype)).max if dtype != "bfloat16" else np.isfinite(sizes).all()
            limit = bound(exact, sizes, terms_of(operation, problem), dtype)
            assert is_within(operation.call(problem, tensors), exact, limit), f"{name} {problem}"
    figures({"filled calls, direct": len(NAMES) * len(DIRECT)})


@pytest.mark.parametrize("dtype", FLOATS)
@modes
def test_bound_rejects(mode, dtype, exact_for):
    """A result that lacks one term must be out of the bound."""
    exact_for(dtype)
    if mode == "subnormal_and_normal" and dtype != "bfloat16":
        return  # each term is a few of the type's least numbers, which rounding may take
    problem, operation = PROBLEMS["2d_same"], OPERATIONS["conv"]
    tensors = operands(operation, problem, mode, dtype)
    exact, sizes = exact_and_sizes(operation, problem, tensors)
    spoilt = tensors.w.copy()
    spoilt[:, 0, 1, 1] = 0
    result = operation.call(problem, tensors._replace(w=spoilt))
    assert not is_within(result, exact, bound(exact, sizes, terms_of(operation, problem), dtype))


@pytest.mark.parametrize("algorithm", ["auto", "winograd"])
@pytest.mark.parametrize("name", NAMES)
@modes
def test_contract(mode, name, algorithm, figures):
    """The error must be within the contract, relative to the greatest element of the result, for any data."""
    operation = OPERATIONS[name]
    tensors = operands(operation, TILES, mode, "float32")
    exact, sizes = exact_and_sizes(operation, TILES, tensors)
    result = operation.call(TILES, tensors, algorithm=algorithm)
    limit = CONTRACT * abs(exact).max() + np.ldexp(1.0, LEAST["float32"] - 1) * terms_of(operation, TILES)
    if mode == "cancellation":
        limit = max(limit, CANCELLED * 2 * HALF["float32"] * sizes.max())
    figures({f"filled calls, {algorithm}": 1})
    assert is_within(result, exact, limit)


def test_contract_is_of_tiles():
    """Winograd's algorithm must be taken: otherwise another contract would be tested."""
    for name in NAMES:
        operation = OPERATIONS[name]
        tensors = operands(operation, TILES, "one_hot_first", "float32")
        results = {one: operation.call(TILES, tensors, algorithm=one) for one in ("direct", "auto", "winograd")}
        assert (results["direct"] != results["winograd"]).any()
        if name != "conv_backward_filter":  # its tiles would not gain here
            assert (results["auto"] == results["winograd"]).all()
