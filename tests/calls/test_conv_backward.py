"""The functions with two results on NumPy arrays: the two gradients, their ``out``, and refused calls."""

from typing import NamedTuple

import numpy as np
import pytest
from operations import DTYPES, OPERATIONS, PAIRS, assert_exact, bits, integer_tensors, real_tensors, to_formats
from problems import PROBLEMS

import convgrad_cy as cg
from convgrad_cy import calls
from convgrad_cy.checks import functions
from convgrad_cy.memo.bounded import Bounded

NAMES = ("1d_groups", "2d_same", "2d_stride2_dilation3", "2d_leftover_three", "2d_depthwise_many", "3d_mixed_stride")
X, W, DY = np.ones((2, 4, 5), np.float32), np.ones((6, 4, 3), np.float32), np.ones((2, 6, 3), np.float32)


class Both(NamedTuple):
    """A function with two results: its name, and the tensors of a problem in the order of its arguments."""

    name: str
    reads: str

    def __call__(self, arrays, **keywords):
        return getattr(cg, self.name)(*arrays, **keywords)

    def order(self, x, w, y):
        return [{"x": x, "w": w, "y": y}[part] for part in self.reads]

    @property
    def arrays(self):
        return self.order(X, W, DY)

    @property
    def functions(self):
        """The two functions that compute one of the results."""
        return f"{self.name}_data", f"{self.name}_filter"

    def one_by_one(self, arrays, **keywords):
        dy, x, w = arrays
        shape = () if self.name == "conv_transpose_backward" else (x.shape,)
        data, filter = (getattr(cg, name) for name in self.functions)
        return data(dy, w, *shape, **keywords), filter(x, dy, w.shape, **keywords)


BOTH = [Both(*row) for row in PAIRS.items()]


@pytest.fixture(params=BOTH, ids=lambda both: both.name)
def both(request):
    return request.param


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("problem", NAMES)
def test_values(both, problem, dtype):
    problem = PROBLEMS[problem]
    tensors, _ = integer_tensors(problem, dtype)
    for formats in (("NCX", "OIX"), ("NXC", "XIO")):
        x, w, y = (to_formats(name, array, *formats) for name, array in zip("xwy", tensors, strict=True))
        keywords = problem.keywords | {"data_format": formats[0], "filter_format": formats[1]}
        results = both(both.order(x, w, y), algorithm="direct", **keywords)
        for result, name in zip(results, both.functions, strict=True):
            assert_exact(result, OPERATIONS[name].expected(problem, tensors, *formats), dtype)


@pytest.mark.parametrize("algorithm", ["auto", "direct", "winograd"])
def test_the_same_bits_as_one_by_one(both, algorithm):
    problem = PROBLEMS["2d_same"]
    arrays = both.order(*real_tensors(problem, "float32"))
    results = both(arrays, algorithm=algorithm, **problem.keywords)
    expected = both.one_by_one(arrays, algorithm=algorithm, **problem.keywords)
    assert [bits(array) for array in results] == [bits(array) for array in expected]


@pytest.mark.parametrize("kind", [tuple, list])
def test_out(both, kind):
    expected = both(both.arrays)
    for given in ((True, True), (True, False), (False, True), (False, False)):
        outs = kind([np.full_like(a, 7) if g else None for a, g in zip(both.arrays[1:], given, strict=True)])
        results = both(both.arrays, out=outs)
        for result, out, array in zip(results, outs, expected, strict=True):
            assert out is None or result is out
            np.testing.assert_array_equal(result, array)


def test_a_subclass_takes_the_result(both):
    out = np.zeros_like(both.arrays[1]).view(type("Subclass", (np.ndarray,), {}))
    assert both(both.arrays, out=(out, None))[0] is out
    np.testing.assert_array_equal(np.asarray(out), both.one_by_one(both.arrays)[0])


def test_a_call_like_an_earlier_one_is_not_checked_again(both, monkeypatch):
    monkeypatch.setattr(calls, "_KNOWN", Bounded())
    outs = [np.zeros_like(array) for array in both.arrays[1:]]
    expected = both(both.arrays), both(both.arrays, out=outs)
    assert len(calls._KNOWN) == 2
    for name in ("geometry_of", "checked_out", "check_no_overlap"):
        monkeypatch.setattr(functions, name, None)
    for out, results in zip((None, outs), expected, strict=True):
        for result, array in zip(both(both.arrays, out=out), results, strict=True):
            np.testing.assert_array_equal(result, array)
    with pytest.raises(TypeError, match="not callable"):
        both(both.arrays, groups=2)


def test_out_of_a_known_call_that_overlaps(both, monkeypatch):
    """An ``out`` that overlaps any array must be refused before anything is written."""
    monkeypatch.setattr(calls, "_KNOWN", Bounded())
    memory = np.zeros(60, np.float32)
    of_x, of_w, of_y = (1, 2, 5), (3, 2, 2), (1, 3, 4)
    dy, x, w = both.order(of_x, of_w, of_y)
    shapes = {"dy": dy, "x": x, "w": w, "dx": x, "dw": w}

    def moved(**moves):
        places = {"dy": 0, "x": 12, "w": 24, "dx": 36, "dw": 48} | moves
        at = {name: memory[begin:][: np.prod(shapes[name])] for name, begin in places.items()}
        dy, x, w, dx, dw = (at[name].reshape(shape) for name, shape in shapes.items())
        return both((dy, x, w), out=(dx, dw))

    moved()
    memory[:] = 7
    for moves, message in (
        ({"dx": 1}, "out[0] must not overlap dy"),
        ({"dx": 19, "dy": 48, "dw": 0}, "out[0] must not overlap x"),
        ({"dx": 27}, "out[0] must not overlap w"),
        ({"dw": 5, "dy": 48}, "out[1] must not overlap x"),
        ({"dw": 25}, "out[1] must not overlap w"),
        ({"dw": 40}, "out[1] must not overlap out[0]"),
        ({"dw": 48, "dy": 48}, "out[1] must not overlap dy"),
    ):
        with pytest.raises(ValueError) as caught:
            moved(**moves)
        assert str(caught.value) == f"{message} in memory"
    assert (memory == 7).all() and len(calls._KNOWN) == 1
    moved(dw=0, dy=48)
    assert len(calls._KNOWN) == 1


def test_outs_between_each_other(both):
    """Results that are interleaved must be accepted: they share no element."""
    expected = both(both.arrays)
    memory = np.empty(2 * max(X.size, W.size), np.float32)
    for _ in range(2):
        outs = [memory[i::2][: array.size].reshape(array.shape) for i, array in enumerate(both.arrays[1:])]
        for result, array in zip(both(both.arrays, out=outs), expected, strict=True):
            np.testing.assert_array_equal(result, array)


def test_inputs_that_no_kernel_can_read(both):
    """An unaligned x must be copied for both gradients."""
    dy, x, w = both.arrays
    odd = np.frombuffer(b"." + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)
    for _ in range(2):
        for result, array in zip(both((dy, odd, w)), both((dy, x, w)), strict=True):
            np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize("empty", ["x", "w"])
def test_one_of_both_is_empty(both, empty):
    dy, x, w = both.order(X[:0], W, DY[:0]) if empty == "x" else both.order(X, W[:0], DY[:, :0])
    dx, dw = both((dy, x, w), out=(np.full_like(x, 7), np.full_like(w, 7)))
    assert dx.shape == x.shape and dw.shape == w.shape
    assert not dx.any() and not dw.any()


MEMORY = np.zeros(200, np.float32)
READ_ONLY = np.zeros(W.shape, np.float32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "keywords, error, message",
    [
        ({"out": DY}, TypeError, "out must be a pair of arrays, not ndarray"),
        ({"out": (None,)}, ValueError, "out must have two entries, for dx and dw, not 1"),
        ({"out": (W, None)}, ValueError, "out[0] must have the shape {x}, not (6, 4, 3)"),
        ({"out": (None, READ_ONLY)}, ValueError, "out[1] must be writeable, not a read-only array"),
        ({"out": (None, W)}, ValueError, "out[1] must not overlap w in memory"),
        ({"out": (None, [1])}, TypeError, "out[1] must be a numpy.ndarray, not list"),
        ({"out": (None, W.astype(">f4"))}, TypeError, (
            "out[1] must be in the machine's own byte order, not of the dtype >f4"
        )),
        ({"stride": 0}, ValueError, "stride must be at least 1, not 0"),
        ({"precision": None}, TypeError, "precision must be a string, not None"),
        ({"groups": 4}, ValueError, "w.shape[0] must be a multiple of groups = 4, not 6"),
    ],
)  # fmt: skip
def test_rejected_by_both(both, keywords, error, message):
    out = np.full_like(both.arrays[1], 7)
    with pytest.raises(error) as caught:
        both(both.arrays, **({"out": (out, None)} | keywords))
    assert str(caught.value) == message.format(x=both.arrays[1].shape)
    assert (out == 7).all()


@pytest.mark.parametrize(
    "arrays, keywords, error, message",
    [
        ((X, DY[:, :, :2], W), {"out": None}, ValueError, (
            "dy.shape[2] must be 4, the extent of a transposed convolution of x.shape[2] = 2 "
        )),
        ((X[:, :3], DY, W), {"out": None}, ValueError, "dy.shape[1] must be groups * w.shape[1] = 1 * 4, not 3"),
        ((X, DY[:, :5], W), {"out": None}, ValueError, "x.shape[1] must be w.shape[0] = 6, not 5"),
        ((X, DY, W), {"output_padding": 1}, ValueError, (
            "output_padding must be less than max(stride, dilation) = 1, not 1"
        )),
        ((X, DY[:, :, :2], W), {"out": None, "stride": 2, "output_padding": 1}, ValueError, (
            "output_padding must agree with dy.shape[2] = 5: a transposed convolution of 2 elements "
            "(kernel 3, stride 2, dilation 1, padding (0, 0)) has 6 with 1"
        )),
        ((X, DY, W), {"output_shape": (2, 4, 6)}, ValueError, "output_shape[2] must be dy.shape[2] = 5, not 6"),
        ((X, DY, W), {"output_shape": (2, 4)}, ValueError, "output_shape must have 3 entries, as the arrays have axes"),
    ],
)  # fmt: skip
def test_rejected_if_transposed(arrays, keywords, error, message):
    out = np.full_like(DY, 7)
    with pytest.raises(error) as caught:
        cg.conv_transpose_backward(*arrays, **({"out": (out, None)} | keywords))
    assert str(caught.value).startswith(message)
    assert (out == 7).all()


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
        ((DY, X, W), {"precision": "low"}, ValueError, (
            "precision must be one of 'ieee', 'high', 'medium', not 'low'"
        )),
        ((DY, X, W), {"out": (X, None)}, ValueError, "out[0] must not overlap x in memory"),
        (
            (DY, X, W),
            {"out": (MEMORY[:40].reshape(X.shape), MEMORY[39:111].reshape(W.shape))},
            ValueError,
            "out[1] must not overlap out[0] in memory",
        ),
    ],
)  # fmt: skip
def test_rejected(arrays, keywords, error, message):
    out = np.full_like(X, 7)
    with pytest.raises(error) as caught:
        cg.conv_backward(*arrays, **({"out": (out, None)} | keywords))
    assert str(caught.value).startswith(message)
    assert (out == 7).all()


def test_nothing_is_written_where_one_algorithm_is_refused():
    """Nothing may be written if one gradient is refused: Winograd's algorithm computes only one with a stride."""
    x, w = np.ones((1, 8, 9, 9), np.float32), np.ones((8, 8, 3, 3), np.float32)
    dy, out = np.ones((1, 8, 4, 4), np.float32), np.full_like(x, 7)
    cg.conv_backward_data(dy, w, x.shape, stride=2, algorithm="winograd")
    with pytest.raises(ValueError, match=r"^algorithm must be 'auto' or 'direct' for these taps, strides"):
        cg.conv_backward(dy, x, w, stride=2, algorithm="winograd", out=(out, None))
    assert (out == 7).all()


def test_nothing_is_written_where_the_filter_has_another_type():
    """A filter of another type must be refused, although its own gradient could be computed without it."""
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
