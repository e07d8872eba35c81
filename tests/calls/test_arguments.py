"""Every rejected call, with its exception and its full message, and the accepted forms of arguments."""

# ruff: noqa: E501  (each row of the tables is one line, its message whole)

import re

import numpy as np
import pytest

import convgrad_cy as cg

F4 = np.float32
X, W, Y = (2, 4, 9, 8), (6, 4, 3, 2), (2, 6, 7, 7)
LIMIT = 2**62


def zeros(*shape, dtype=F4):
    return np.zeros(shape, dtype)


def lazy(*shape, dtype=F4):
    """An array of any shape that needs no memory."""
    return np.broadcast_to(np.zeros((), dtype), shape)


class Exporter:
    """An array of an unknown library, in memory of the device that this number of DLPack stands for."""

    def __init__(self, device):
        self.device = device

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **_):
        raise AssertionError("nothing is to be exported")


class WithArray:
    def __array__(self, *_, **__):
        raise AssertionError("nothing is to be converted")


class WithInterface:
    __array_interface__ = zeros(*X).__array_interface__


# function -> a valid call, and the shape of its result
BASE = {
    "conv": ({"x": zeros(*X), "w": zeros(*W)}, Y),
    "conv_backward_data": ({"dy": zeros(*Y), "w": zeros(*W), "x_shape": X}, X),
    "conv_backward_filter": ({"x": zeros(*X), "dy": zeros(*Y), "w_shape": W}, W),
    "conv_transpose": ({"x": zeros(*Y), "w": zeros(*W)}, X),
    "conv_transpose_backward_data": ({"dy": zeros(*X), "w": zeros(*W)}, Y),
    "conv_transpose_backward_filter": ({"x": zeros(*Y), "dy": zeros(*X), "w_shape": W}, W),
}
PER_AXIS = "an integer or one for each spatial axis"
PADDING = "an integer, an integer or a (begin, end) pair for each spatial axis, or a string"
PADDINGS = "'valid', 'same', 'same_upper', 'same_lower'"
LONG = "x" * 200

# All six functions reject these in the same words.
KEYWORDS = [
    ({"stride": 0}, ValueError, "stride must be at least 1, not 0"),
    ({"stride": -1}, ValueError, "stride must be at least 1, not -1"),
    ({"stride": (1, 0)}, ValueError, "stride[1] must be at least 1, not 0"),
    ({"stride": 1.0}, TypeError, f"stride must be {PER_AXIS}, not 1.0"),
    ({"stride": True}, TypeError, f"stride must be {PER_AXIS}, not True"),
    ({"stride": None}, TypeError, f"stride must be {PER_AXIS}, not None"),
    ({"stride": "1"}, TypeError, f"stride must be {PER_AXIS}, not '1'"),
    ({"stride": LONG}, TypeError, f"stride must be {PER_AXIS}, not '{LONG[:76]}..."),
    ({"stride": (1, True)}, TypeError, "stride[1] must be an integer, not True"),
    ({"stride": [1, 2.5]}, TypeError, "stride[1] must be an integer, not 2.5"),
    ({"stride": ((1, 1), 1)}, TypeError, "stride[0] must be an integer, not (1, 1)"),
    ({"stride": (1,)}, ValueError, "stride must have one entry for each spatial axis, 2, not (1,)"),
    ({"stride": (1, 1, 1)}, ValueError, "stride must have one entry for each spatial axis, 2, not (1, 1, 1)"),
    ({"stride": ()}, ValueError, "stride must have one entry for each spatial axis, 2, not ()"),
    ({"stride": np.array([[1, 1], [1, 1]])}, TypeError, "stride[0] must be an integer, not array([1, 1])"),
    ({"stride": range(3)}, ValueError, "stride must have one entry for each spatial axis, 2, not range(0, 3)"),
    (
        {"stride": range(LIMIT)},
        ValueError,
        f"stride must have one entry for each spatial axis, 2, not range(0, {LIMIT})",
    ),
    ({"stride": range(2)}, ValueError, "stride[0] must be at least 1, not 0"),
    ({"stride": b"11"}, TypeError, f"stride must be {PER_AXIS}, not b'11'"),
    ({"stride": {0: 1, 1: 1}}, TypeError, f"stride must be {PER_AXIS}, not {{0: 1, 1: 1}}"),
    ({"stride": LIMIT}, ValueError, f"stride must be less than 2**62, not {LIMIT}"),
    ({"stride": 10**5000}, ValueError, "stride must be less than 2**62, not <int>"),
    ({"dilation": 0}, ValueError, "dilation must be at least 1, not 0"),
    ({"dilation": (2, -3)}, ValueError, "dilation[1] must be at least 1, not -3"),
    ({"dilation": 1.5}, TypeError, f"dilation must be {PER_AXIS}, not 1.5"),
    ({"dilation": (1, 2, 3)}, ValueError, "dilation must have one entry for each spatial axis, 2, not (1, 2, 3)"),
    ({"dilation": LIMIT}, ValueError, f"dilation must be less than 2**62, not {LIMIT}"),
    ({"groups": 0}, ValueError, "groups must be at least 1, not 0"),
    ({"groups": -2}, ValueError, "groups must be at least 1, not -2"),
    ({"groups": True}, TypeError, "groups must be an integer, not True"),
    ({"groups": 2.0}, TypeError, "groups must be an integer, not 2.0"),
    ({"groups": (1,)}, TypeError, "groups must be an integer, not (1,)"),
    ({"groups": LIMIT}, ValueError, f"groups must be less than 2**62, not {LIMIT}"),
    ({"padding": -1}, ValueError, "padding must be at least 0, not -1"),
    ({"padding": (0, -1)}, ValueError, "padding[1] must be at least 0, not -1"),
    ({"padding": ((0, 0), (0, -1))}, ValueError, "padding[1][1] must be at least 0, not -1"),
    ({"padding": 0.5}, TypeError, f"padding must be {PADDING}, not 0.5"),
    ({"padding": None}, TypeError, f"padding must be {PADDING}, not None"),
    ({"padding": False}, TypeError, f"padding must be {PADDING}, not False"),
    ({"padding": {0}}, TypeError, f"padding must be {PADDING}, not {{0}}"),
    ({"padding": (0, 0.5)}, TypeError, "padding[1] must be an integer, not 0.5"),
    ({"padding": ((0, "0"), (0, 0))}, TypeError, "padding[0][1] must be an integer, not '0'"),
    ({"padding": (0,)}, ValueError, "padding must have one entry for each spatial axis, 2, not (0,)"),
    ({"padding": ((0, 0),)}, ValueError, "padding must have one entry for each spatial axis, 2, not ((0, 0),)"),
    (
        {"padding": (0, (0, 0))},
        ValueError,
        "padding[0] must be a (begin, end) pair like the other axes have, not 0",
    ),
    (
        {"padding": ((0, 0), (0, 0, 0))},
        ValueError,
        "padding[1] must be a (begin, end) pair like the other axes have, not (0, 0, 0)",
    ),
    ({"padding": "full"}, ValueError, f"padding must be one of {PADDINGS}, not 'full'"),
    ({"padding": ""}, ValueError, f"padding must be one of {PADDINGS}, not ''"),
    ({"padding": LIMIT}, ValueError, f"padding must be less than 2**62, not {LIMIT}"),
    (
        {"data_format": "NCDHW"},
        ValueError,
        "data_format must be one of 'NCX', 'NCHW', 'NXC', 'NHWC', not 'NCDHW'; did you mean 'NCHW'?",
    ),
    (
        {"data_format": "nwc"},
        ValueError,
        "data_format must be one of 'NCX', 'NCHW', 'NXC', 'NHWC', not 'nwc'; did you mean 'NHWC'?",
    ),
    (
        {"data_format": "channels_last"},
        ValueError,
        "data_format must be one of 'NCX', 'NCHW', 'NXC', 'NHWC', not 'channels_last'",
    ),
    ({"data_format": None}, TypeError, "data_format must be a string, not None"),
    ({"data_format": ["NCX"]}, TypeError, "data_format must be a string, not ['NCX']"),
    (
        {"filter_format": "WIO"},
        ValueError,
        "filter_format must be one of 'OIX', 'OIHW', 'XIO', 'HWIO', not 'WIO'; did you mean 'HWIO'?",
    ),
    ({"filter_format": "OHWI"}, ValueError, "filter_format must be one of 'OIX', 'OIHW', 'XIO', 'HWIO', not 'OHWI'"),
    ({"filter_format": 3}, TypeError, "filter_format must be a string, not 3"),
    ({"algorithm": "fft"}, ValueError, "algorithm must be one of 'auto', 'direct', 'winograd', not 'fft'"),
    (
        {"algorithm": "Winogard"},
        ValueError,
        "algorithm must be one of 'auto', 'direct', 'winograd', not 'Winogard'; did you mean 'winograd'?",
    ),
    (
        {"padding": "same_uper"},
        ValueError,
        f"padding must be one of {PADDINGS}, not 'same_uper'; did you mean 'same_upper'?",
    ),
    ({"algorithm": LONG}, ValueError, f"algorithm must be one of 'auto', 'direct', 'winograd', not '{LONG[:76]}..."),
    ({"algorithm": 1}, TypeError, "algorithm must be a string, not 1"),
    (
        {"dilation": LIMIT // 2},
        ValueError,
        f"dilation = {LIMIT // 2} makes the kernel ({{taps}} = 3 taps) span 2**62 elements or more",
    ),
]

DTYPES = "float16, bfloat16, float32, float64, int32"
ARRAYS = [
    ("{0}", [1, 2], TypeError, "{0} must be a numpy.ndarray, not list: numpy.asarray makes it one"),
    ("{0}", None, TypeError, "{0} must be a numpy.ndarray, not NoneType"),
    ("{0}", F4(1), TypeError, "{0} must be a numpy.ndarray, not float32: numpy.asarray makes it one"),
    (
        "{1}",
        memoryview(zeros(*W)),
        TypeError,
        "{1} must be a numpy.ndarray, not memoryview: numpy.asarray makes it one",
    ),
    ("{1}", b"1", TypeError, "{1} must be a numpy.ndarray, not bytes"),
    ("{1}", Exporter(1), TypeError, "{1} must be a numpy.ndarray, not Exporter: numpy.from_dlpack makes it one"),
    ("{0}", Exporter(8), TypeError, "{0} must be a numpy.ndarray, not Exporter"),
    ("{0}", WithArray(), TypeError, "{0} must be a numpy.ndarray, not WithArray: numpy.asarray makes it one"),
    ("{1}", WithInterface(), TypeError, "{1} must be a numpy.ndarray, not WithInterface: numpy.asarray makes it one"),
    ("{1}", 3, TypeError, "{1} must be a numpy.ndarray, not int"),
    ("{0}", np.ma.zeros(X), TypeError, "{0} must be a numpy.ndarray without a mask, not MaskedArray"),
    ("{1}", np.ma.zeros(X), TypeError, "{1} must be a numpy.ndarray without a mask, not MaskedArray"),
    ("{0}", zeros(*X, dtype=np.int64), TypeError, f"{{0}} must have a dtype among {DTYPES}, not int64"),
    ("{0}", zeros(*X, dtype=bool), TypeError, f"{{0}} must have a dtype among {DTYPES}, not bool"),
    ("{0}", zeros(*X, dtype=complex), TypeError, f"{{0}} must have a dtype among {DTYPES}, not complex128"),
    ("{0}", zeros(*X, dtype=">i8"), TypeError, f"{{0}} must have a dtype among {DTYPES}, not >i8"),
    ("{0}", zeros(*X, dtype=object), TypeError, f"{{0}} must have a dtype among {DTYPES}, not object"),
    ("{1}", zeros(*X, dtype=float), TypeError, "{1} must have the dtype of {0}, float32, not float64"),
    ("{1}", zeros(*X, dtype=">f8"), TypeError, "{1} must have the dtype of {0}, float32, not >f8"),
    ("{0}", zeros(2, 4), ValueError, "{0} must have 3 to 5 axes (batch, channels, 1 to 3 spatial ones), not 2"),
    ("{0}", zeros(), ValueError, "{0} must have 3 to 5 axes (batch, channels, 1 to 3 spatial ones), not 0"),
    ("{0}", zeros(*[1] * 6), ValueError, "{0} must have 3 to 5 axes (batch, channels, 1 to 3 spatial ones), not 6"),
    ("{1}", zeros(6, 4, 3), ValueError, "{1} must have as many axes as {0}, 4, not 3"),
    ("{1}", zeros(6, 4, 3, 2, 1), ValueError, "{1} must have as many axes as {0}, 4, not 5"),
]

SHAPES = [
    (None, TypeError, "{0} must be a sequence of integers, not None"),
    (9, TypeError, "{0} must be a sequence of integers, not 9"),
    ("2489", TypeError, "{0} must be a sequence of integers, not '2489'"),
    (b"2489", TypeError, "{0} must be a sequence of integers, not b'2489'"),
    ({9}, TypeError, "{0} must be a sequence of integers, not {{9}}"),
    (zeros(*X), TypeError, "{0} must be a sequence of integers, not an array of shape (2, 4, 9, 8): give its shape"),
    (zeros(4, 4), TypeError, "{0} must be a sequence of integers, not an array of shape (4, 4): give its shape"),
    (zeros(9), ValueError, "{0} must have 4 entries, as the arrays have axes, not an array of shape (9,)"),
    (np.array(9), TypeError, "{0} must be a sequence of integers, not array(9)"),
    ((2, 4, 9), ValueError, "{0} must have 4 entries, as the arrays have axes, not (2, 4, 9)"),
    (range(LIMIT), ValueError, f"{{0}} must have 4 entries, as the arrays have axes, not range(0, {LIMIT})"),
    ((9, 8.0, 9, 8), TypeError, "{0}[1] must be an integer, not 8.0"),
    ((9, True, 9, 8), TypeError, "{0}[1] must be an integer, not True"),
    ((9, 8, 9, -8), ValueError, "{0}[3] must be at least 0, not -8"),
    ((9, 8, LIMIT, 8), ValueError, f"{{0}}[2] must be less than 2**62, not {LIMIT}"),
]

AXIS = "kernel {}, stride {}, dilation {}, padding {}".format
PLAIN, PLAIN_2 = AXIS(3, 1, 1, (0, 0)), AXIS(3, 2, 1, (0, 0))

# One function rejects each of these because of an impossible shape or size.
SINGLE = [
    ("conv", {"groups": 4}, "w.shape[0] must be a multiple of groups = 4, not 6"),
    ("conv", {"groups": 2}, "x.shape[1] must be groups * w.shape[1] = 2 * 4, not 4; is it data_format='NXC'?"),
    ("conv", {"x": zeros(2, 5, 9, 8)}, "x.shape[1] must be groups * w.shape[1] = 1 * 4, not 5"),
    ("conv", {"x": zeros(2, 0, 9, 8)}, "x.shape[1] must be groups * w.shape[1] = 1 * 4, not 0"),
    (
        "conv",
        {"data_format": "NHWC"},
        "x.shape[3] must be groups * w.shape[1] = 1 * 4, not 8; is it data_format='NCX'?",
    ),
    (
        "conv",
        {"filter_format": "XIO"},
        "x.shape[1] must be groups * w.shape[2] = 1 * 3, not 4; is it filter_format='OIX'?",
    ),
    (
        "conv",
        {"x": zeros(2, 9, 8, 5), "w": zeros(3, 3, 5, 7)},
        "x.shape[1] must be groups * w.shape[1] = 1 * 3, not 9; is it data_format='NXC' and filter_format='XIO'?",
    ),
    (
        "conv",
        {"data_format": "nhwc", "filter_format": "hwio"},
        "x.shape[3] must be groups * w.shape[2] = 1 * 3, not 8; is it data_format='NCX' and filter_format='OIX'?",
    ),
    (
        "conv_backward_data",
        {"dy": zeros(2, 7, 7, 6), "x_shape": (2, 9, 8, 4)},
        "x_shape[1] must be groups * w.shape[1] = 1 * 4, not 9; is it data_format='NXC'?",
    ),
    (
        "conv_transpose",
        {"x": zeros(2, 7, 7, 6)},
        "x.shape[1] must be w.shape[0] = 6, not 7; is it data_format='NXC'?",
    ),
    ("conv", {"w": zeros(6, 4, 0, 2)}, "w.shape[2] must be at least 1, not 0"),
    (
        "conv",
        {"w": zeros(6, 4, 10, 2)},
        f"x.shape[2] = 9 is too small: a convolution of it has no output ({AXIS(10, 1, 1, (0, 0))})",
    ),
    (
        "conv",
        {"dilation": (1, 8)},
        f"x.shape[3] = 8 is too small: a convolution of it has no output ({AXIS(2, 1, 8, (0, 0))})",
    ),
    ("conv", {"x": zeros(2, 4, 0, 8)}, f"x.shape[2] = 0 is too small: a convolution of it has no output ({PLAIN})"),
    (
        "conv",
        {"x": zeros(2, 4, 0, 8), "padding": "same"},
        f"x.shape[2] = 0 is too small: a convolution of it has no output ({AXIS(3, 1, 1, 'same_upper')})",
    ),
    (
        "conv",
        {"padding": (LIMIT - 1, 0)},
        f"x.shape[2] = 9 and its padding ({LIMIT - 1}, {LIMIT - 1}) must together be less than 2**62",
    ),
    (
        "conv",
        {"padding": 2**40},
        f"the result must be smaller than 2**62 bytes, not of shape (2, 6, {2**41 + 7}, {2**41 + 7})",
    ),
    (
        "conv",
        {"x": lazy(2**31, 4, 3, 2), "w": lazy(2**31, 4, 3, 2)},
        f"the result must be smaller than 2**62 bytes, not of shape ({2**31}, {2**31}, 1, 1)",
    ),
    (
        "conv_backward_data",
        {"x_shape": (2, 4, 8, 8)},
        f"dy.shape[2] must be 6, the extent of a convolution of x_shape[2] = 8 ({PLAIN}), not 7",
    ),
    (
        "conv_backward_data",
        {"x_shape": (2, 4, 9, 9)},
        f"dy.shape[3] must be 8, the extent of a convolution of x_shape[3] = 9 ({AXIS(2, 1, 1, (0, 0))}), not 7",
    ),
    (
        "conv_backward_data",
        {"x_shape": (2, 4, 2, 8)},
        f"x_shape[2] = 2 is too small: a convolution of it has no output ({PLAIN})",
    ),
    (
        "conv_backward_data",
        {"x_shape": (2, 4, 0, 8)},
        f"x_shape[2] = 0 is too small: a convolution of it has no output ({PLAIN})",
    ),
    ("conv_backward_data", {"x_shape": (3, 4, 9, 8)}, "x_shape[0] must be dy.shape[0] = 2, not 3"),
    ("conv_backward_data", {"x_shape": (2, 5, 9, 8)}, "x_shape[1] must be groups * w.shape[1] = 1 * 4, not 5"),
    ("conv_backward_data", {"dy": zeros(2, 5, 7, 7)}, "dy.shape[1] must be w.shape[0] = 6, not 5"),
    (
        "conv_backward_data",
        {"dy": zeros(2, 6, 0, 7)},
        f"dy.shape[2] must be 7, the extent of a convolution of x_shape[2] = 9 ({PLAIN}), not 0",
    ),
    (
        "conv_backward_data",
        {"padding": "same"},
        f"dy.shape[2] must be 9, the extent of a convolution of x_shape[2] = 9 ({AXIS(3, 1, 1, 'same_upper')}), not 7",
    ),
    (
        "conv_backward_data",
        {"stride": 2},
        f"dy.shape[2] must be 4, the extent of a convolution of x_shape[2] = 9 ({AXIS(3, 2, 1, (0, 0))}), not 7",
    ),
    ("conv_backward_data", {"groups": 5}, "w.shape[0] must be a multiple of groups = 5, not 6"),
    ("conv_backward_data", {"w": zeros(6, 4, 3, 0)}, "w.shape[3] must be at least 1, not 0"),
    (
        "conv_backward_filter",
        {"w_shape": (6, 4, 4, 2)},
        f"dy.shape[2] must be 6, the extent of a convolution of x.shape[2] = 9 ({AXIS(4, 1, 1, (0, 0))}), not 7",
    ),
    ("conv_backward_filter", {"w_shape": (6, 3, 3, 2)}, "x.shape[1] must be groups * w_shape[1] = 1 * 3, not 4"),
    ("conv_backward_filter", {"w_shape": (5, 4, 3, 2)}, "dy.shape[1] must be w_shape[0] = 5, not 6"),
    ("conv_backward_filter", {"w_shape": (6, 4, 3, 0)}, "w_shape[3] must be at least 1, not 0"),
    (
        "conv_backward_filter",
        {"w_shape": (6, 4, 99, 2)},
        f"x.shape[2] = 9 is too small: a convolution of it has no output ({AXIS(99, 1, 1, (0, 0))})",
    ),
    ("conv_backward_filter", {"groups": 4}, "w_shape[0] must be a multiple of groups = 4, not 6"),
    ("conv_backward_filter", {"dy": zeros(3, 6, 7, 7)}, "x.shape[0] must be dy.shape[0] = 3, not 2"),
    ("conv_transpose", {"w": zeros(5, 4, 3, 2)}, "x.shape[1] must be w.shape[0] = 5, not 6"),
    ("conv_transpose", {"groups": 4}, "w.shape[0] must be a multiple of groups = 4, not 6"),
    ("conv_transpose", {"output_padding": 1}, "output_padding must be less than max(stride, dilation) = 1, not 1"),
    (
        "conv_transpose",
        {"stride": 2, "output_padding": (0, 2)},
        "output_padding must be less than max(stride, dilation) = 2, not (0, 2)",
    ),
    ("conv_transpose", {"output_padding": -1}, "output_padding must be at least 0, not -1"),
    (
        "conv_transpose",
        {"output_padding": (0, 0, 0)},
        "output_padding must have one entry for each spatial axis, 2, not (0, 0, 0)",
    ),
    (
        "conv_transpose",
        {"stride": 2, "output_padding": 1, "output_shape": (2, 4, 16, 15)},
        "output_padding must be 0 where output_shape is given, not 1",
    ),
    (
        "conv_transpose",
        {"stride": 2, "output_padding": 1, "padding": "same"},
        'output_padding must be 0 under "same" padding, not 1',
    ),
    (
        "conv_transpose",
        {"output_shape": (2, 4, 10, 8)},
        f"output_shape[2] must be 9, the extent of a transposed convolution of x.shape[2] = 7 ({PLAIN}), not 10",
    ),
    (
        "conv_transpose",
        {"output_shape": (2, 4, 17, 14), "stride": 2},
        f"output_shape[2] must be 15 to 16, the extent of a transposed convolution of x.shape[2] = 7 ({PLAIN_2}), not 17",
    ),
    ("conv_transpose", {"output_shape": (2, 4, 0, 8)}, "output_shape[2] must be at least 1, not 0"),
    ("conv_transpose", {"output_shape": (1, 4, 9, 8)}, "output_shape[0] must be x.shape[0] = 2, not 1"),
    ("conv_transpose", {"output_shape": (2, 6, 9, 8)}, "output_shape[1] must be groups * w.shape[1] = 1 * 4, not 6"),
    (
        "conv_transpose",
        {"output_shape": (2, 4, 13, 12), "stride": 2, "padding": "same"},
        f"x.shape[3] must be 6, the extent of a convolution of output_shape[3] = 12 ({AXIS(2, 2, 1, 'same_upper')}), not 7",
    ),
    ("conv_transpose", {"x": zeros(2, 6, 0, 7)}, "x.shape[2] must be at least 1, not 0"),
    ("conv_transpose", {"x": zeros(2, 6, 0, 7), "output_shape": X}, "x.shape[2] must be at least 1, not 0"),
    (
        "conv_transpose",
        {"padding": (5, 0)},
        f"x.shape[2] = 7 is too small: the output's extent would be -1 ({AXIS(3, 1, 1, (5, 5))})",
    ),
    (
        "conv_transpose",
        {"padding": (0, 4)},
        f"x.shape[3] = 7 is too small: the output's extent would be 0 ({AXIS(2, 1, 1, (4, 4))})",
    ),
    (
        "conv_transpose",
        {"stride": 2**60},
        f"result[2] = {6 * 2**60 + 3} and its padding (0, 0) must together be less than 2**62",
    ),
    (
        "conv_transpose",
        {"stride": 2**58, "padding": "same"},
        f"the result must be smaller than 2**62 bytes, not of shape (2, 4, {7 * 2**58}, {7 * 2**58})",
    ),
    (
        "conv_transpose_backward_data",
        {"dy": zeros(2, 3, 9, 8)},
        "dy.shape[1] must be groups * w.shape[1] = 1 * 4, not 3; is it filter_format='XIO'?",
    ),
    ("conv_transpose_backward_data", {"groups": 4}, "w.shape[0] must be a multiple of groups = 4, not 6"),
    (
        "conv_transpose_backward_data",
        {"output_padding": 1},
        "output_padding must be less than max(stride, dilation) = 1, not 1",
    ),
    ("conv_transpose_backward_data", {"output_padding": 1.0}, f"output_padding must be {PER_AXIS}, not 1.0"),
    (
        "conv_transpose_backward_data",
        {"output_padding": 1, "stride": 2, "padding": "same_lower"},
        'output_padding must be 0 under "same" padding, not 1',
    ),
    (
        "conv_transpose_backward_data",
        {"dy": zeros(2, 4, 2, 8)},
        f"dy.shape[2] = 2 is too small: a convolution of it has no output ({PLAIN})",
    ),
    (
        "conv_transpose_backward_data",
        {"dy": zeros(2, 4, 3, 8), "stride": 2, "output_padding": 1},
        f"dy.shape[2] = 3 less output_padding 1 is too small: a convolution of it has no output ({AXIS(3, 2, 1, (0, 0))})",
    ),
    (
        "conv_transpose_backward_filter",
        {"dy": zeros(2, 4, 10, 8)},
        f"dy.shape[2] must be 9, the extent of a transposed convolution of x.shape[2] = 7 ({PLAIN}), not 10",
    ),
    (
        "conv_transpose_backward_filter",
        {"stride": 2},
        f"dy.shape[2] must be 15 to 16, the extent of a transposed convolution of x.shape[2] = 7 ({AXIS(3, 2, 1, (0, 0))}), not 9",
    ),
    (
        "conv_transpose_backward_filter",
        {"dilation": 2},
        f"dy.shape[2] must be 11 to 12, the extent of a transposed convolution of x.shape[2] = 7 ({AXIS(3, 1, 2, (0, 0))}), not 9",
    ),
    (
        "conv_transpose_backward_filter",
        {"w_shape": (4, 6, 3, 2)},
        "dy.shape[1] must be groups * w_shape[1] = 1 * 6, not 4",
    ),
    (
        "conv_transpose_backward_data",
        {"stride": 2, "output_padding": (0, 1)},
        f"output_padding must agree with dy.shape[3] = 8: a transposed convolution of 3 elements ({AXIS(2, 2, 1, (0, 0))}) has 7 with 1",
    ),
    (
        "conv_transpose_backward_data",
        {"stride": 2, "output_padding": 0, "dy": zeros(2, 4, 10, 8)},
        f"output_padding must agree with dy.shape[2] = 10: a transposed convolution of 4 elements ({PLAIN_2}) has 9 with 0",
    ),
    (
        "conv_transpose_backward_data",
        {"stride": 2, "output_padding": 0, "padding": "same"},
        f"output_padding must agree with dy.shape[2] = 9: a transposed convolution of 5 elements ({AXIS(3, 2, 1, 'same_upper')}) has 10 with 0",
    ),
    ("conv_transpose_backward_data", {"output_shape": Y}, "output_shape[1] must be dy.shape[1] = 4, not 6"),
    (
        "conv_transpose_backward_data",
        {"output_shape": X, "output_padding": 1, "stride": 2},
        "output_padding must be 0 where output_shape is given, not 1",
    ),
    (
        "conv_transpose_backward_filter",
        {"stride": 2, "dy": zeros(2, 4, 16, 14), "output_padding": (0, 0)},
        f"output_padding must agree with dy.shape[2] = 16: a transposed convolution of 7 elements ({PLAIN_2}) has 15 with 0",
    ),
    (
        "conv_transpose_backward_filter",
        {"stride": 2, "dy": zeros(2, 4, 15, 14), "output_padding": 1},
        f"output_padding must agree with dy.shape[2] = 15: a transposed convolution of 7 elements ({PLAIN_2}) has 16 with 1",
    ),
    (
        "conv_transpose_backward_filter",
        {"output_padding": 1},
        "output_padding must be less than max(stride, dilation) = 1, not 1",
    ),
    (
        "conv_transpose_backward_filter",
        {"output_shape": (2, 4, 9, 9)},
        "output_shape[3] must be dy.shape[3] = 8, not 9",
    ),
    (
        "conv_transpose_backward_filter",
        {"output_shape": X, "data_format": "NXC", "x": zeros(2, 7, 7, 6), "dy": zeros(2, 9, 8, 4)},
        "output_shape[3] must be dy.shape[3] = 4, not 8",
    ),
    ("conv_transpose_backward_filter", {"w_shape": (6, 4, 0, 2)}, "w_shape[2] must be at least 1, not 0"),
    ("conv_transpose_backward_filter", {"x": zeros(2, 6, 0, 7)}, "x.shape[2] must be at least 1, not 0"),
    ("conv_transpose_backward_filter", {"x": zeros(1, 6, 7, 7)}, "dy.shape[0] must be x.shape[0] = 1, not 2"),
    (
        "conv_transpose_backward_filter",
        {"padding": "same"},
        f"x.shape[2] must be 9, the extent of a convolution of dy.shape[2] = 9 ({AXIS(3, 1, 1, 'same_upper')}), not 7",
    ),
]


def rejected():
    """(function, the changes to its valid call, exception, message) of every row of every table."""
    for function, (call, _) in BASE.items():
        names = list(call)
        for change, exception, message in KEYWORDS:
            filter_name = "w.shape" if "w" in call else "w_shape"
            yield function, change, exception, message.replace("{taps}", f"{filter_name}[2]")
        for name, value, exception, message in ARRAYS:
            yield function, {name.format(*names): value}, exception, message.format(*names)
        shape_name = names[2] if len(names) > 2 else "output_shape" if function == "conv_transpose" else None
        for value, exception, message in SHAPES:
            if shape_name == "output_shape" and value is None:
                continue
            if shape_name:
                yield function, {shape_name: value}, exception, message.format(shape_name)
    for function, change, message in SINGLE:
        kind = TypeError if "must be an integer or" in message else ValueError
        yield function, change, kind, message


REJECTED = list(rejected())


def test_there_are_enough_rejected_calls():
    assert len(REJECTED) >= 200


@pytest.mark.parametrize("function, change, exception, message", REJECTED)
def test_rejected(function, change, exception, message):
    call, shape = BASE[function]
    out = np.full(shape, 7, F4)
    for extra in ({}, {"out": out}):
        with pytest.raises(exception, match=f"^{re.escape(message)}$") as caught:
            getattr(cg, function)(**call | extra | change)
        assert caught.type is exception
    assert (out == 7).all()


def outputs():
    """(out, exception, message) for a result of shape Y. {0} is the call's first array."""
    y = zeros(*Y)
    frozen = zeros(*Y)
    frozen.flags.writeable = False
    yield [], TypeError, "out must be a numpy.ndarray, not list"
    yield Y, TypeError, "out must be a numpy.ndarray, not tuple"
    yield np.ma.zeros(Y, F4), TypeError, "out must be a numpy.ndarray without a mask, not MaskedArray"
    yield zeros(*Y, dtype=float), TypeError, "out must have the dtype of {0}, float32, not float64"
    yield zeros(*Y, dtype=">f8"), TypeError, "out must have the dtype of {0}, float32, not >f8"
    yield zeros(*Y, dtype=">f4"), TypeError, "out must be in the machine's own byte order, not of the dtype >f4"
    yield zeros(2, 6, 7, 6), ValueError, f"out must have the shape {Y}, not (2, 6, 7, 6)"
    yield zeros(2, 6, 49), ValueError, f"out must have the shape {Y}, not (2, 6, 49)"
    yield zeros(1, *Y), ValueError, f"out must have the shape {Y}, not (1, 2, 6, 7, 7)"
    yield frozen, ValueError, "out must be writeable, not a read-only array"
    yield lazy(*Y), ValueError, "out must be writeable, not a read-only array"
    shared = np.lib.stride_tricks.as_strided(y, Y, (0, 196, 28, 4))
    yield shared, ValueError, "out must not overlap itself, but has strides (0, 196, 28, 4)"
    sliding = np.lib.stride_tricks.as_strided(y, Y, (4 * 294, 196, 4, 4))
    yield sliding, ValueError, "out must not overlap itself, but has strides (1176, 196, 4, 4)"
    odd = np.zeros(2 * 6 * 7 * 7 * 4 + 1, np.uint8)[1:].view(F4).reshape(Y)
    yield odd, ValueError, f"out must be aligned to its itemsize 4, not have the strides {odd.strides}"
    packed = np.zeros(Y, np.dtype([("a", "u1"), ("b", "u1"), ("value", F4)]))["value"]
    yield packed, ValueError, f"out must be aligned to its itemsize 4, not have the strides {packed.strides}"


@pytest.mark.parametrize("out, exception, message", list(outputs()))
@pytest.mark.parametrize("function, first", [("conv", "x"), ("conv_transpose_backward_data", "dy")])
def test_rejected_out(function, first, out, exception, message):
    before = np.array(out, dtype=object, copy=True)
    with pytest.raises(exception, match=f"^{re.escape(message.format(first))}$"):
        getattr(cg, function)(**BASE[function][0], out=out)
    assert np.array_equal(before, np.array(out, dtype=object))


@pytest.mark.parametrize("function", BASE)
def test_out_must_not_overlap_an_input(function):
    call, shape = BASE[function]
    for name in [name for name, value in call.items() if isinstance(value, np.ndarray)]:
        size = call[name].size
        memory = np.ones(size + int(np.prod(shape)), F4)
        changed = call | {name: memory[:size].reshape(call[name].shape)}
        touching, beside = (memory[begin:][: int(np.prod(shape))].reshape(shape) for begin in (size - 1, size))
        with pytest.raises(ValueError, match=f"^out must not overlap {name} in memory$"):
            getattr(cg, function)(**changed, out=touching)
        assert (memory == 1).all()
        assert getattr(cg, function)(**changed, out=beside) is beside


def test_interleaved_out_and_input_do_not_overlap():
    memory = np.arange(2 * 8, dtype=F4).reshape(1, 1, 16)
    x, out = memory[..., ::2], memory[..., 1::2]
    assert cg.conv(x, np.ones((1, 1, 1), F4), out=out) is out
    np.testing.assert_array_equal(out, x)


def test_out_with_interleaved_strides_is_accepted():
    x = np.arange(6, dtype=F4).reshape(1, 1, 2, 3)
    out = np.lib.stride_tricks.as_strided(np.zeros(8, F4), (1, 1, 2, 3), (4, 4, 12, 8))
    assert cg.conv(x, np.ones((1, 1, 1, 1), F4), out=out) is out
    np.testing.assert_array_equal(out, x)


HUGE = 2**50
WIDE = lazy(1, 2**26, 5)  # channels without memory; their filter would need 2**54 bytes
# function -> changes to its valid call that make its result larger than any memory, and the shape of this result
TOO_LARGE = {
    "conv": ({"padding": (HUGE, 0)}, (2, 6, 2 * HUGE + 7, 7)),
    "conv_backward_data": ({"x_shape": (2, 4, 7 * HUGE, 8), "stride": (HUGE, 1)}, (2, 4, 7 * HUGE, 8)),
    "conv_backward_filter": ({"x": WIDE, "dy": WIDE, "w_shape": (2**26, 2**26, 1)}, (2**26, 2**26, 1)),
    "conv_transpose": ({"stride": (HUGE, 1)}, (2, 4, 6 * HUGE + 3, 8)),
    "conv_transpose_backward_data": ({"padding": (HUGE, 0)}, (2, 6, 2 * HUGE + 7, 7)),
    "conv_transpose_backward_filter": ({"x": WIDE, "dy": WIDE, "w_shape": (2**26, 2**26, 1)}, (2**26, 2**26, 1)),
}


@pytest.mark.parametrize("function", BASE)
def test_too_much_memory_is_a_memory_error(function):
    """The error must name the call."""
    change, shape = TOO_LARGE[function]
    message = f"{function} needs more memory than there is for a result of shape {shape} and dtype float32: no "
    with pytest.raises(MemoryError, match=f"^{re.escape(message)}"):
        getattr(cg, function)(**BASE[function][0] | change)


@pytest.mark.parametrize("function", ("conv_backward_filter", "conv_transpose_backward_filter"))
def test_too_many_taps(function):
    with pytest.raises(ValueError, match=r"^w_shape must have fewer than 16777216 taps, not 1125899906842624 x 2$"):
        getattr(cg, function)(**BASE[function][0] | {"w_shape": (6, 4, 2**50, 2)})


@pytest.mark.parametrize(
    "keywords",
    (
        {"stride": True},
        {"stride": 1.0},
        {"dilation": (1, True)},
        {"padding": ((0, 0), (False, 0))},
        {"groups": 1.0},
    ),
)
def test_a_refused_call_stays_refused_after_an_equal_one(keywords):
    """Accepted calls are remembered by their arguments. True and 1.0 are equal to 1, but must stay refused."""
    x, w = zeros(1, 1, 4, 4), zeros(1, 1, 2, 2)
    cg.conv(x, w, stride=1, dilation=(1, 1), padding=((0, 0), (0, 0)), groups=1)
    cg.conv(x, w)
    with pytest.raises(TypeError):
        cg.conv(x, w, **keywords)


def test_calls_beyond_what_is_remembered():
    """Results must be equal before and after their geometries are forgotten: there are more than are kept."""
    w = np.ones((1, 1, 1), F4)
    for _ in range(2):
        for size in range(1, 2100):
            assert cg.conv(np.broadcast_to(F4(2), (1, 1, size)), w).shape == (1, 1, size)


def test_absurd_but_possible_values():
    x, w = np.arange(5, dtype=F4).reshape(1, 1, 5), np.ones((1, 1, 1), F4)
    assert cg.conv(x, w, stride=LIMIT - 1, dilation=LIMIT - 1).tolist() == [[[0]]]
    assert cg.conv(x, w, stride=2**60, padding=((2**60, 0),)).tolist() == [[[0, 0]]]
    assert cg.conv_backward_data(np.ones((1, 1, 1), F4), w, (1, 1, 5), stride=LIMIT - 1).tolist() == [[[1, 0, 0, 0, 0]]]
    assert cg.conv(zeros(1, 0, 5), zeros(0, 0, 3), groups=LIMIT - 1).shape == (1, 0, 3)


RANKS = [(1, "NCW", "NWC"), (2, "NCHW", "NHWC"), (3, "NCDHW", "NDHWC")]
FILTERS = [(1, "OIW", "WIO"), (2, "OIHW", "HWIO"), (3, "OIDHW", "DHWIO")]


@pytest.mark.parametrize("change", (str, str.lower, str.title))
@pytest.mark.parametrize("data, filter", list(zip(RANKS, FILTERS, strict=True)))
def test_spellings(data, filter, change):
    """The names of an order's axes, one for each rank, must mean the general name, in upper, lower and mixed case."""
    rank, *data = data
    x, w = zeros(2, 3, *range(5, 5 + rank)), zeros(3, 3, *range(3, 3 + rank))
    x[...], w[...] = (np.arange(array.size).reshape(array.shape) % 7 for array in (x, w))
    x_last = np.moveaxis(x, 1, -1)
    arrays = (x, x_last), (w, np.moveaxis(w, (0, 1), (-1, -2)))
    same = cg.conv(x, w, padding="same")
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        formats = {"data_format": change(data[i]), "filter_format": change(filter[1 + j])}
        result = cg.conv(arrays[0][i], arrays[1][j], padding=change("SAME"), **formats)
        np.testing.assert_array_equal(np.moveaxis(result, -1, 1) if i else result, same)
        formats = {"data_format": change(("NCX", "NXC")[i]), "filter_format": change(("OIX", "XIO")[j])}
        result = cg.conv(arrays[0][i], arrays[1][j], padding=change("SAME_UPPER"), **formats)
        np.testing.assert_array_equal(np.moveaxis(result, -1, 1) if i else result, same)
    np.testing.assert_array_equal(cg.conv(x, w, padding=change("VALID")), cg.conv(x, w))
    lower = change("SAME_LOWER")
    np.testing.assert_array_equal(cg.conv(x, w, padding=lower), cg.conv(x, w, padding="same_lower"))
    wrong = next(other for other_rank, other, _ in FILTERS if other_rank != rank)
    with pytest.raises(ValueError, match=f"not '{change(wrong)}'(; did you mean '[A-Z]+'.)?$"):
        cg.conv(x, w, filter_format=change(wrong))


@pytest.mark.parametrize("rank, first, last", RANKS)
def test_formats(rank, first, last):
    random = np.random.default_rng(rank)
    x = random.integers(-4, 5, (2, 4, *range(5, 5 + rank))).astype(F4)
    w = random.integers(-4, 5, (6, 2, *range(2, 2 + rank))).astype(F4)
    y = cg.conv(x, w, groups=2)
    assert y.flags.c_contiguous
    x_last, w_last, y_last = np.moveaxis(x, 1, -1), np.moveaxis(w, (0, 1), (-1, -2)), np.moveaxis(y, 1, -1)
    np.testing.assert_array_equal(cg.conv(x, w, groups=2, data_format=first), y)
    for name in ("NXC", last):
        formats = {"groups": 2, "data_format": name, "filter_format": "XIO"}
        result = cg.conv(x_last, w_last, **formats)
        assert result.flags.c_contiguous
        np.testing.assert_array_equal(result, y_last)
        dx = cg.conv_backward_data(y_last, w_last, list(x_last.shape), **formats)
        np.testing.assert_array_equal(np.moveaxis(dx, -1, 1), cg.conv_backward_data(y, w, x.shape, groups=2))
        dw = cg.conv_backward_filter(x_last, y_last, np.array(w_last.shape), **formats)
        expected = cg.conv_backward_filter(x, y, w.shape, groups=2)
        np.testing.assert_array_equal(np.moveaxis(dw, (-1, -2), (0, 1)), expected)
        wrong = next(other for other_rank, other, _ in RANKS if other_rank != rank)
        with pytest.raises(ValueError, match=f"not '{wrong}'(; did you mean '[A-Z]+'.)?$"):
            cg.conv(x, w, data_format=wrong)


@pytest.mark.parametrize(
    "same_as, padding",
    [
        (0, "valid"),
        (0, np.int32(0)),
        (1, (1, 1)),
        (1, [1, 1]),
        (1, np.array([1, 1])),
        (1, ((1, 1), [1, 1])),
        (1, np.ones((2, 2), int)),
        (((1, 1), (0, 1)), "same"),
        (((1, 1), (0, 1)), "same_upper"),
        (((1, 1), (1, 0)), "same_lower"),
        ((9, 2), ((9, 9), (2, 2))),
    ],
)
def test_padding_forms(same_as, padding):
    random = np.random.default_rng(1)
    x, w = random.integers(-4, 5, X).astype(F4), random.integers(-4, 5, W).astype(F4)
    np.testing.assert_array_equal(cg.conv(x, w, padding=padding), cg.conv(x, w, padding=same_as))


@pytest.mark.parametrize(
    "value", [2, np.int8(2), np.uint64(2), (2, 2), [2, np.int64(2)], np.array([2, 2]), np.array(2)]
)
def test_integers(value):
    x, w = np.arange(72, dtype=F4).reshape(1, 1, 9, 8), np.ones((1, 1, 2, 2), F4)
    np.testing.assert_array_equal(cg.conv(x, w, stride=value, dilation=value), cg.conv(x, w, stride=2, dilation=2))


@pytest.mark.parametrize("function", BASE)
def test_out_is_returned(function):
    call, shape = BASE[function]
    for out in (np.full(shape, 7, F4), np.full(shape[::-1], 7, F4).T, np.full(shape, 7, F4)[:, ::-1, ::-1]):
        assert getattr(cg, function)(**call, out=out) is out
        assert (out == 0).all()
    assert getattr(cg, function)(**call).shape == shape


def test_inputs_of_any_layout():
    random = np.random.default_rng(2)
    x, w = random.integers(-4, 5, X).astype(F4), random.integers(-4, 5, W).astype(F4)
    expected = cg.conv(x, w)
    record = np.zeros(X, np.dtype([("a", "u1"), ("value", F4)]))
    record["value"] = x
    unaligned = np.frombuffer(b"." + x.tobytes(), np.uint8)[1:].view(F4).reshape(X)
    backwards = x[::-1, ::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1, ::-1]
    for other in (record["value"], unaligned, backwards, np.asfortranarray(x)):
        np.testing.assert_array_equal(cg.conv(other, w), expected)
    assert type(cg.conv(x.view(type("Subclass", (np.ndarray,), {})), w)) is np.ndarray


@pytest.mark.parametrize("batch, channels, outs", [(0, 2, 3), (2, 0, 3), (2, 2, 0), (0, 0, 0)])
def test_empty_axes(batch, channels, outs):
    x, w, y = np.ones((batch, channels, 5), F4), np.ones((outs, channels, 3), F4), np.ones((batch, outs, 3), F4)
    assert cg.conv(x, w).shape == y.shape
    assert cg.conv_backward_data(y, w, x.shape).shape == x.shape
    assert cg.conv_transpose(y, w).shape == x.shape
    assert cg.conv_transpose_backward_data(x, w).shape == y.shape
    for dw in (cg.conv_backward_filter(x, y, w.shape), cg.conv_transpose_backward_filter(y, x, w.shape)):
        assert dw.shape == w.shape
        assert (dw == (batch and 3 * batch)).all()
    if not channels:
        assert not cg.conv(x, w).any()
    if not outs:
        assert not cg.conv_transpose(y, w).any()


def test_empty_spatial_axis():
    x, w, y = np.ones((1, 1, 0), F4), np.ones((1, 1, 3), F4), np.ones((1, 1, 2), F4)
    assert cg.conv(x, w, padding=2).tolist() == [[[0, 0]]]
    assert cg.conv_backward_data(y, w, (1, 1, 0), padding=2).shape == (1, 1, 0)
    assert cg.conv_backward_filter(x, y, w.shape, padding=2).tolist() == [[[0, 0, 0]]]


def test_output_padding_and_output_shape():
    x, w = np.ones((1, 1, 4), F4), np.ones((1, 1, 3), F4)
    assert cg.conv_transpose(x, w, stride=3).shape == (1, 1, 12)
    for extra in range(3):
        y = cg.conv_transpose(x, w, stride=3, output_padding=extra)
        assert y.shape == (1, 1, 12 + extra)
        np.testing.assert_array_equal(cg.conv_transpose(x, w, stride=3, output_shape=y.shape), y)
        assert cg.conv_transpose_backward_data(y, w, stride=3, output_padding=extra).shape == x.shape
        assert cg.conv_transpose_backward_filter(x, y, w.shape, stride=3).shape == w.shape
    assert cg.conv_transpose(x, w, dilation=2, output_padding=1).shape == (1, 1, 9)
    assert cg.conv_transpose(x, w, stride=3, padding="same").shape == (1, 1, 12)
    for extent in (10, 11, 12):
        assert cg.conv_transpose(x, w, stride=3, padding="same", output_shape=(1, 1, extent)).shape == (1, 1, extent)
