"""The exactness of tensor-core kernels, and their results for NaN and infinity."""

from zlib import crc32

import numpy as np
import pytest
from operations import Tensors, dtype_of, integer_tensors, real_tensors, reference_kernel
from problems import PROBLEMS, parse
from simulated import FORMATS, H200, Case
from tensor_cores import KINDS, TILES_ALONE, case_of, changed, kernels, kinds, run

from convgrad_cy.gpu import module

pytestmark = pytest.mark.simulator

SPLIT = parse('mb1ic132ih5oc140kh3sh2ph1n"split"')


def test_planes_are_all_of_a_number():
    """A convolution with 1 under "high" must change no bit, from the largest number to the end of the last plane."""
    problem = parse('mb1ic1ih40oc1kh1n"identity"')
    random = np.random.default_rng(1)
    x = np.ldexp(random.uniform(-2, 2, problem.x_shape), random.integers(-105, 127, problem.x_shape)).astype(np.float32)
    x.reshape(-1)[:6] = 2.0**127, -0.0, 1, 1 + 2**-23, 2**-100, 2 - 2**-23
    tensors = Tensors(x, np.ones(problem.w_shape, np.float32), np.zeros(problem.y_shape, np.float32))
    np.testing.assert_array_equal(run(Case("fprop", problem, tensors)), x)
    # The nearest bfloat16 would be infinity; the sum of the first two planes may leave float32 for a moment.
    x[...] = -np.finfo(np.float32).max
    np.testing.assert_array_max_ulp(run(Case("fprop", problem, tensors)).astype(np.float32), x, 1)


@pytest.mark.slow
@kernels
@pytest.mark.parametrize("kind, bound", [("float64", 1e-13), ("float32-high", 2e-6), ("float32-medium", 1e-5)])
@pytest.mark.parametrize("positive", (False, True), ids=("normal", "positive"))
def test_long_sums(kernel, kind, bound, positive):
    """Sums of 4608 terms and more must be within the bound, of both signs and of one, where errors add up."""
    problem = parse('mb2ic512ih3oc520kh3ph1n"long_sums"' if kernel != "wgrad" else 'mb2ic3ih48oc5kh3ph1n"long_sums"')
    tensors = real_tensors(problem, KINDS[kind][0])
    if positive:
        tensors = Tensors(*map(abs, tensors))
    exact = reference_kernel(kernel, problem, tensors)
    error = abs(run(case_of(kernel, problem, tensors, kind)) - exact).max() / abs(exact).max()
    assert error <= bound


def test_sums_are_promoted():
    """Sums must be promoted: the simulator's tensor cores truncate like real ones, so sums are less exact without."""
    problem = parse('mb1ic1024ih3oc8kh3ph1n"truncated"')
    tensors = Tensors(*map(abs, real_tensors(problem, "float32")))
    exact = reference_kernel("fprop", problem, tensors)
    case = Case("fprop", problem, tensors, device=H200._replace(processors=1))  # a split would help as well
    errors = [
        abs(run(case, **text) - exact).max() / abs(exact).max()
        for text in ({}, {"text": changed("constexpr int PROMOTION = 2;", "constexpr int PROMOTION = 1 << 20;")})
    ]
    assert errors[0] < 1e-6 and errors[1] > 5e-6


# ---- NaN and infinity ----


def assert_same(result, expected):
    """Assert equal values, with NaN equal to NaN, and infinities of equal sign."""
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    np.testing.assert_array_equal(result, expected)


SPOILED = [
    SPLIT,
    *(PROBLEMS[name] for name in ("1d", "2d_1x1_padded", "2d_stride2_dilation3", "2d_groups3_stride2")),
    *(PROBLEMS[name] for name in ("2d_taps_mostly_in_padding", "2d_channels65")),
]


@pytest.mark.slow
@kernels
@kinds
@pytest.mark.parametrize("problem", SPOILED, ids=str)
def test_one_value_is_not_finite(kernel, kind, problem):
    """One value must reach the results that have it in a term. Neither padding nor planes may add or remove any."""
    tensors, _ = integer_tensors(problem, KINDS[kind][0])
    random = np.random.default_rng(3)
    for spoiled in {"fprop": "xw", "dgrad": "yw", "wgrad": "xy"}[kernel]:
        array = getattr(tensors, spoiled).copy()
        places = sorted({0, array.size - 1, *random.integers(0, array.size, 2)})
        for place, value in zip(places, (np.nan, np.inf, -np.inf, np.inf), strict=False):
            array.reshape(-1)[place] = value
        inputs = tensors._replace(**{spoiled: array})
        formats = FORMATS[crc32(f"{problem} {kernel} {kind}".encode()) % 3]
        result = run(case_of(kernel, problem, inputs, kind, formats=formats), module.text)
        assert_same(result, reference_kernel(kernel, problem, inputs))


INFINITE = ("2d_padding_beyond_input", "2d_stride_beyond_kernel_leftover", "2d_sixteen")


@pytest.mark.slow
@kernels
@kinds
@pytest.mark.parametrize("problem", [SPLIT, *map(PROBLEMS.get, INFINITE)], ids=str)
def test_all_of_an_operand_is_infinite(kernel, kind, problem):
    """All infinite terms must be right: an infinity times padding, or times a plane that is zero, would give NaN."""
    dtype = dtype_of(KINDS[kind][0])
    for infinite in {"fprop": "xw", "dgrad": "yw", "wgrad": "xy"}[kernel]:
        ones = Tensors(*(np.ones(shape, dtype) for shape in (problem.x_shape, problem.w_shape, problem.y_shape)))
        inputs = ones._replace(**{infinite: np.full_like(getattr(ones, infinite), np.inf)})
        result = run(case_of(kernel, problem, inputs, kind), module.text)
        assert_same(result, reference_kernel(kernel, problem, inputs))
        assert not np.signbit(result).any()


@kernels
def test_double_products_of_sm_80(kernel):
    """GPUs before sm_90 must multiply doubles in parts of 8 x 8 x 4."""

    def text(source, macros=()):
        return TILES_ALONE(source, (*macros, ("ARCH", "800")))

    tensors, results = integer_tensors(PROBLEMS["2d_stride2"], "float64")
    case = case_of(kernel, PROBLEMS["2d_stride2"], tensors, "float64", device=H200._replace(arch=80))
    np.testing.assert_array_equal(run(case, text), results[kernel])
