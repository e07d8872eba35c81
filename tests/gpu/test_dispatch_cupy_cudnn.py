"""``convgrad_cy.shims.cupy_cudnn`` on arrays of CuPy: values, sigpy's calls, devices, refusals."""

import fake_cupy
import numpy as np
import pytest
import sigpy_calls
from cudnn_calls import MAKES, PROBLEMS, call, complex_tensors
from layouts import every_second
from operations import integer_tensors, reference_kernel
from sim.executor import COMPILER

from convgrad_cy.shims import cupy_cudnn as cudnn

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile kernels for the simulator")

F4 = np.float32
slow = pytest.mark.slow
kernels = pytest.mark.parametrize("kernel", MAKES)


@pytest.fixture(autouse=True)
def cupy(monkeypatch):
    fake_cupy.install(monkeypatch)


def target_of(kernel, problem, dtype):
    return fake_cupy.empty(getattr(problem, f"{MAKES[kernel]}_shape"), dtype)


@pytest.mark.parametrize("dtype", ["float32", *(pytest.param(name, marks=slow) for name in ("float16", "float64"))])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=str)
@kernels
def test_values(kernel, problem, dtype):
    tensors, expected = integer_tensors(problem, dtype)
    target = target_of(kernel, problem, dtype)
    for _ in range(2):
        call(kernel, problem, list(map(fake_cupy.array, tensors)), target)
        np.testing.assert_array_equal(target.get().astype(np.float64), expected[kernel])
    assert fake_cupy.launches


@pytest.mark.parametrize("dtype", ["complex64", pytest.param("complex128", marks=slow)])
@kernels
def test_complex_values(kernel, dtype):
    problem = PROBLEMS["cudnn_2d"]
    first, _ = integer_tensors(problem, "float16")
    second = tuple(array[::-1] for array in first)
    target = target_of(kernel, problem, dtype)
    call(kernel, problem, list(map(fake_cupy.array, complex_tensors(first, second, dtype))), target)
    real, imag, both = (
        reference_kernel(kernel, problem, tensors)
        for tensors in (first, second, [one + other for one, other in zip(first, second, strict=True)])
    )
    np.testing.assert_array_equal(target.get(), real - imag + 1j * (both - real - imag))


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("kernel", ["fprop", "dgrad"])
def test_bias_on_a_device_that_is_not_the_current_one(kernel, layout):
    problem = PROBLEMS["cudnn_2d"]
    tensors, expected = integer_tensors(problem, "float32")
    bias = np.arange(expected[kernel].shape[1]) - 2
    expected = expected[kernel] + bias.reshape(-1, 1, 1)
    if layout:
        tensors, expected = [array.transpose(0, 2, 3, 1) for array in tensors], expected.transpose(0, 2, 3, 1)
    with fake_cupy.Device(1):
        arrays, b = list(map(fake_cupy.array, tensors)), fake_cupy.array(bias.astype(F4), every_second)
        target = fake_cupy.empty(expected.shape, F4)
    call(kernel, problem, arrays, target, b, d_layout=layout, w_layout=layout)
    np.testing.assert_array_equal(target.get(), expected)


@pytest.mark.parametrize("case", sigpy_calls.CASES, ids=str)
@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=slow), "complex64"])
@pytest.mark.parametrize("kind", sigpy_calls.KINDS)
def test_what_sigpy_asks(kind, dtype, case):
    sizes, one, other = sigpy_calls.drawn(kind, case, dtype)
    result = sigpy_calls.asked(fake_cupy, kind, sizes, one, other)
    np.testing.assert_array_equal(result, sigpy_calls.defined(kind, sizes, one, other))
    assert fake_cupy.launches


def test_refused():
    x, w, y = (np.ones(shape, F4) for shape in ((2, 4, 5), (6, 4, 3), (2, 6, 3)))
    here = {"x": fake_cupy.array(x), "W": fake_cupy.array(w), "b": None, "y": fake_cupy.array(y)}
    with fake_cupy.Device(1):
        there = {name: fake_cupy.array(array) for name, array in (("x", x), ("W", w), ("y", y))}
    b_there, memory = there["y"][0, :, 0], fake_cupy.array(np.ones(100, F4))
    for changed, error, message in (
        ({"W": w}, TypeError, "W must be a cupy.ndarray like x, not a numpy.ndarray"),
        ({"x": x}, TypeError, "W must be a numpy.ndarray like x, not a cupy.ndarray"),
        ({"y": y}, TypeError, "y must be a cupy.ndarray like x, not a numpy.ndarray"),
        ({"b": np.ones(6, F4)}, TypeError, "b must be a cupy.ndarray like x, not a numpy.ndarray"),
        ({"W": there["W"]}, TypeError, "W must be on the device of x, cuda:0, not on cuda:1"),
        ({"y": there["y"]}, TypeError, "y must be on the device of x, cuda:0, not on cuda:1"),
        ({"b": b_there}, TypeError, "b must be on the device of x, cuda:0, not on cuda:1"),
        ({"W": here["W"][:, :3]}, cudnn.CuDNNError, "x.shape[1] must be groups * W.shape[1] = 1 * 3, not 4"),
        ({"x": here["x"].view(np.int32)}, TypeError, "Dtype int32 is not supported in cuDNN"),
        (
            {"x": memory[:40].reshape(2, 4, 5), "y": memory[39:75].reshape(2, 6, 3)},
            cudnn.CuDNNError,
            "y must not overlap x in memory",
        ),
    ):
        with pytest.raises(error) as caught:
            cudnn.convolution_forward(
                **(here | changed), pad=(0,), stride=(1,), dilation=(1,), groups=1, auto_tune=True, tensor_core="auto"
            )
        assert str(caught.value) == message
    assert fake_cupy.launches == []
