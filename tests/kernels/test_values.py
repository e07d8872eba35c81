"""Every operation against the reference: exactly on integers, within a derived bound on reals."""

import numpy as np
import pytest
from layouts import INPUTS, OUTPUTS, repeated
from operations import (
    DATA_FORMATS,
    DTYPES,
    FILTER_FORMATS,
    FLOATS,
    KERNELS,
    OPERATIONS,
    Tensors,
    assert_exact,
    bits,
    dtype_of,
    integer_tensors,
    real_tensors,
    reference_kernel,
)
from problems import PROBLEMS, parse

import convgrad_cy as cg

#: One problem for each mistake that formats and layouts allow.
FEW = [
    PROBLEMS[name]
    for name in (
        "1d_groups",
        "2d_valid",
        "2d_groups3_stride2",
        "2d_depthwise_multiplier3",
        "2d_stride_beyond_kernel_leftover",
        "2d_channels65",
        "3d_mixed_stride",
    )
]
#: The operation that stands for each kernel in tests of other things than functions.
BY_KERNEL = {"fprop": "conv", "dgrad": "conv_backward_data", "wgrad": "conv_backward_filter"}

operations = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
kernels = pytest.mark.parametrize("kernel", KERNELS)
dtypes = pytest.mark.parametrize("dtype", DTYPES)


@operations
@dtypes
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=str)
def test_exact(operation, dtype, problem):
    tensors, results = integer_tensors(problem, dtype)
    assert_exact(operation.call(problem, tensors), results[operation.kernel], dtype)


@operations
@dtypes
@pytest.mark.parametrize("data_format", DATA_FORMATS)
@pytest.mark.parametrize("filter_format", FILTER_FORMATS)
def test_formats(operation, dtype, data_format, filter_format):
    for problem in FEW:
        tensors, _ = integer_tensors(problem, dtype)
        expected = operation.expected(problem, tensors, data_format, filter_format)
        result = operation.call(problem, tensors, data_format, filter_format)
        assert_exact(result, expected, dtype)


@operations
@pytest.mark.parametrize("spelling", ["NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"])
def test_format_spellings(operation, spelling):
    problem = next(problem for problem in FEW if len(problem.kernel) == len(spelling) - 2)
    tensors, _ = integer_tensors(problem, "float32")
    expected = operation.expected(problem, tensors, spelling)
    assert_exact(operation.call(problem, tensors, spelling), expected, "float32")


@operations
@pytest.mark.parametrize("layout", INPUTS)
def test_layouts_of_operands(operation, layout):
    for problem in FEW:
        for dtype in DTYPES:
            tensors, results = integer_tensors(problem, dtype)
            assert_exact(operation.call(problem, tensors, layout=layout), results[operation.kernel], dtype)


@operations
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_broadcast_operands(operation, axis):
    for problem in FEW:
        # float32: its sums of any values in this range are exact, also of repeated ones.
        tensors, _ = integer_tensors(problem, "float32")
        tensors = Tensors(*(repeated(array, axis) for array in tensors))
        assert_exact(operation.call(problem, tensors), operation.expected(problem, tensors), "float32")


@operations
@pytest.mark.parametrize("layout", OUTPUTS)
def test_out(operation, layout):
    for problem in FEW:
        for dtype in DTYPES:
            tensors, results = integer_tensors(problem, dtype)
            expected = results[operation.kernel]
            out = layout(np.full(expected.shape, 99, dtype_of(dtype)))
            memory = out if out.base is None else out.base
            before = bits(memory)
            result = operation.call(problem, tensors, out=out)
            assert result is out
            assert_exact(result, expected, dtype)
            out[...] = 99
            assert bits(memory) == before, "memory outside of the elements of out has changed"


@operations
def test_out_in_other_formats(operation):
    problem = PROBLEMS["2d_groups3_stride2"]
    tensors, _ = integer_tensors(problem, "float32")
    expected = operation.expected(problem, tensors, "NXC", "XIO")
    out = np.full(expected.shape[::-1], 99, np.float32).T
    assert operation.call(problem, tensors, "NXC", "XIO", out=out) is out
    assert_exact(out, expected, "float32")


@operations
@pytest.mark.parametrize("problem", FEW, ids=str)
def test_int32_wraps(operation, problem):
    random = np.random.default_rng(5)
    shapes = (problem.x_shape, problem.w_shape, problem.y_shape)
    tensors = Tensors(*(random.integers(-(2**31), 2**31, shape).astype(np.int32) for shape in shapes))
    exact = operation.expected(problem, tensors)
    wrapped = exact.astype(np.int32)
    assert (wrapped != exact).any()
    assert_exact(operation.call(problem, tensors), wrapped, "int32")


@kernels
@dtypes
def test_long_sum_of_ones(kernel, dtype):
    """The sum must not stop early, as in float16 or bfloat16 sums: 3008 is exact in both, 2049 and 257 are not."""
    text = {"fprop": "ic3008oc1iw1", "dgrad": "ic1oc3008iw1", "wgrad": "ic1oc1iw3008"}[kernel]
    problem = parse(f'mb1{text}kw1n"ones"')
    shapes = (problem.x_shape, problem.w_shape, problem.y_shape)
    tensors = Tensors(*(np.ones(shape, dtype_of(dtype)) for shape in shapes))
    result = OPERATIONS[BY_KERNEL[kernel]].call(problem, tensors)
    assert_exact(result, np.full(result.shape, 3008), dtype)


@kernels
@pytest.mark.parametrize("dtype", [name for name in FLOATS if dtype_of(name).itemsize == 2])
def test_every_value_is_rounded_once(kernel, dtype):
    """Each finite value of the dtype times a factor must be the float32 product, rounded to nearest, ties to even.

    The factors reach ties, subnormal results and overflow to infinity.
    """
    values = np.arange(2**16, dtype=np.uint16).view(dtype_of(dtype))
    with np.errstate(invalid="ignore"):  # signalling NaNs raise it
        values = values[np.isfinite(values)]
    text, read, factor_of = {
        "fprop": (f"ic1oc1iw{len(values)}", "x", "w"),
        "dgrad": (f"ic1oc1iw{len(values)}", "y", "w"),
        "wgrad": (f"ic1oc{len(values)}iw1", "y", "x"),
    }[kernel]
    problem = parse(f'mb1{text}kw1n"values"')
    for factor in np.array([1, 1 + 2**-7, -3, 1 / 3, 2**-10, 300], dtype_of(dtype)):
        arrays = dict.fromkeys("xwy")
        arrays[read] = values.reshape(getattr(problem, f"{read}_shape"))
        arrays[factor_of] = np.full((1, 1, 1), factor)
        result = OPERATIONS[BY_KERNEL[kernel]].call(problem, Tensors(**arrays))
        with np.errstate(over="ignore", under="ignore"):
            expected = (values.astype(np.float32) * np.float32(factor)).astype(values.dtype)
        np.testing.assert_array_equal(result.ravel().astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("dtype", [name for name in FLOATS if dtype_of(name).itemsize == 2])
@pytest.mark.parametrize("length", (*range(1, 41), 63, 64, 65, 127, 129))
def test_rows_of_any_length_are_rounded_once(dtype, length):
    """The sum of two channels must be rounded once, in rows that end inside of vectors. NaN and infinity must stay."""
    random = np.random.default_rng(length)
    with np.errstate(invalid="ignore", over="ignore"):  # signalling NaNs raise them
        x = random.integers(0, 2**16, (3, 2, length), dtype=np.uint16).view(dtype_of(dtype))
        x[np.abs(x) < np.finfo(np.float32).tiny if dtype == "bfloat16" else x == 0] = 1  # pairs treat them as zero
        expected = x[:, :1].astype(np.float32) + x[:, 1:].astype(np.float32)
        expected = expected.astype(x.dtype).astype(np.float64)
        w = np.ones((1, 2, 1), x.dtype)
        first = cg.conv(x, w)
        last = cg.conv(np.ascontiguousarray(np.moveaxis(x, 1, 2)), w, data_format="NXC")
    np.testing.assert_array_equal(first.astype(np.float64), expected)
    np.testing.assert_array_equal(np.moveaxis(last, 2, 1).astype(np.float64), expected)


@pytest.mark.parametrize("groups", (1, 64))
def test_zeros_come_before_sums(groups):
    """Results without a tap must be zero, however the threads share the tasks of a large problem."""
    rng = np.random.default_rng(0)
    dy = rng.integers(-4, 5, (4, 64, 48, 48)).astype(np.float32)
    w = rng.integers(-4, 5, (64, 64 // groups, 2, 2)).astype(np.float32)
    expected = np.zeros((4, 64, 144, 144), np.float32)
    for i in range(2):
        for j in range(2):
            tap = w[:, :, i, j]
            expected[:, :, i::3, j::3] = (
                dy * tap[None, :, :1, None] if groups == 64 else np.einsum("nohw,oc->nchw", dy, tap)
            )
    for _ in range(5):
        result = cg.conv_backward_data(dy, w, expected.shape, stride=3, groups=groups, algorithm="direct")
        np.testing.assert_array_equal(result, expected)


#: Problems with real data: they differ in the length and the order of sums.
REAL = [
    *FEW,
    *(PROBLEMS[name] for name in ("2d_same", "2d_1x1_odd_channels", "2d_stride2", "2d_depthwise", "3d_same")),
    *(PROBLEMS[name] for name in ("2d_depth1200", "2d_depth810", "1d_many_positions", "2d_blocks_stride2")),
]
#: For the types with rounding: half an ulp relative to a normal number, and half the smallest subnormal number.
ROUNDING = {"float16": (2.0**-11, 2.0**-25), "bfloat16": (2.0**-8, 2.0**-134)}


def error_bound(kernel, problem, tensors, exact, dtype):
    """(K + 1) * eps * S for the sum in the compute dtype, plus one rounding to a narrower storage dtype.

    A sum of K rounded products in any order is within K * u * S, to first order in u = eps / 2. For float64 the
    reference is such a sum, too: together K * eps * S. The one in K + 1 covers the higher orders.
    """
    absolute = Tensors(*(abs(array.astype(np.float64)) for array in tensors))
    magnitude = reference_kernel(kernel, problem, absolute)
    terms = reference_kernel(kernel, problem, Tensors(*(np.ones(array.shape) for array in tensors)))
    bound = (terms + 1) * np.finfo(np.float64 if dtype == "float64" else np.float32).eps * magnitude
    if dtype in ROUNDING:
        relative, least = ROUNDING[dtype]
        bound = bound + np.maximum(relative * (abs(exact) + bound), least)
    return bound, magnitude, terms


@operations
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("problem", REAL, ids=str)
def test_real_data(operation, dtype, problem):
    tensors = real_tensors(problem, dtype)
    exact = operation.expected(problem, tensors)
    bound, _, _ = error_bound(operation.kernel, problem, tensors, exact, dtype)
    error = abs(operation.call(problem, tensors).astype(np.float64) - exact)
    assert (error <= bound).all(), f"{(error > bound).sum()} of {error.size} elements, worst {(error - bound).max()}"


@kernels
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("problem", REAL, ids=str)
def test_bound_rejects_a_dropped_term(kernel, dtype, problem):
    """A result without one term of at least average size must be out of the bound."""
    tensors = real_tensors(problem, dtype)
    exact = reference_kernel(kernel, problem, tensors)
    bound, magnitude, terms = error_bound(kernel, problem, tensors, exact, dtype)
    operand = "y" if kernel == "wgrad" else "w"
    damaged = getattr(tensors, operand).copy()
    damaged[np.unravel_index(abs(damaged).argmax(), damaged.shape)] = 0
    wrong = reference_kernel(kernel, problem, tensors._replace(**{operand: damaged}))
    with np.errstate(invalid="ignore"):
        average = np.where(terms > 0, magnitude / np.maximum(terms, 1), np.inf)
    # Half an ulp of the result is less than an average term only if there are few terms.
    seen = (abs(wrong - exact) >= average) & (terms < (64 if dtype in ROUNDING else 2000))
    assert seen.any() or (dtype in ROUNDING and terms.max() >= 64) or terms.max() >= 2000
    assert (abs(wrong - exact) > bound)[seen].all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("data_format", DATA_FORMATS)
@pytest.mark.parametrize(
    "text",
    [
        'mb3ic32iw700oc1ow700kw7pw3n"row"',
        'mb2ic40ih20iw30oc3kh3kw5ph1pw2n"few"',
        'mb2ic20ih20oc1kh3ph5n"padding_beyond_kernel"',
        'mb2ic20ih24oc2kh3dh1ph2n"dilation"',
        'mb2ic16id6ih6oc1kh3kd2ph1pd1n"3d"',
        'mb2ic70ih13oc1kh1n"1x1"',
    ],
)
def test_wgrad_of_few_outputs(text, data_format, dtype):
    """x and y are exchanged in wgrad of few outputs; an infinity in either must reach only the results of its terms."""
    problem = parse(text)
    tensors, results = integer_tensors(problem, dtype)
    operation = OPERATIONS["conv_backward_filter"]
    assert_exact(operation.call(problem, tensors, data_format), results["wgrad"], dtype)
    if dtype == "int32":
        return
    for name in "xy":
        for place in (0, -1, 57):
            spoiled = getattr(tensors, name).copy()
            spoiled.reshape(-1)[place] = np.inf
            tensors_now = tensors._replace(**{name: spoiled})
            expected = operation.expected(problem, tensors_now).astype(np.float64)
            result = operation.call(problem, tensors_now, data_format).astype(np.float64)
            np.testing.assert_array_equal(result, expected)
