"""Values out of the range of Winograd's algorithm, great or small: the result is then computed directly."""

import numpy as np
import pytest
from operations import OPERATIONS, bits, real_tensors, reference_kernel
from problems import PROBLEMS, parse
from test_winograd import BY_KERNEL, CONTRACT, HALVES, call, kernels

FAR = [
    *(PROBLEMS[name] for name in ("2d_same", "2d_blocks", "1d", "3d_same", "2d_padding_of_kernel_size", "2d_groups2")),
    PROBLEMS["2d_dilation2"],
]
#: Problems whose results depend on each element of both operands.
REACHED = [problem for problem in FAR if problem.name != "2d_padding_of_kernel_size"]
SPOILERS = {
    "nan": lambda array: place(array, np.nan),
    "inf": lambda array: place(array, np.inf, -np.inf),
    "all infinite": lambda array: np.full_like(array, np.inf),
    "overflow": lambda array: array * np.float32(1e37),
    "subnormal": lambda array: array * np.float32(1e-41),
    "tiny": lambda array: array * np.float32(1e-34),
}


def place(array, *values):
    array = array.copy()
    array.reshape(-1)[[0, -1][: len(values)]] = values
    return array


@kernels
@pytest.mark.parametrize("spoiler", SPOILERS)
@pytest.mark.parametrize("problem", FAR, ids=str)
def test_out_of_range_is_direct(kernel, spoiler, problem):
    """NaN, infinity and overflow must reach the same results as in the direct algorithm, with its bits."""
    tensors = real_tensors(problem, "float32")
    names = OPERATIONS[BY_KERNEL[kernel]].reads
    for spoiled in (*names, names):
        with np.errstate(over="ignore", under="ignore"):
            inputs = tensors._replace(**{name: SPOILERS[spoiler](getattr(tensors, name)) for name in spoiled})
        direct = call(kernel, problem, inputs, algorithm="direct")
        result = call(kernel, problem, inputs)
        if bits(result) != bits(direct):  # a result by Winograd's algorithm is legal if both are finite
            assert np.isfinite(direct).all() and np.isfinite(result).all()
            exact = reference_kernel(kernel, problem, inputs)
            assert abs(result - exact).max() <= CONTRACT * abs(exact).max()


def subnormal(array):
    """Values of a few times the least number above zero."""
    return np.round(8 * array).astype(np.float32) * np.float32(2.0**-149)


def but_one_channel(array, value):
    array = array.copy()
    array[:, 0] = value
    return array


def negative_behind_zeros(array):
    """Values of the greatest magnitude in no positive value, at no begin of a row, and not in the first row."""
    array = -abs(array)
    array[0, 0] = array[..., 0] = 0
    return array


def one_tap(array):
    """A filter with the least number above zero in one tap; every sum of several taps rounds it to zero."""
    made = np.zeros_like(array)
    made[(..., *(size // 2 for size in array.shape[2:]))] = 2.0**-149
    return made


#: Changes of two ordinary operands. Their products stay ordinary, but the results of the transforms do not.
TINY = {
    "first": lambda one, other: (subnormal(one), other * np.float32(1e36)),
    "second": lambda one, other: (one * np.float32(1e36), subnormal(other)),
    "first, but one channel": lambda one, other: (
        but_one_channel(subnormal(one), 1), but_one_channel(other * np.float32(1e36), 1)
    ),
    "second, but one channel": lambda one, other: (
        but_one_channel(one * np.float32(1e36), 1), but_one_channel(subnormal(other), 1)
    ),
    "second, with negative ones": lambda one, other: (
        negative_behind_zeros(one) * np.float32(1e36), subnormal(other)
    ),
    "second, of one tap": lambda one, other: (one * np.float32(1e30), one_tap(other)),
    "both small": lambda one, other: (one * np.float32(1e-20), other * np.float32(1e-20)),
}  # fmt: skip


@kernels
@pytest.mark.parametrize("tiny", TINY)
@pytest.mark.parametrize("problem", FAR, ids=str)
def test_subnormal_operands_beside_large_ones(kernel, tiny, problem):
    """Subnormal operands must be noticed, although the greatest element of operands and result would not show them."""
    tensors = real_tensors(problem, "float32")
    names = OPERATIONS[BY_KERNEL[kernel]].reads
    inputs = tensors._replace(**dict(zip(names, TINY[tiny](*(getattr(tensors, name) for name in names)), strict=True)))
    exact = reference_kernel(kernel, problem, inputs)
    assert abs(call(kernel, problem, inputs) - exact).max() <= CONTRACT * abs(exact).max()


@kernels
def test_a_few_tiny_values_or_none_are_in_range(kernel):
    """A value near zero among ordinary ones must not make a call direct, nor must an operand of zeros."""
    problem = PROBLEMS["2d_blocks"]
    tensors = real_tensors(problem, "float32")
    names = OPERATIONS[BY_KERNEL[kernel]].reads
    tiny = tensors._replace(**{name: place(getattr(tensors, name), 1e-41, 1e-38) for name in names})
    assert bits(call(kernel, problem, tiny)) != bits(call(kernel, problem, tiny, algorithm="direct"))
    for name in names:
        zeros = tensors._replace(**{name: np.zeros_like(getattr(tensors, name))})
        assert not call(kernel, problem, zeros).any()


@kernels
@pytest.mark.parametrize("problem", REACHED, ids=str)
def test_results_that_float16_makes_infinite(kernel, problem):
    """If float16 makes a result infinite, all bits must be the direct algorithm's: small results need its digits."""
    tensors = real_tensors(problem, "float16")
    first, second = OPERATIONS[BY_KERNEL[kernel]].reads
    large = place(getattr(tensors, first) * np.float16(2.0**12), 2.0**15)
    small = place(getattr(tensors, second) * np.float16(2.0**-12), 0, 2.0**15)
    inputs = tensors._replace(**{first: large, second: small})
    exact = abs(reference_kernel(kernel, problem, inputs))
    assert exact.max() > 2.0**20
    with np.errstate(over="ignore"):
        direct, result = (call(kernel, problem, inputs, algorithm=how) for how in ("direct", "winograd"))
    assert np.isinf(direct).any()
    assert bits(result) == bits(direct)


@pytest.mark.parametrize("channel", (0, 16, 32))
def test_filter_rows_that_float16_makes_infinite(channel):
    """An infinite row must be noticed in each part: one task stores the rows of 48 channels in three parts."""
    problem = parse('mb2ic48ih12oc16kh3ph1n"three_parts"')
    tensors = real_tensors(problem, "float16")
    factor = np.ones(48, np.float16)
    factor[channel : channel + 16] = 2.0**14
    inputs = tensors._replace(x=tensors.x * factor[:, None, None])
    with np.errstate(over="ignore"):
        direct, result = (call("wgrad", problem, inputs, algorithm=how) for how in ("direct", "winograd"))
    infinite = np.isinf(direct).any(axis=(0, 2, 3))
    assert infinite[channel : channel + 16].any() and infinite.sum() <= 16
    assert bits(result) == bits(direct)


@kernels
def test_the_greatest_numbers_of_float16_stand(kernel):
    problem = PROBLEMS["2d_blocks"]
    tensors = real_tensors(problem, "float16")
    first, second = OPERATIONS[BY_KERNEL[kernel]].reads
    inputs = tensors._replace(**{first: getattr(tensors, first) * np.float16(2.0**8)})
    factor = 65000 / abs(reference_kernel(kernel, problem, inputs)).max()
    inputs = inputs._replace(**{second: (getattr(tensors, second) * factor).astype(np.float16)})
    result = call(kernel, problem, inputs)
    assert np.isfinite(result).all() and abs(result).max() > 64000
    assert bits(result) != bits(call(kernel, problem, inputs, algorithm="direct"))


@kernels
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("value", (np.nan, np.inf))
@pytest.mark.parametrize("problem", REACHED, ids=str)
def test_what_is_not_finite_stays_local(kernel, dtype, value, problem):
    """NaN and infinity must stay local. Out of range, "auto" must have the bits of "direct" if bfloat16 uses pairs."""
    tensors = real_tensors(problem, dtype)
    for name in OPERATIONS[BY_KERNEL[kernel]].reads:
        inputs = tensors._replace(**{name: place(getattr(tensors, name), value)})
        direct, result = (call(kernel, problem, inputs, algorithm=how) for how in ("direct", "winograd"))
        assert bits(result) == bits(direct)
