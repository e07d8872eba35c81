"""conv_backward on NumPy arrays: the two gradients, their ``out``, and what is refused."""

import numpy as np
import pytest
from operations import DTYPES, OPERATIONS, assert_exact, bits, integer_tensors, real_tensors, to_formats
from problems import PROBLEMS

import convgrad_cy as cg
from convgrad_cy import arguments, calls
from convgrad_cy.bounded import Bounded

NAMES = ("1d_groups", "2d_same", "2d_stride2_dilation3", "2d_leftover_three", "2d_depthwise_many", "3d_mixed_stride")
X, W, DY = np.ones((2, 4, 5), np.float32), np.ones((6, 4, 3), np.float32), np.ones((2, 6, 3), np.float32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("problem", NAMES)
def test_values(problem, dtype):
    problem = PROBLEMS[problem]
    tensors, _ = integer_tensors(problem, dtype)
    for formats in (("NCX", "OIX"), ("NXC", "XIO")):
        x, w, y = (to_formats(name, array, *formats) for name, array in zip("xwy", tensors, strict=True))
        keywords = problem.keywords | {"data_format": formats[0], "filter_format": formats[1]}
        results = cg.conv_backward(y, x, w, algorithm="direct", **keywords)
        for result, name in zip(results, ("conv_backward_data", "conv_backward_filter"), strict=True):
            assert_exact(result, OPERATIONS[name].expected(problem, tensors, *formats), dtype)


@pytest.mark.parametrize("algorithm", ["auto", "direct", "winograd"])
def test_the_same_bits_as_one_by_one(algorithm):
    problem = PROBLEMS["2d_same"]
    x, w, y = real_tensors(problem, "float32")
    dx, dw = cg.conv_backward(y, x, w, algorithm=algorithm, **problem.keywords)
    assert bits(dx) == bits(cg.conv_backward_data(y, w, x.shape, algorithm=algorithm, **problem.keywords))
    assert bits(dw) == bits(cg.conv_backward_filter(x, y, w.shape, algorithm=algorithm, **problem.keywords))


@pytest.mark.parametrize("kind", [tuple, list])
def test_out(kind):
    expected = cg.conv_backward(DY, X, W)
    for given in ((True, True), (True, False), (False, True), (False, False)):
        outs = kind([np.full_like(a, 7) if g else None for a, g in zip((X, W), given, strict=True)])
        results = cg.conv_backward(DY, X, W, out=outs)
        for result, out, array in zip(results, outs, expected, strict=True):
            assert out is None or result is out
            np.testing.assert_array_equal(result, array)


def test_a_subclass_takes_the_result():
    out = np.zeros(X.shape, np.float32).view(type("Subclass", (np.ndarray,), {}))
    assert cg.conv_backward(DY, X, W, out=(out, None))[0] is out
    np.testing.assert_array_equal(np.asarray(out), cg.conv_backward_data(DY, W, X.shape))


def test_a_call_like_an_earlier_one_is_not_checked_again(monkeypatch):
    monkeypatch.setattr(calls, "_KNOWN", Bounded())
    outs = np.zeros_like(X), np.zeros_like(W)
    expected = cg.conv_backward(DY, X, W), cg.conv_backward(DY, X, W, out=outs)
    assert len(calls._KNOWN) == 2
    for name in ("geometry_of", "checked_out", "check_no_overlap"):
        monkeypatch.setattr(arguments, name, None)
    for out, results in zip((None, outs), expected, strict=True):
        for result, array in zip(cg.conv_backward(DY, X, W, out=out), results, strict=True):
            np.testing.assert_array_equal(result, array)
    with pytest.raises(TypeError, match="not callable"):
        cg.conv_backward(DY, X, W, groups=2)


def test_out_of_a_known_call_that_overlaps(monkeypatch):
    """Whatever it overlaps, it is refused before anything is written."""
    monkeypatch.setattr(calls, "_KNOWN", Bounded())
    memory = np.zeros(60, np.float32)
    shapes = {"dy": (1, 3, 4), "x": (1, 2, 5), "w": (3, 2, 2), "dx": (1, 2, 5), "dw": (3, 2, 2)}

    def both(**moved):
        places = {"dy": 0, "x": 12, "w": 22, "dx": 34, "dw": 44} | moved
        at = {name: memory[begin:][: np.prod(shapes[name])] for name, begin in places.items()}
        dy, x, w, dx, dw = (at[name].reshape(shape) for name, shape in shapes.items())
        return cg.conv_backward(dy, x, w, out=(dx, dw))

    both()
    memory[:] = 7
    for moved, message in (
        ({"dx": 1}, "out[0] must not overlap dy"),
        ({"dx": 19}, "out[0] must not overlap x"),
        ({"dx": 25}, "out[0] must not overlap w"),
        ({"dw": 5, "dy": 44}, "out[1] must not overlap x"),
        ({"dw": 23}, "out[1] must not overlap w"),
        ({"dw": 40}, "out[1] must not overlap out[0]"),
        ({"dw": 45, "dy": 44}, "out[1] must not overlap dy"),
    ):
        with pytest.raises(ValueError) as caught:
            both(**moved)
        assert str(caught.value) == f"{message} in memory"
    assert (memory == 7).all() and len(calls._KNOWN) == 1
    both(dw=0, dy=44)
    assert len(calls._KNOWN) == 1


def test_outs_between_each_other():
    """They share no element."""
    expected = cg.conv_backward(DY, X, W)
    memory = np.empty(2 * max(X.size, W.size), np.float32)
    for _ in range(2):
        outs = [memory[i::2][: array.size].reshape(array.shape) for i, array in enumerate((X, W))]
        for result, array in zip(cg.conv_backward(DY, X, W, out=outs), expected, strict=True):
            np.testing.assert_array_equal(result, array)


def test_inputs_that_no_kernel_can_read():
    """Of an unaligned x, both gradients are those of a copy."""
    x = np.frombuffer(b"." + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(X.shape)
    for _ in range(2):
        for result, array in zip(cg.conv_backward(DY, x, W), cg.conv_backward(DY, X, W), strict=True):
            np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize("empty", ["x", "w"])
def test_one_of_both_is_empty(empty):
    dy, x, w = (DY[:0], X[:0], W) if empty == "x" else (DY[:, :0], X, W[:0])
    dx, dw = cg.conv_backward(dy, x, w, out=(np.full_like(x, 7), np.full_like(w, 7)))
    assert dx.shape == x.shape and dw.shape == w.shape
    assert not dx.any() and not dw.any()


MEMORY = np.zeros(200, np.float32)
READ_ONLY = np.zeros(W.shape, np.float32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "arrays, keywords, error, message",
    [
        (([1], X, W), {}, TypeError, "dy must be a numpy.ndarray, not list"),
        ((DY, None, W), {}, TypeError, "x must be a numpy.ndarray, not NoneType"),
        ((DY, X, 3), {}, TypeError, "w must be a numpy.ndarray, not int"),
        ((DY, X.astype("f8"), W), {}, TypeError, "dy must have the dtype of x, float64, not float32"),
        ((DY, X, W.astype("f8")), {}, TypeError, "w must have the dtype of dy, float32, not float64"),
        ((DY, X[:, :, :4], W), {"out": None}, ValueError, (
            "dy.shape[2] must be 2, the extent of a convolution of x.shape[2] = 4 "
        )),
        ((DY, X[:, :3], W), {"out": None}, ValueError, "x.shape[1] must be groups * w.shape[1] = 1 * 4, not 3"),
        ((DY, X[:, None], W), {"out": None}, ValueError, "dy must have as many axes as x, 4, not 3"),
        ((DY, X, W), {"stride": 0}, ValueError, "stride must be at least 1, not 0"),
        ((DY, X, W), {"precision": "low"}, ValueError, (
            "precision must be one of 'ieee', 'high', 'medium', not 'low'"
        )),
        ((DY, X, W), {"precision": None}, TypeError, "precision must be a string, not None"),
        ((DY, X, W), {"out": X}, TypeError, "out must be a pair of arrays, not ndarray"),
        ((DY, X, W), {"out": (None,)}, ValueError, "out must have two entries, for dx and dw, not 1"),
        ((DY, X, W), {"out": (W, None)}, ValueError, "out[0] must have the shape (2, 4, 5), not (6, 4, 3)"),
        ((DY, X, W), {"out": (None, READ_ONLY)}, ValueError, "out[1] must be writeable, not a read-only array"),
        ((DY, X, W), {"out": (None, W)}, ValueError, "out[1] must not overlap w in memory"),
        ((DY, X, W), {"out": (X, None)}, ValueError, "out[0] must not overlap x in memory"),
        (
            (DY, X, W),
            {"out": (MEMORY[:40].reshape(X.shape), MEMORY[39:111].reshape(W.shape))},
            ValueError,
            "out[1] must not overlap out[0] in memory",
        ),
        ((DY, X, W), {"out": (None, [1])}, TypeError, "out[1] must be a numpy.ndarray, not list"),
    ],
)  # fmt: skip
def test_rejected(arrays, keywords, error, message):
    out = np.full_like(X, 7)
    with pytest.raises(error) as caught:
        cg.conv_backward(*arrays, **({"out": (out, None)} | keywords))
    assert str(caught.value).startswith(message)
    assert (out == 7).all()


def test_nothing_is_written_where_one_algorithm_is_refused():
    """Winograd's can compute one gradient of a strided convolution, but not the other."""
    x, w = np.ones((1, 8, 9, 9), np.float32), np.ones((8, 8, 3, 3), np.float32)
    dy, out = np.ones((1, 8, 4, 4), np.float32), np.full_like(x, 7)
    cg.conv_backward_data(dy, w, x.shape, stride=2, algorithm="winograd")
    with pytest.raises(ValueError, match=r"^algorithm must be 'auto' or 'direct' for these taps, strides"):
        cg.conv_backward(dy, x, w, stride=2, algorithm="winograd", out=(out, None))
    assert (out == 7).all()


def test_nothing_is_written_where_the_filter_has_another_type():
    """Its gradient could be formed without it."""
    dy, x, w = np.ones((1, 1, 3, 3), np.float32), np.ones((1, 1, 5, 5), np.float32), np.ones((1, 1, 3, 3))
    out = np.full_like(x, 7), np.full(w.shape, 7, np.float32)
    with pytest.raises(TypeError, match=r"^w must have the dtype of dy, float32, not float64$"):
        cg.conv_backward(dy, x, w, out=out)
    assert all((array == 7).all() for array in out)


@pytest.mark.parametrize("precision", ["ieee", "high", "medium"])
def test_precision_changes_nothing_on_a_cpu(precision):
    problem = PROBLEMS["2d_same"]
    tensors = real_tensors(problem, "float32")
    for operation in OPERATIONS.values():
        result = operation.call(problem, tensors, precision=precision)
        assert bits(result) == bits(operation.call(problem, tensors))
