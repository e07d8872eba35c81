"""Behaviour of ``convgrad_cy.shims.mindspore`` that MindSpore documents but does not implement."""

import re

import numpy as np
import operations
import pytest
import reference
from conformance import replay

import convgrad_cy as cg
from convgrad_cy.shims.mindspore import Conv2DBackpropInput, Conv2DTranspose, ShapeError


def tensors(dout, weight, dtype="float32"):
    return replay.tensor(dtype, dout, 3), replay.tensor(dtype, weight, 4)


def dgrad(dout, weight, shape, stride=(1, 1), dilation=(1, 1), pad_begin=(0, 0), groups=1):
    return reference.dgrad(dout, weight, shape, stride=stride, dilation=dilation, pad_begin=pad_begin, groups=groups)


@pytest.mark.parametrize("dtype", operations.DTYPES)
@pytest.mark.parametrize("size", [(2, 4, 7, 9), [2, 4, 7, 9], np.array([2, 4, 7, 9], np.int32)], ids=type)
def test_dtypes_and_kinds_of_input_size(dtype, size):
    dout, weight = tensors((2, 6, 3, 4), (6, 2, 3, 3), dtype)
    result = Conv2DBackpropInput(6, 3, stride=2, group=2)(dout, weight, size)
    operations.assert_exact(result, dgrad(dout, weight, (2, 4, 7, 9), stride=(2, 2), groups=2), dtype)


def test_mode_0_flips_the_kernel():
    dout, weight = tensors((1, 2, 4, 3), (2, 3, 2, 3))
    result = Conv2DBackpropInput(2, (2, 3), mode=0)(dout, weight, (1, 3, 5, 5))
    operations.assert_exact(result, dgrad(dout, weight[:, :, ::-1, ::-1], (1, 3, 5, 5)), "float32")


@pytest.mark.parametrize("pad_mode, begin, size", [("valid", (0, 0), (2, 4)), ("same", (0, 1), (3, 5))])
def test_mode_2_is_a_convolution_of_dout(pad_mode, begin, size):
    dout, weight = tensors((1, 4, 6, 9), (6, 2, 3, 3))
    result = Conv2DBackpropInput(4, 3, pad_mode, mode=2, stride=2, group=2)(dout, weight, (1, 6, *size))
    geometry = {"stride": (2, 2), "dilation": (1, 1), "pad_begin": begin, "groups": 2}
    operations.assert_exact(result, reference.fprop(dout, weight, (1, 6, *size), **geometry), "float32")


@pytest.mark.parametrize("group", [1, 3])
def test_mode_3_is_depthwise(group):
    dout, weight = tensors((2, 6, 3, 3), (6, 1, 3, 3))
    operator = Conv2DBackpropInput(6, 3, mode=3, group=group)
    operations.assert_exact(
        operator(dout, weight, (2, 3, 5, 5)), dgrad(dout, weight, (2, 3, 5, 5), groups=3), "float32"
    )
    with pytest.raises(
        ShapeError, match=re.escape("weight.shape[1] must be 1, for the convolution is depthwise, not 3")
    ):
        operator(dout, replay.tensor("float32", (6, 3, 3, 3), 1), (2, 3, 5, 5))
    with pytest.raises(ShapeError, match=re.escape("input_size[1] must be groups * weight.shape[1] = ")):
        operator(dout, weight, (2, 0, 5, 5))


@pytest.mark.parametrize("mode", [0, 2, 3, -7, 99])
def test_mode_of_conv2d_transpose_does_nothing(mode):
    dout, weight = tensors((1, 2, 3, 3), (2, 3, 3, 3))
    result = Conv2DTranspose(2, 3, mode=mode)(dout, weight, (1, 3, 5, 5))
    operations.assert_exact(result, dgrad(dout, weight, (1, 3, 5, 5)), "float32")


def test_unknown_mode_names_the_known_ones():
    expected = (
        "For 'Conv2DBackpropInput', the 'mode' must be int and must be one of 0, 1, 2, 3, but got '4' with type 'int'."
    )
    with pytest.raises(ValueError) as caught:
        Conv2DBackpropInput(2, 3, mode=4)
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    "attributes, transposed, outputs",
    [
        ({"stride": 2}, {}, (5, 4)),
        ({"pad_mode": "same"}, {}, (11, 9)),
        ({"pad_mode": "pad", "pad": (1, 0, 3, 2)}, {}, (10, 12)),
        ({"stride": (1, 3, 2, 5), "dilation": (2, 1)}, {"stride": (1, 5, 3, 2)}, (3, 4)),
    ],
)
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_nhwc_is_nchw_transposed(attributes, transposed, outputs, mode):
    """The four entries of a stride or dilation must follow the order of the format."""
    nchw = Conv2DBackpropInput(4, 3, mode=mode, group=2, **attributes | transposed)
    nhwc = Conv2DBackpropInput(4, 3, mode=mode, group=2, data_format="NHWC", **attributes)
    read, asked = ((2, 4, 11, 9), (2, 4, *outputs)) if mode == 2 else ((2, 4, *outputs), (2, 4, 11, 9))
    dout, weight = tensors(read, (4, 2, 3, 3))
    expected = np.moveaxis(nchw(dout, weight, asked), 1, -1)
    result = nhwc(np.moveaxis(dout, 1, -1), np.moveaxis(weight, 1, -1), (asked[0], *asked[2:], asked[1]))
    assert np.array_equal(result, expected)


def test_shape_error_names_the_argument():
    dout, weight = tensors((1, 2, 3, 3), (2, 3, 3, 3))
    messages = {
        (1, 3, 6, 5): "dout.shape[2] must be 4, the extent of a convolution of input_size[2] = 6 "
        "(kernel 3, stride 1, dilation 1, padding (0, 0)), not 3",
        (1, 4, 5, 5): "input_size[1] must be groups * weight.shape[1] = 1 * 3, not 4",
        (2, 3, 5, 5): "input_size[0] must be dout.shape[0] = 1, not 2",
        (1, 3, 5): "input_size must have 4 entries, not (1, 3, 5)",
        (1, 3, 5, -1): "input_size[3] must be at least 0, not -1",
        (1, 3, 1, 5): "input_size[2] = 1 is too small: a convolution of it has no output "
        "(kernel 3, stride 1, dilation 1, padding (0, 0))",
    }
    for size, message in messages.items():
        with pytest.raises(ShapeError) as caught:
            Conv2DTranspose(2, 3)(dout, weight, size)
        assert str(caught.value) == f"For 'Conv2DTranspose', {message}"
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, RuntimeError)


def test_leftovers_are_positive_zero():
    dout, weight = tensors((1, 2, 2, 2), (2, 3, 1, 1))
    result = Conv2DTranspose(2, 1, stride=3)(-abs(dout), weight, (1, 3, 6, 6))
    untouched = np.ones((6, 6), bool)
    untouched[::3, ::3] = False
    assert not result[..., untouched].any() and not np.signbit(result[..., untouched]).any()


class Own(np.ndarray):
    """An array whose methods must not be called."""

    def transpose(self, *axes):
        raise AssertionError

    view = __getitem__ = reshape = transpose


@pytest.mark.parametrize("mode", [0, 1])
def test_methods_of_a_subclass_are_not_called(mode):
    dout, weight = tensors((1, 2, 3, 3), (2, 3, 3, 3))
    expected = Conv2DBackpropInput(2, 3, mode=mode)(dout, weight, (1, 3, 5, 5))
    result = Conv2DBackpropInput(2, 3, mode=mode)(dout.view(Own), weight.view(Own), (1, 3, 5, 5))
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("mode", [1, 2])
def test_results_are_those_of_the_direct_algorithm(mode):
    """Results must have the bits of "direct" in a layer that "auto" computes by Winograd's algorithm."""
    rng = np.random.default_rng(0)
    dout, weight = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 64, 28, 28), (64, 64, 3, 3)))
    result = Conv2DBackpropInput(64, 3, "same", mode=mode)(dout, weight, (2, 64, 28, 28))
    if mode == 1:
        other = Conv2DTranspose(64, 3, "same")(dout, weight, (2, 64, 28, 28))
        assert operations.bits(other) == operations.bits(result)
    auto, direct = (
        cg.conv_backward_data(dout, weight, (2, 64, 28, 28), padding=1, algorithm=algorithm)
        if mode == 1
        else cg.conv(dout, weight, padding=1, algorithm=algorithm)
        for algorithm in ("auto", "direct")
    )
    assert operations.bits(result) == operations.bits(direct) != operations.bits(auto)
