"""The six public functions as three kernels, and integer data whose results are all exact in the dtype under test."""

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from math import isqrt, sqrt
from typing import NamedTuple
from zlib import crc32

import numpy as np
import reference

import convgrad_cy as cg

#: Integers up to this magnitude are exact in the storage dtype. int32 and float64 hold more, but take float32's data.
EXACT = {"bfloat16": 2**8, "float16": 2**11, "float32": 2**24, "float64": 2**24, "int32": 2**24}
#: Sums up to this magnitude are exact in every compute dtype, in any order.
EXACT_SUM = 2**24

DTYPES = tuple(name for name in EXACT if name != "bfloat16" or find_spec("ml_dtypes"))
FLOATS = tuple(name for name in DTYPES if name != "int32")
DATA_FORMATS = ("NCX", "NXC")
FILTER_FORMATS = ("OIX", "XIO")


class Tensors(NamedTuple):
    """x, w and y of one problem, in NCX and OIX."""

    x: np.ndarray
    w: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Operation:
    """A public function: the tensors that it reads, and the tensor that it makes."""

    name: str
    reads: str
    makes: str

    @property
    def kernel(self):
        return {"y": "fprop", "x": "dgrad", "w": "wgrad"}[self.makes]

    def call(self, problem, tensors, data_format="NCX", filter_format="OIX", layout=None, **keywords):
        """The result for tensors in NCX and OIX, converted to the formats and then by ``layout``.

        The result is in these formats. The algorithm is the direct one, whose sums of integers are exact, unless the
        keywords name another. test_winograd.py tests the others.
        """
        keywords = {"algorithm": "direct", **keywords}
        formats = (data_format, filter_format)
        arrays = [to_formats(name, getattr(tensors, name), *formats) for name in self.reads]
        if layout is not None:
            arrays = [layout(array) for array in arrays]
        if self.name == "conv_transpose":
            keywords["output_shape"] = self.result_shape(problem, *formats)
        elif self.name not in ("conv", "conv_transpose_backward_data"):
            arrays.append(self.result_shape(problem, *formats))
        function = getattr(cg, self.name)
        return function(*arrays, data_format=data_format, filter_format=filter_format, **problem.keywords, **keywords)

    def result_shape(self, problem, data_format="NCX", filter_format="OIX"):
        shape = getattr(problem, f"{self.makes}_shape")
        return to_formats(self.makes, np.broadcast_to(0, shape), data_format, filter_format).shape

    def expected(self, problem, tensors, data_format="NCX", filter_format="OIX"):
        """The reference's result, in the given formats."""
        return to_formats(self.makes, reference_kernel(self.kernel, problem, tensors), data_format, filter_format)


# The filter of a transposed convolution is the filter of the convolution whose gradient it is. Its x is the latter's y.
OPERATIONS = {
    row[0]: Operation(*row)
    for row in (
        ("conv", "xw", "y"),
        ("conv_backward_data", "yw", "x"),
        ("conv_backward_filter", "xy", "w"),
        ("conv_transpose", "yw", "x"),
        ("conv_transpose_backward_data", "xw", "y"),
        ("conv_transpose_backward_filter", "yx", "w"),
    )
}
#: The functions with two results, each with the tensors of its three arrays. The results are like the last two.
PAIRS = {"conv_backward": "yxw", "conv_transpose_backward": "xyw"}
KERNELS = ("fprop", "dgrad", "wgrad")


def to_formats(tensor, array, data_format, filter_format):
    """An NCX or OIX array in the given formats, including NHWC and the like. With moved axes, it is C-contiguous.

    A view with moved axes would have the memory of the first format, and so its kernels. ``tensor`` is 'x', 'w' or 'y'.
    """
    if tensor == "w":
        return array if filter_format == "OIX" else np.ascontiguousarray(np.moveaxis(array, (0, 1), (-1, -2)))
    return array if data_format.startswith("NC") else np.ascontiguousarray(np.moveaxis(array, 1, -1))


def dtype_of(name):
    """The NumPy dtype. bfloat16 exists only if ml_dtypes is installed."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def reference_kernel(kernel, problem, tensors):
    """One of the three kernels of the reference on a problem's tensors."""
    x, w, y = tensors
    if kernel == "fprop":
        return reference.fprop(x, w, problem.y_shape, **problem.geometry)
    if kernel == "dgrad":
        return reference.dgrad(y, w, problem.x_shape, **problem.geometry)
    return reference.wgrad(x, y, problem.w_shape, **problem.geometry)


def draw_integers(problem, exact):
    """Random integers as int64, small enough for results that are exact up to ``exact``.

    K products of values from -r to r sum to about sqrt(K) * r * (r + 1) / 3; six times this has to fit. If even r = 1
    is too much, zeros thin the data out. `integer_tensors` proves that the results are exact.
    """
    terms = problem.longest_sum
    largest = max(1, min(64, isqrt(int(exact / (2 * sqrt(terms)))), isqrt(EXACT_SUM // terms)))
    density = min(1, exact / (4 * sqrt(terms)))
    random = np.random.default_rng(crc32(problem.name.encode()))

    def draw(shape):
        return random.integers(-largest, largest + 1, shape) * (random.random(shape) < density)

    return Tensors(draw(problem.x_shape), draw(problem.w_shape), draw(problem.y_shape))


@cache
def _integers(problem, exact):
    tensors = draw_integers(problem, exact)
    absolute = Tensors(*(abs(array) for array in tensors))
    results = {kernel: reference_kernel(kernel, problem, tensors) for kernel in KERNELS}
    for kernel, result in results.items():
        assert abs(result).max(initial=0) <= exact
        assert reference_kernel(kernel, problem, absolute).max(initial=0) <= EXACT_SUM
        assert result.any() or not problem.batch, "data whose results are all zero test nothing"
        result.setflags(write=False)
    return tensors, results


def integer_tensors(problem, dtype_name):
    """Integer data in the dtype, and the exact results of the three kernels as int64."""
    tensors, results = _integers(problem, EXACT[dtype_name])
    return Tensors(*(array.astype(dtype_of(dtype_name)) for array in tensors)), results


def real_tensors(problem, dtype_name, seed=0):
    """Normally distributed data in the dtype."""
    random = np.random.default_rng([seed, crc32(problem.name.encode())])
    shapes = (problem.x_shape, problem.w_shape, problem.y_shape)
    scale = 100 if dtype_name == "int32" else 1
    return Tensors(*((random.standard_normal(shape) * scale).astype(dtype_of(dtype_name)) for shape in shapes))


def assert_exact(result, expected, dtype_name, shape=None):
    """Assert the type, the shape and every value, without tolerance."""
    assert type(result) is np.ndarray
    assert result.dtype == dtype_of(dtype_name)
    assert result.shape == (expected.shape if shape is None else shape)
    wide = result.astype(np.int64 if dtype_name == "int32" else np.float64)
    np.testing.assert_array_equal(wide, expected)


def bits(array):
    """The bytes of an array, for comparisons that distinguish -0 from +0."""
    return np.ascontiguousarray(array).tobytes()


def spoiled(tensors, name, places, value):
    """The tensors with a value at some flat positions of one of them."""
    array = getattr(tensors, name).copy()
    array.reshape(-1)[places] = value
    return tensors._replace(**{name: array})


def assert_same(result, expected):
    """Assert equal values, with NaN equal to NaN, and infinities of equal sign."""
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    np.testing.assert_array_equal(result, expected)
