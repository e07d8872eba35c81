"""``convgrad_cy.shims.cupy_cudnn`` on NumPy arrays: values against the definition, and the calls of sigpy."""

import doctest
import inspect
import sys
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import pytest
import sigpy_calls
from cudnn_calls import MAKES, PROBLEMS, call, complex_tensors
from layouts import INPUTS, OUTPUTS
from operations import bits, integer_tensors, reference_kernel

from convgrad_cy.shims import cupy_cudnn as cudnn

FUNCTIONS = (cudnn.convolution_forward, cudnn.convolution_backward_data, cudnn.convolution_backward_filter)
F4 = np.float32
kernels = pytest.mark.parametrize("kernel", MAKES)


def target_of(kernel, problem, dtype):
    return np.full(getattr(problem, f"{MAKES[kernel]}_shape"), 77, dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=str)
@kernels
def test_values(kernel, problem, dtype):
    tensors, expected = integer_tensors(problem, dtype)
    target = target_of(kernel, problem, dtype)
    call(kernel, problem, tensors, target)
    np.testing.assert_array_equal(target.astype(np.float64), expected[kernel])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=str)
@kernels
def test_complex_values(kernel, problem, dtype):
    """Complex values must be exact. The reference has three real products instead of the shim's four."""
    first, _ = integer_tensors(problem, "float16")
    second = tuple(array[::-1] for array in first)
    target = target_of(kernel, problem, dtype)
    call(kernel, problem, complex_tensors(first, second, dtype), target)
    real, imag, both = (
        reference_kernel(kernel, problem, tensors)
        for tensors in (first, second, [one + other for one, other in zip(first, second, strict=True)])
    )
    np.testing.assert_array_equal(target.real, real - imag)
    np.testing.assert_array_equal(target.imag, both - real - imag)


@pytest.mark.parametrize("dtype", ["float16", "float64", "complex64"])
@pytest.mark.parametrize("layout", [cudnn.CUDNN_TENSOR_NCHW, cudnn.CUDNN_TENSOR_NHWC])
@pytest.mark.parametrize("kernel", ["fprop", "dgrad"])
def test_bias(kernel, layout, dtype):
    problem = PROBLEMS["cudnn_2d"]
    tensors, expected = integer_tensors(problem, "float16")
    channels = expected[kernel].shape[1]
    bias = np.arange(channels) - 2
    last = layout == cudnn.CUDNN_TENSOR_NHWC
    tensors = [(array.transpose(0, 2, 3, 1) if last else array).astype(dtype) for array in tensors]
    expected = expected[kernel] + bias.reshape(-1, 1, 1)
    expected = expected.transpose(0, 2, 3, 1) if last else expected
    for given in (bias, np.repeat(bias, 2)[::2], bias.reshape(1, -1)):
        target = np.full(expected.shape, 77, dtype)
        call(kernel, problem, tensors, target, given.astype(dtype), d_layout=layout, w_layout=layout)
        np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("kernel", ["fprop", "dgrad"])
def test_one_number_for_all_channels(kernel):
    """One number must be accepted as the bias of all channels, as in cuDNN."""
    problem = PROBLEMS["cudnn_3d"]
    tensors, expected = integer_tensors(problem, "float32")
    target = target_of(kernel, problem, F4)
    call(kernel, problem, tensors, target, np.full(1, 3, F4))
    np.testing.assert_array_equal(target, expected[kernel] + 3)


@pytest.mark.parametrize("d_layout", [0, 1])
@pytest.mark.parametrize("w_layout", [0, 1])
@kernels
def test_layouts(kernel, d_layout, w_layout):
    """(N, H, W, C) and (O, H, W, C) must each be accepted, alone and together."""
    problem = PROBLEMS["cudnn_2d"]
    tensors, expected = integer_tensors(problem, "float32")
    last = {"x": d_layout, "w": w_layout, "y": d_layout}

    def laid_out(name, array):
        return np.ascontiguousarray(array.transpose(0, 2, 3, 1)) if last[name] else array

    tensors = [laid_out(name, array) for name, array in zip("xwy", tensors, strict=True)]
    expected = laid_out(MAKES[kernel], expected[kernel])
    target = np.full(expected.shape, 77, F4)
    call(kernel, problem, tensors, target, d_layout=d_layout, w_layout=w_layout)
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@kernels
def test_any_strides(kernel, dtype):
    """Any strides of the inputs must be accepted, and of the result, too, which CuPy does not allow."""
    problem = PROBLEMS["cudnn_2d"]
    tensors, expected = integer_tensors(problem, "float32")
    tensors = [array.astype(dtype) for array in tensors]
    for layout in INPUTS:
        target = target_of(kernel, problem, dtype)
        call(kernel, problem, [layout(array) for array in tensors], target)
        np.testing.assert_array_equal(target, expected[kernel])
    for layout in OUTPUTS:
        target = layout(target_of(kernel, problem, dtype))
        call(kernel, problem, tensors, target)
        np.testing.assert_array_equal(target, expected[kernel])


@pytest.mark.parametrize("case", sigpy_calls.CASES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("kind", sigpy_calls.KINDS)
def test_what_sigpy_asks(kind, dtype, case):
    sizes, one, other = sigpy_calls.drawn(kind, case, dtype)
    result = sigpy_calls.asked(np, kind, sizes, one, other)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, sigpy_calls.defined(kind, sizes, one, other))


@pytest.mark.parametrize("kind", sigpy_calls.KINDS)
def test_complex_arrays_in_one_call(kind):
    """The shim's four calls must have the bits of sigpy's four calls."""
    for case in sigpy_calls.CASES:
        sizes, one, other = sigpy_calls.drawn(kind, case, "complex64")
        by_four = sigpy_calls.asked(np, kind, sizes, one, other)
        other = other if kind == "convolve" else other.conj()
        function = getattr(sigpy_calls, f"_{kind}")
        assert bits(function(np, sizes, one, other)) == bits(by_four)


def test_definitions_are_adjoint():
    """<convolve(data, filt), output> = <data, data_adjoint(output, filt)> = <filt, filter_adjoint(output, data)>."""
    for case in sigpy_calls.CASES:
        sizes, data, filt = sigpy_calls.drawn("convolve", case, "complex128")
        _, output, _ = sigpy_calls.drawn("data_adjoint", case, "complex128")
        product = np.vdot(output, sigpy_calls.defined("convolve", sizes, data, filt))
        assert product != 0
        assert product == np.vdot(sigpy_calls.defined("data_adjoint", sizes, output, filt), data)
        assert product == np.vdot(sigpy_calls.defined("filter_adjoint", sizes, output, data), filt)


def test_where_sigpy_looks(monkeypatch):
    """The shim must be found as docs/golden-model.md sets it up: sigpy looks for one module, and imports another."""
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    monkeypatch.setitem(sys.modules, "cupy.cudnn", cudnn)
    monkeypatch.setitem(sys.modules, "cupy.cuda.cudnn", cudnn)
    assert find_spec("cupy.cuda.cudnn") is not None
    from cupy import cudnn as found

    assert found is cudnn


def test_signatures():
    """The signatures must be the same as in CuPy 13."""
    layouts = {"d_layout": 0, "w_layout": 0}
    geometry = ["pad", "stride", "dilation", "groups"]
    for function, arrays, keywords in (
        (FUNCTIONS[0], ["x", "W", "b", "y"], ["auto_tune", "tensor_core"]),
        (FUNCTIONS[1], ["W", "x", "b", "y"], ["deterministic", "auto_tune", "tensor_core"]),
        (FUNCTIONS[2], ["x", "gy", "gW"], ["deterministic", "auto_tune", "tensor_core"]),
    ):
        parameters = inspect.signature(function).parameters.values()
        positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        by_name = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
        assert [p.name for p in positional] == arrays + geometry
        assert [p.name for p in by_name] == keywords + list(layouts)
        assert {p.name: p.default for p in (*positional, *by_name) if p.default is not p.empty} == layouts


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_documentation(function):
    text = inspect.getdoc(function)
    assert "{" not in text
    assert all(f"\n{name}" in text or f", {name}" in text for name in inspect.signature(function).parameters)
    tests = doctest.DocTestFinder(recurse=False).find(function, function.__name__)
    assert doctest.DocTestRunner(verbose=False).run(*tests).failed == 0


def test_none_for_dilation():
    problem = PROBLEMS["cudnn_depthwise"]
    (x, w, _), expected = integer_tensors(problem, "float32")
    target = target_of("fprop", problem, F4)
    cudnn.convolution_forward(
        x, w, None, target, (1, 1), problem.stride, None, problem.groups, auto_tune=True, tensor_core="auto"
    )
    np.testing.assert_array_equal(target, expected["fprop"])


def test_empty():
    x, w, y = np.ones((0, 2, 5), F4), np.ones((3, 2, 2), F4), np.ones((0, 3, 4), F4)
    keywords = {"deterministic": False, "auto_tune": True, "tensor_core": "auto"}
    cudnn.convolution_backward_data(w, y, None, x, (0,), (1,), (1,), 1, **keywords)
    gw = np.full(w.shape, 7, F4)
    cudnn.convolution_backward_filter(x, y, gw, (0,), (1,), (1,), 1, **keywords)
    assert (gw == 0).all()
