"""The functions on arrays of CuPy, from end to end, with the simulator instead of the GPU."""

import sys

import fake_cupy
import numpy as np
import pytest
from layouts import INPUTS, OUTPUTS, record_field
from operations import DTYPES, OPERATIONS, assert_exact, bits, dtype_of, integer_tensors
from problems import PROBLEMS, parse
from sim.executor import COMPILER

import convgrad_cy as cg
from convgrad_cy import calls

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile kernels for the simulator")

NAMES = ("1d_groups", "2d_stride2_dilation3", "2d_depthwise_many", "3d_mixed_stride")
SAME = PROBLEMS["2d_same"]
F4 = np.float32


@pytest.fixture(autouse=True)
def cupy(monkeypatch):
    fake_cupy.install(monkeypatch)
    return fake_cupy


def check(result, expected, dtype):
    assert type(result) is fake_cupy.ndarray
    assert_exact(result.get(), expected, dtype)


@pytest.mark.parametrize(
    "dtype", [name if name == "float32" else pytest.param(name, marks=pytest.mark.slow) for name in DTYPES]
)
@pytest.mark.parametrize("problem", NAMES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_function(operation, problem, dtype):
    problem, operation = PROBLEMS[problem], OPERATIONS[operation]
    tensors, _ = integer_tensors(problem, dtype)
    for formats in (("NCX", "OIX"), ("NXC", "XIO")):
        result = operation.call(problem, tensors, *formats, layout=fake_cupy.array)
        check(result, operation.expected(problem, tensors, *formats), dtype)
    assert fake_cupy.launches


@pytest.mark.parametrize("layout", INPUTS, ids=lambda layout: layout.__name__)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_inputs_in_any_layout(operation, layout):
    operation = OPERATIONS[operation]
    tensors, _ = integer_tensors(SAME, "float32")
    result = operation.call(SAME, tensors, layout=lambda array: fake_cupy.array(array, layout))
    check(result, operation.expected(SAME, tensors), "float32")


@pytest.mark.parametrize("layout", OUTPUTS, ids=lambda layout: layout.__name__)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_out_in_any_layout(operation, layout):
    operation = OPERATIONS[operation]
    tensors, _ = integer_tensors(SAME, "float32")
    for _ in range(2):
        out = fake_cupy.array(np.full(operation.result_shape(SAME), 77, F4), layout)
        assert operation.call(SAME, tensors, layout=fake_cupy.array, out=out) is out
        np.testing.assert_array_equal(out.get(), operation.expected(SAME, tensors))


def test_too_little_memory(monkeypatch):
    """The error must be CuPy's own, which its users know."""

    class OutOfMemoryError(MemoryError):
        pass

    def empty(shape, dtype=float):
        raise OutOfMemoryError(f"Out of memory: {shape}")

    monkeypatch.setattr(sys.modules["cupy"], "empty", empty)
    x, w = (fake_cupy.array(np.ones(shape, F4)) for shape in ((1, 2, 5), (3, 2, 3)))
    with pytest.raises(OutOfMemoryError, match=r"^Out of memory: \(1, 3, 3\)$"):
        cg.conv(x, w)


@pytest.mark.parametrize("dtype", DTYPES)
def test_both_gradients(dtype):
    for name in NAMES:
        problem = PROBLEMS[name]
        tensors, expected = integer_tensors(problem, dtype)
        x, w, dy = map(fake_cupy.array, tensors)
        for outs in (None, [None, fake_cupy.empty(w.shape, w.dtype)], None):
            dx, dw = cg.conv_backward(dy, x, w, **problem.keywords, out=outs)
            assert outs is None or dw is outs[1]
            check(dx, expected["dgrad"], dtype)
            check(dw, expected["wgrad"], dtype)
        assert bits(dx.get()) == bits(cg.conv_backward_data(dy, w, x.shape, **problem.keywords).get())
        assert bits(dw.get()) == bits(cg.conv_backward_filter(x, dy, w.shape, **problem.keywords).get())


@pytest.mark.parametrize("dtype", DTYPES)
def test_both_gradients_of_a_transposed_convolution(dtype):
    for name in NAMES:
        problem = PROBLEMS[name]
        tensors, expected = integer_tensors(problem, dtype)
        dy, w, x = map(fake_cupy.array, tensors)
        layer = {**problem.keywords, "output_shape": dy.shape}
        for outs in (None, [None, fake_cupy.empty(w.shape, w.dtype)], None):
            dx, dw = cg.conv_transpose_backward(dy, x, w, **layer, out=outs)
            assert outs is None or dw is outs[1]
            check(dx, expected["fprop"], dtype)
            check(dw, expected["wgrad"], dtype)
        assert bits(dx.get()) == bits(cg.conv_transpose_backward_data(dy, w, **layer).get())
        assert bits(dw.get()) == bits(cg.conv_transpose_backward_filter(x, dy, w.shape, **layer).get())


def test_both_gradients_of_an_array_that_no_kernel_can_read():
    """The array must be copied once, and both gradients must still be one piece of work."""
    tensors, expected = integer_tensors(SAME, "float32")
    x, w = map(fake_cupy.array, (tensors.x, tensors.w))
    for layout in (record_field, record_field, OUTPUTS[0]):
        known = len(calls._KNOWN)
        dx, dw = cg.conv_backward(fake_cupy.array(tensors.y, layout), x, w, **SAME.keywords)
        check(dx, expected["dgrad"], "float32")
        check(dw, expected["wgrad"], "float32")
        assert len(calls._KNOWN) <= known + 1
    assert len(calls._KNOWN) == 2


def test_more_phases_than_one_launch_takes():
    problem = parse('mb1ic2ih83oh3iw50ow2oc3kh29sh33sw41ph2pw1n"phases"')
    tensors, results = integer_tensors(problem, "float32")
    result = OPERATIONS["conv_backward_data"].call(problem, tensors, layout=fake_cupy.array)
    check(result, results["dgrad"], "float32")


def test_empty_and_without_terms():
    x, w = fake_cupy.array(np.ones((2, 3, 5), F4)), fake_cupy.array(np.ones((4, 3, 2), F4))
    assert cg.conv(x[:0], w).shape == (0, 4, 4)
    assert cg.conv(x, w[:0]).shape == (2, 0, 4)
    y = cg.conv(x[:, :0], w[:, :0])
    np.testing.assert_array_equal(y.get(), np.zeros((2, 4, 4), F4))
    dx, dw = cg.conv_backward(y[:0], x[:0], w)
    assert dx.shape == (0, 3, 5)
    np.testing.assert_array_equal(dw.get(), np.zeros((4, 3, 2), F4))


def test_a_call_like_an_earlier_one_is_remembered(monkeypatch):
    tensors, _ = integer_tensors(SAME, "float32")
    x, w, dy = map(fake_cupy.array, tensors)
    first = cg.conv(x, w, **SAME.keywords)
    both = cg.conv_backward(dy, x, w, **SAME.keywords)
    compiled = len(fake_cupy.compiled)
    monkeypatch.setattr(calls.functions, "geometry_of", None)
    assert bits(cg.conv(x, w, **SAME.keywords).get()) == bits(first.get())
    again = cg.conv_backward(dy, x, w, **SAME.keywords)
    assert [bits(a.get()) for a in again] == [bits(a.get()) for a in both]
    assert len(fake_cupy.compiled) == compiled
    with pytest.raises(TypeError, match="not callable"):
        cg.conv(fake_cupy.array(tensors.x, OUTPUTS[1]), w, **SAME.keywords)


def test_on_a_device_that_is_not_the_current_one():
    tensors, expected = integer_tensors(SAME, "float32")
    with fake_cupy.Device(1):
        x, w, dy = map(fake_cupy.array, tensors)
    for _ in range(2):
        y = cg.conv(x, w, **SAME.keywords)
        assert y.data.device_id == 1
        check(y, expected["fprop"], "float32")
        dx, dw = cg.conv_backward(dy, x, w, **SAME.keywords)
        assert (dx.data.device_id, dw.data.device_id) == (1, 1)
        check(dw, expected["wgrad"], "float32")
        here = fake_cupy.array(tensors.x)
        assert cg.conv(here, fake_cupy.array(tensors.w), **SAME.keywords).data.device_id == 0


X, W = np.ones((1, 2, 5), F4), np.ones((3, 2, 2), F4)


class Elsewhere:
    """An array of another library on a GPU."""

    __module__ = "torch"
    shape, dtype, ndim = (1, 2, 5), np.dtype(F4), 3

    def __dlpack_device__(self):
        return 2, 0


class WithInterface:
    __module__ = "numba.cuda"
    __cuda_array_interface__ = {}  # noqa: RUF012


def rejected():
    x, w = fake_cupy.array(X), fake_cupy.array(W)
    with fake_cupy.Device(1):
        x_there, w_there = fake_cupy.array(X), fake_cupy.array(W)
    out = fake_cupy.empty((1, 3, 4), F4)
    yield (x, W), {}, TypeError, "w must be a cupy.ndarray like x, not a numpy.ndarray"
    yield (X, w), {}, TypeError, "w must be a numpy.ndarray like x, not a cupy.ndarray"
    yield (x, [1]), {}, TypeError, "w must be a cupy.ndarray, not list"
    yield (x, w_there), {}, TypeError, "w must be on the device of x, cuda:0, not on cuda:1"
    yield (x_there, w_there), {"out": out}, TypeError, "out must be on the device of x, cuda:1, not on cuda:0"
    yield (
        (Elsewhere(), w),
        {},
        TypeError,
        "x must be a cupy.ndarray, not a torch.Elsewhere: cupy.from_dlpack makes it one",
    )
    yield (x, Elsewhere()), {}, TypeError, "w must be a cupy.ndarray like x, not a torch.Elsewhere"
    yield (X, Elsewhere()), {}, TypeError, "w must be a numpy.ndarray like x, not a torch.Elsewhere"
    yield (
        (WithInterface(), w),
        {},
        TypeError,
        "x must be a cupy.ndarray, not a numba.WithInterface: cupy.from_dlpack makes it one",
    )
    yield (x, w), {"out": np.empty((1, 3, 4), F4)}, TypeError, "out must be a cupy.ndarray like x, not a numpy.ndarray"
    yield (X, W), {"out": out}, TypeError, "out must be a numpy.ndarray like x, not a cupy.ndarray"
    yield (
        (x, w),
        {"algorithm": "winograd"},
        ValueError,
        ("algorithm must be 'auto' or 'direct' for a cupy.ndarray, not 'winograd'"),
    )
    yield (x, w), {"precision": "exact"}, ValueError, "precision must be one of 'ieee', 'high', 'medium', not 'exact'"
    yield (x, w), {"precision": 1}, TypeError, "precision must be a string, not 1"
    yield (
        (x, w),
        {"out": fake_cupy.empty((1, 3, 5), F4)},
        ValueError,
        "out must have the shape (1, 3, 4), not (1, 3, 5)",
    )
    yield (
        (x, w),
        {"out": fake_cupy.empty((1, 3, 4), "f8")},
        TypeError,
        ("out must have the dtype of x, float32, not float64"),
    )
    yield (x, fake_cupy.array(W.astype("f8"))), {}, TypeError, "w must have the dtype of x, float32, not float64"


@pytest.mark.parametrize("number", range(17))
def test_rejected(number):
    assert len(list(rejected())) == 17
    arrays, keywords, error, message = list(rejected())[number]
    for _ in range(2):
        with pytest.raises(error) as caught:
            cg.conv(*arrays, **keywords)
        assert str(caught.value) == message
    assert fake_cupy.launches == []


def test_out_that_overlaps():
    memory = fake_cupy.array(np.zeros(22, F4))
    x, w = memory[:10].reshape(1, 2, 5), fake_cupy.array(W)
    for _ in range(2):
        cg.conv(x, w, out=memory[10:].reshape(1, 3, 4))
        with pytest.raises(ValueError, match=r"^out must not overlap x in memory$"):
            cg.conv(x, w, out=memory[9:21].reshape(1, 3, 4))
    repeated = fake_cupy.array(np.zeros(1, F4), lambda array: np.broadcast_to(array, (1, 3, 4)))
    with pytest.raises(ValueError, match=r"^out must not overlap itself, but has strides"):
        cg.conv(x, w, out=fake_cupy.ndarray((1, 3, 4), F4, repeated.data, (0, 0, 0)))


def test_outs_of_both_gradients():
    x, w, dy = fake_cupy.array(X), fake_cupy.array(W), fake_cupy.array(np.ones((1, 3, 4), F4))
    dx = fake_cupy.array(np.full(X.shape, 7, F4))
    for out, error, message in (
        (dx, TypeError, "out must be a pair of arrays, not ndarray"),
        ((dx,), ValueError, "out must have two entries, for dx and dw, not 1"),
        ((dx, dx), ValueError, "out[1] must have the shape (3, 2, 2), not (1, 2, 5)"),
        ((dx, W), TypeError, "out[1] must be a cupy.ndarray like dy, not a numpy.ndarray"),
        ((x, None), ValueError, "out[0] must not overlap x in memory"),
    ):
        with pytest.raises(error) as caught:
            cg.conv_backward(dy, x, w, out=out)
        assert str(caught.value) == message
    assert (dx.get() == 7).all()


def test_keywords_are_not_confused():
    """Equal keywords must not be confused: True is equal to 1, but no stride."""
    x, w = fake_cupy.array(X), fake_cupy.array(W)
    cg.conv(x, w, stride=1)
    with pytest.raises(TypeError, match=r"^stride must be"):
        cg.conv(x, w, stride=True)


def test_bfloat16_without_its_elements_on_the_host():
    if "bfloat16" in DTYPES:
        x, w = fake_cupy.array(X.astype(dtype_of("bfloat16"))), fake_cupy.array(W.astype(dtype_of("bfloat16")))
        with pytest.raises(TypeError, match="Implicit conversion"):
            np.asarray(x)
        np.testing.assert_array_equal(cg.conv(x, w).get().astype(F4), np.full((1, 3, 4), 4, F4))
