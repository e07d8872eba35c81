"""NaN and Inf reach exactly the results that have them in a term, and never come from the padding."""

import numpy as np
import pytest
import reference
from operations import (
    FLOATS,
    KERNELS,
    OPERATIONS,
    Tensors,
    assert_same,
    dtype_of,
    integer_tensors,
    reference_kernel,
    spoiled,
)
from problems import PROBLEMS, parse

OPERATION = {"fprop": "conv", "dgrad": "conv_backward_data", "wgrad": "conv_backward_filter"}
NAMES = (
    "1d",
    "1d_even_kernel_stride2",
    "2d_same",
    "2d_1x1",
    "2d_1x1_padded",
    "2d_stride2",
    "2d_stride_beyond_kernel_leftover",
    "2d_stride2_dilation3",
    "2d_taps_mostly_in_padding",
    "2d_asymmetric",
    "2d_padding_beyond_kernel",
    "2d_padding_beyond_input",
    "2d_groups3_stride2",
    "2d_depthwise",
    "2d_depthwise_stride2",
    "2d_first_layer",
    "2d_channels65",
    "2d_depth1200",
    "2d_positions_1445",
    "3d_mixed_stride",
)
SOME = [PROBLEMS[name] for name in NAMES]
PADDED = [problem for problem in SOME if any(map(any, problem.padding))]

kernels = pytest.mark.parametrize("kernel", KERNELS)
dtypes = pytest.mark.parametrize("dtype", FLOATS)


def compute(kernel, problem, tensors):
    return OPERATIONS[OPERATION[kernel]].call(problem, tensors).astype(np.float64)


@kernels
@dtypes
@pytest.mark.parametrize("problem", SOME, ids=str)
def test_one_value(kernel, dtype, problem):
    tensors, _ = integer_tensors(problem, dtype)
    random = np.random.default_rng(3)
    for name in OPERATIONS[OPERATION[kernel]].reads:
        size = getattr(tensors, name).size
        # Corners, which padding meets first, and any places.
        places = {0, size - 1, *random.integers(0, size, 2)}
        for place, value in zip(sorted(places), (np.nan, np.inf, -np.inf, np.inf), strict=False):
            inputs = spoiled(tensors, name, place, value)
            expected = reference_kernel(kernel, problem, inputs)
            assert_same(compute(kernel, problem, inputs), expected)


@kernels
@dtypes
@pytest.mark.parametrize("problem", SOME, ids=str)
def test_every_weight_or_gradient_infinite(kernel, dtype, problem):
    """An operand full of infinities must give no NaN: an infinity that is multiplied by padding would give one."""
    tensors, _ = integer_tensors(problem, dtype)
    ones = Tensors(*(np.ones_like(array) for array in tensors))
    for name in OPERATIONS[OPERATION[kernel]].reads:
        inputs = ones._replace(**{name: np.full_like(getattr(ones, name), np.inf)})
        expected = reference_kernel(kernel, problem, inputs)
        assert not np.isnan(expected).any()
        assert_same(compute(kernel, problem, inputs), expected)


@kernels
@dtypes
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=str)
def test_results_without_terms_are_positive_zero(kernel, dtype, problem):
    """With every input NaN, a result must be NaN if it has a term, and +0 if it has none."""
    tensors = Tensors(
        *(np.full(shape, np.nan, dtype_of(dtype)) for shape in (problem.x_shape, problem.w_shape, problem.y_shape))
    )
    terms = reference_kernel(kernel, problem, Tensors(*(np.ones(array.shape) for array in tensors)))
    result = compute(kernel, problem, tensors)
    np.testing.assert_array_equal(np.isnan(result), terms > 0)
    assert not np.signbit(result[terms == 0]).any()


#: Problems with more outputs than a word has bits, and with several blocks of channels.
WIDE = (
    parse('mb2ic70ih5oc130kh3ph1n"wide"'),
    parse('mb2ic70ih7oc130kh3sh2ph1n"wide_stride2"'),
    parse('mb2ic130ih5oc70kh1ph1n"wide_pointwise"'),
    parse('mb1ic24ih9oc70kh5ph2dh1n"wide_dilated"'),
)


@kernels
@dtypes
@pytest.mark.parametrize("share", (0.001, 0.03, 0.5))
@pytest.mark.parametrize("problem", WIDE, ids=str)
def test_many_values(kernel, dtype, share, problem):
    """NaN and infinity must reach the results of their terms only, together, in one operand or in both."""
    tensors, _ = integer_tensors(problem, dtype)
    reads = OPERATIONS[OPERATION[kernel]].reads
    random = np.random.default_rng(4)
    for names in ([reads[0]], [reads[1]], reads):
        for values in ((np.nan,), (np.inf, -np.inf), (np.nan, np.inf)):
            inputs = tensors
            for name in names:
                size = getattr(tensors, name).size
                places = np.flatnonzero(random.random(size) < share)
                inputs = spoiled(inputs, name, places, random.choice(values, places.size))
            with np.errstate(invalid="ignore"):
                expected = reference_kernel(kernel, problem, inputs)
            assert_same(compute(kernel, problem, inputs), expected)


@pytest.mark.parametrize("problem", PADDED, ids=str)
def test_a_padded_copy_would_fail(problem):
    """The tests must see the difference: on a copy of x with zeros around it, an infinite weight makes NaN."""
    x = np.ones(problem.x_shape)
    w = np.full(problem.w_shape, np.inf)
    copy = np.pad(x, ((0, 0), (0, 0), *problem.padding))
    geometry = {**problem.geometry, "pad_begin": (0,) * len(problem.kernel)}
    assert np.isnan(reference.fprop(copy, w, problem.y_shape, **geometry)).any()
    assert not np.isnan(reference.fprop(x, w, problem.y_shape, **problem.geometry)).any()


def test_some_results_have_no_terms():
    """Each of the three kernels must have results without terms among the problems."""
    for kernel in KERNELS:
        counts = (
            reference_kernel(kernel, p, Tensors(np.ones(p.x_shape), np.ones(p.w_shape), np.ones(p.y_shape)))
            for p in PROBLEMS.values()
        )
        assert any((count == 0).any() for count in counts), kernel
