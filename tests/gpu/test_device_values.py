"""The table of tests/kernels/test_values.py on a real GPU: every operation against the reference."""

import sys
from pathlib import Path

import numpy as np
import pytest
from layouts import INPUTS, OUTPUTS, repeated
from on_device import BOUNDS, laid_out, require_gpu, to_device, to_host
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
)
from problems import PROBLEMS, parse
from tensor_cores import KINDS, kernels, kinds

sys.path.append(str(Path(__file__).parents[2]))

from bench.gpu import forced
from bench.gpu.launches import watched
from convgrad_cy.gpu.work import device_of

require_gpu()

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
REAL = [*FEW, *(PROBLEMS[name] for name in ("2d_same", "2d_depthwise", "3d_same", "2d_depth1200", "1d_many_positions"))]
BY_KERNEL = {"fprop": "conv", "dgrad": "conv_backward_data", "wgrad": "conv_backward_filter"}
#: Types, and for float32 each precision.
PRECISE = [*((name, "high") for name in FLOATS), ("float32", "ieee"), ("float32", "medium")]

operations = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
dtypes = pytest.mark.parametrize("dtype", DTYPES)


def on_gpu(operation, problem, tensors, *formats, layout=to_device, **keywords):
    """The result as a NumPy array. A second call must give equal bits."""
    keywords = {"algorithm": "auto", **keywords}
    results = [to_host(operation.call(problem, tensors, *formats, layout=layout, **keywords)) for _ in range(2)]
    assert bits(results[0]) == bits(results[1])
    return results[0]


@operations
@dtypes
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=str)
def test_exact(operation, dtype, problem):
    tensors, results = integer_tensors(problem, dtype)
    assert_exact(on_gpu(operation, problem, tensors), results[operation.kernel], dtype)


@kernels
@kinds
@pytest.mark.parametrize("problem", [problem for problem in PROBLEMS.values() if problem.batch], ids=str)
def test_tensor_cores(kernel, kind, problem):
    """Tensor cores must be exact also for problems that do not gain. bench/gpu/variants.py has every tile."""
    if device_of(0).arch < 80:
        pytest.skip("this GPU has no tensor cores that are used")
    dtype, precision = KINDS[kind]
    tensors, _ = integer_tensors(problem, dtype)
    operation = OPERATIONS[BY_KERNEL[kernel]]
    for formats in (("NCX", "OIX"), ("NXC", "XIO")):
        with forced.taking("mma"), watched() as launched:
            result = on_gpu(operation, problem, tensors, *formats, precision=precision)
        assert any(source.startswith("mma") for source, *_ in launched)
        assert_exact(result, operation.expected(problem, tensors, *formats), dtype)


@operations
@dtypes
@pytest.mark.parametrize("data_format", DATA_FORMATS)
@pytest.mark.parametrize("filter_format", FILTER_FORMATS)
def test_formats(operation, dtype, data_format, filter_format):
    for problem in FEW:
        tensors, _ = integer_tensors(problem, dtype)
        expected = operation.expected(problem, tensors, data_format, filter_format)
        assert_exact(on_gpu(operation, problem, tensors, data_format, filter_format), expected, dtype)


@operations
@pytest.mark.parametrize("layout", INPUTS, ids=lambda layout: layout.__name__)
def test_layouts_of_operands(operation, layout):
    for problem in FEW:
        for dtype in DTYPES:
            tensors, results = integer_tensors(problem, dtype)
            result = on_gpu(operation, problem, tensors, layout=laid_out(layout))
            assert_exact(result, results[operation.kernel], dtype)


@operations
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_broadcast_operands(operation, axis):
    for problem in FEW:
        tensors, _ = integer_tensors(problem, "float32")
        tensors = Tensors(*(repeated(array, axis) for array in tensors))
        assert_exact(on_gpu(operation, problem, tensors), operation.expected(problem, tensors), "float32")


@operations
@pytest.mark.parametrize("layout", OUTPUTS, ids=lambda layout: layout.__name__)
def test_out(operation, layout):
    for problem in FEW:
        for dtype in DTYPES:
            tensors, results = integer_tensors(problem, dtype)
            expected = results[operation.kernel]
            out = to_device(layout(np.full(expected.shape, 99, dtype_of(dtype))))
            assert operation.call(problem, tensors, layout=to_device, out=out, algorithm="auto") is out
            assert_exact(to_host(out), expected, dtype)


@operations
@pytest.mark.parametrize("problem", FEW, ids=str)
def test_int32_wraps(operation, problem):
    random = np.random.default_rng(5)
    shapes = (problem.x_shape, problem.w_shape, problem.y_shape)
    tensors = Tensors(*(random.integers(-(2**31), 2**31, shape).astype(np.int32) for shape in shapes))
    assert_exact(on_gpu(operation, problem, tensors), operation.expected(problem, tensors).astype(np.int32), "int32")


@pytest.mark.parametrize("kernel", KERNELS)
@dtypes
def test_long_sum_of_ones(kernel, dtype):
    """The sum of ones must not stop early: 3008 is exact in float16 and bfloat16, but 2049 and 257 are not."""
    text = {"fprop": "ic3008oc1iw1", "dgrad": "ic1oc3008iw1", "wgrad": "ic1oc1iw3008"}[kernel]
    problem = parse(f'mb1{text}kw1n"ones"')
    shapes = (problem.x_shape, problem.w_shape, problem.y_shape)
    tensors = Tensors(*(np.ones(shape, dtype_of(dtype)) for shape in shapes))
    result = on_gpu(OPERATIONS[BY_KERNEL[kernel]], problem, tensors)
    assert_exact(result, np.full(result.shape, 3008), dtype)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [name for name in FLOATS if dtype_of(name).itemsize == 2])
def test_every_value_is_rounded_once(kernel, dtype):
    """Each finite value times a factor must be the float32 product, rounded to nearest, ties to even.

    Kernels are compiled with -ftz, so values that are subnormal in float32, as in bfloat16, are left out.
    """
    least = np.finfo(np.float32).tiny
    values = np.arange(2**16, dtype=np.uint16).view(dtype_of(dtype))
    with np.errstate(invalid="ignore"):
        wide = values.astype(np.float64)
        values = values[np.isfinite(wide) & ((abs(wide) >= least * 2**12) | (wide == 0))]
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
        operation = OPERATIONS[BY_KERNEL[kernel]]
        given = Tensors(*(np.zeros(1, dtype_of(dtype)) if array is None else array for array in arrays.values()))
        result = on_gpu(operation, problem, given)
        with np.errstate(over="ignore", under="ignore"):
            expected = (values.astype(np.float32) * np.float32(factor)).astype(values.dtype)
        np.testing.assert_array_equal(result.ravel().astype(np.float64), expected.astype(np.float64))


@operations
@pytest.mark.parametrize("dtype, precision", PRECISE)
@pytest.mark.parametrize("problem", REAL, ids=str)
def test_real_data(operation, dtype, precision, problem):
    tensors = real_tensors(problem, dtype)
    exact = operation.expected(problem, tensors)
    result = on_gpu(operation, problem, tensors, precision=precision).astype(np.float64)
    bound = BOUNDS[precision if dtype == "float32" else dtype]
    assert abs(result - exact).max() <= bound * abs(exact).max()


@operations
@pytest.mark.parametrize("dtype, precision", PRECISE)
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_nonfinite_values_stay_where_they_are(operation, dtype, precision, value):
    """An element must reach the results that have it in a term. Padding has no terms."""
    for problem in FEW:
        tensors, _ = integer_tensors(problem, dtype)
        for tensor in operation.reads:
            arrays = {name: np.array(array) for name, array in zip("xwy", tensors, strict=True)}
            arrays[tensor].flat[0] = arrays[tensor].flat[-1] = value
            damaged = Tensors(**arrays)
            with np.errstate(invalid="ignore"):
                expected = operation.expected(problem, damaged)
                result = on_gpu(operation, problem, damaged, precision=precision).astype(np.float64)
            np.testing.assert_array_equal(result, expected)


@kernels
@kinds
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_nonfinite_values_on_tensor_cores(kernel, kind, value):
    with forced.taking("mma"):
        test_nonfinite_values_stay_where_they_are(OPERATIONS[BY_KERNEL[kernel]], *KINDS[kind], value)
