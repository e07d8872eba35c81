"""The document of TensorFlow's Conv2DBackpropInput and the rows of DECISIONS.md, one by one."""

import inspect

import numpy as np
import pytest
import reference
from conformance import replay

from convgrad_cy.shims import tensorflow as tf
from convgrad_cy.shims.tensorflow import raw_ops

OPERATIONS = ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter")
EVERY = pytest.mark.parametrize("name", OPERATIONS)
GRADIENTS = pytest.mark.parametrize("name", OPERATIONS[1:])
DTYPES = ("float16", "bfloat16", "float32", "float64", "int32")


def tensors(name, x=(1, 4, 4, 2), w=(3, 3, 2, 4), y=(1, 2, 2, 4), dtype="float32"):
    x_array, w_array, y_array = (replay.tensor(dtype, shape, seed) for seed, shape in enumerate((x, w, y)))
    if name == "Conv2D":
        return {"input": x_array, "filter": w_array}
    if name == "Conv2DBackpropInput":
        return {"input_sizes": list(x), "filter": w_array, "out_backprop": y_array}
    return {"input": x_array, "filter_sizes": list(w), "out_backprop": y_array}


def call(name, shapes=(), /, **attributes):
    written = tensors(name, *shapes) | {"strides": [1, 1, 1, 1], "padding": "VALID"} | attributes
    return getattr(raw_ops, name)(**written)


def refused(error, name, shapes=(), /, **attributes):
    with pytest.raises(error) as caught:
        call(name, shapes, **attributes)
    assert type(caught.value) is error
    return str(caught.value)


def dgrad(dy, w, x_shape, stride=(1, 1), dilation=(1, 1), pad_begin=(0, 0), groups=1):
    """The definition of dgrad, in NHWC and XIO."""
    n, h, width, c = x_shape
    options = {"stride": stride, "dilation": dilation, "pad_begin": pad_begin, "groups": groups}
    result = reference.dgrad(dy.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), (n, c, h, width), **options)
    return result.transpose(0, 2, 3, 1)


# The document


def test_signature():
    text = (
        "(input_sizes, filter, out_backprop, strides, padding, use_cudnn_on_gpu=True, explicit_paddings=[], "
        "data_format='NHWC', dilations=[1, 1, 1, 1], name=None)"
    )
    assert str(inspect.signature(raw_ops.Conv2DBackpropInput)) == text
    assert raw_ops.Conv2DBackpropInput.__name__ == "conv2d_backprop_input"


@EVERY
def test_keyword_only(name):
    with pytest.raises(TypeError, match="only takes keyword args"):
        getattr(raw_ops, name)(np.ones((1, 1, 1, 1)))


def test_call_as_documented(capsys):
    """The documented call must work with another import only."""
    program = """
import numpy as np
from convgrad_cy.shims import tensorflow as tf
dx = tf.raw_ops.Conv2DBackpropInput(
    input_sizes=[1, 2, 3, 1], filter=np.array([1, 2, 3, 4], np.float32).reshape(2, 2, 1, 1),
    out_backprop=np.array([1, 2], np.float32).reshape(1, 1, 2, 1), strides=[1, 1, 1, 1], padding="VALID",
    use_cudnn_on_gpu=True, explicit_paddings=[], data_format="NHWC", dilations=[1, 1, 1, 1], name=None)
print(dx.shape, dx.dtype, dx.ravel())
"""
    exec(program, {})
    assert capsys.readouterr().out == "(1, 2, 3, 1) float32 [ 1.  4.  4.  3. 10.  8.]\n"


@pytest.mark.parametrize("dtype", DTYPES)
def test_filter_is_one_of_five_types_and_decides_that_of_the_result(dtype):
    written = tensors("Conv2DBackpropInput", dtype=dtype)
    result = call("Conv2DBackpropInput", **written)
    assert result.dtype == written["filter"].dtype and type(result) is np.ndarray
    assert np.array_equal(result.astype(float), dgrad(written["out_backprop"], written["filter"], (1, 4, 4, 2)))


@GRADIENTS
def test_out_backprop_must_have_the_same_type(name):
    other = np.ones((1, 2, 2, 4))
    message = refused(tf.errors.InvalidArgumentError, name, out_backprop=other)
    assert message.endswith("as input #2(zero-based) was expected to be a float tensor but is a double tensor")


@EVERY
def test_padding_must_be_same_valid_or_explicit(name):
    message = refused(tf.errors.InvalidArgumentError, name, padding="FULL")
    assert message.endswith('is not in the list of allowed values: "SAME", "VALID", "EXPLICIT"')


@EVERY
def test_data_format_must_be_nhwc_or_nchw(name):
    message = refused(tf.errors.InvalidArgumentError, name, data_format="NDHWC")
    assert message.endswith('is not in the list of allowed values: "NHWC", "NCHW"')


@EVERY
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_explicit_paddings_must_be_empty_if_padding_is_not_explicit(name, padding):
    message = refused(tf.errors.InvalidArgumentError, name, padding=padding, explicit_paddings=[0] * 8)
    assert message == "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT"


@pytest.mark.parametrize("data_format, pads", [("NHWC", [0, 0, 1, 2, 3, 0, 0, 0]), ("NCHW", [0, 0, 0, 0, 1, 2, 3, 0])])
def test_explicit_paddings_are_before_and_after_each_dimension(data_format, pads):
    written = tensors("Conv2DBackpropInput", y=(1, 5, 5, 4))
    expected = dgrad(written["out_backprop"], written["filter"], (1, 4, 4, 2), pad_begin=(1, 3))
    if data_format == "NCHW":
        written |= {"input_sizes": [1, 2, 4, 4], "out_backprop": written["out_backprop"].transpose(0, 3, 1, 2)}
        expected = expected.transpose(0, 3, 1, 2)
    options = {"padding": "EXPLICIT", "explicit_paddings": pads, "data_format": data_format}
    assert np.array_equal(call("Conv2DBackpropInput", **written, **options), expected)


@EVERY
@pytest.mark.parametrize("dilations", [[2, 1, 1, 1], [1, 1, 1, 2]])
def test_dilations_in_batch_and_depth_must_be_1(name, dilations):
    """The two gradients must be refused by their classes, which differ upstream."""
    error = tf.errors.InvalidArgumentError if name == "Conv2DBackpropFilter" else tf.errors.UnimplementedError
    assert "dilations in the batch and depth dimensions" in refused(error, name, dilations=dilations)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_dilation_skips_cells_in_the_order_of_data_format(data_format):
    written = tensors("Conv2DBackpropInput", x=(1, 7, 4, 2), y=(1, 3, 2, 4))
    expected = dgrad(written["out_backprop"], written["filter"], (1, 7, 4, 2), dilation=(2, 1))
    dilations = [1, 2, 1, 1]
    if data_format == "NCHW":
        written |= {"input_sizes": [1, 2, 7, 4], "out_backprop": written["out_backprop"].transpose(0, 3, 1, 2)}
        expected, dilations = expected.transpose(0, 3, 1, 2), [1, 1, 2, 1]
    result = call("Conv2DBackpropInput", **written, dilations=dilations, data_format=data_format)
    assert np.array_equal(result, expected)


# DECISIONS.md


@EVERY
def test_sizes_are_rounded_toward_zero(name):
    """VALID must give 0 outputs for an input of 1, a kernel of 5 and a stride of 3. With a stride of 2, it is -1."""
    shapes = ((1, 1, 1, 2), (5, 5, 2, 4), (1, 0, 0, 4))
    result = call(name, shapes, strides=[1, 3, 3, 1])
    assert result.shape == dict(zip(OPERATIONS, (shapes[2], shapes[0], shapes[1]), strict=True))[name]
    assert not result.any()
    assert refused(tf.errors.InvalidArgumentError, name, shapes, strides=[1, 2, 2, 1]) == (
        "Computed output size would be negative: -1 [input_size: 1, effective_filter_size: 5, stride: 2]"
    )


def test_leftovers_are_positive_zero():
    written = {name: -np.ones(shape) for name, shape in (("filter", (1, 1, 1, 1)), ("out_backprop", (1, 2, 2, 1)))}
    result = call("Conv2DBackpropInput", input_sizes=[5, 5], strides=[1, 3, 3, 1], **written)
    left = np.delete(result.ravel(), [0, 3, 15, 18])
    assert not left.any() and not np.signbit(left).any()


def test_infinity_spreads_through_existing_taps_only():
    filter, dy = np.ones((3, 3, 1, 1)), np.ones((1, 3, 3, 1))
    filter[0, 0] = np.inf
    result = call("Conv2DBackpropInput", input_sizes=[3, 3], filter=filter, out_backprop=dy, padding="SAME")
    assert np.isinf(result[0, :2, :2]).all() and np.isfinite(result[0, 2]).all() and np.isfinite(result[0, :, 2]).all()


@pytest.mark.parametrize("dtype, base", [("float16", 2048), ("bfloat16", 256)])
def test_half_types_are_summed_in_float32(dtype, base):
    """16-bit types must be summed in float32, as in XLA. The plain kernels lose each of the nine ones."""
    dtype = replay.dtype_of(dtype)
    filter, dy = np.ones((1, 1, 1, 10)).astype(dtype), np.array([base] + [1] * 9).astype(dtype).reshape(1, 1, 1, 10)
    result = call("Conv2DBackpropInput", input_sizes=[1, 1], filter=filter, out_backprop=dy)
    assert result == np.array(base + 9).astype(dtype) != base


@EVERY
def test_empty_batch_has_its_shapes_checked(name):
    shapes = ((0, 4, 4, 2), (3, 3, 2, 4), (0, 2, 2, 4))
    assert not call(name, shapes).any()
    wrong = {"Conv2D": {"padding": "EXPLICIT"}}.get(name, {"out_backprop": np.ones((0, 3, 2, 4), np.float32)})
    refused(tf.errors.InvalidArgumentError, name, shapes, **wrong)


@EVERY
@pytest.mark.parametrize("rate", [0, -1])
def test_dilation_of_zero_or_less(name, rate):
    message = refused(tf.errors.InvalidArgumentError, name, dilations=[1, 1, rate, 1])
    assert message == "Dilated rates should be larger than 0."


def test_exception_classes():
    errors = tf.errors
    assert issubclass(errors.OpError, Exception) and not issubclass(errors.OpError, ValueError)
    assert issubclass(errors.InvalidArgumentError, (errors.OpError, ValueError))
    assert errors.InvalidArgumentError.__mro__.index(errors.OpError) < errors.InvalidArgumentError.__mro__.index(
        ValueError
    )
    assert issubclass(errors.UnimplementedError, errors.OpError)
    assert issubclass(errors.UnimplementedError, NotImplementedError)
    assert errors.InvalidArgumentError("why").message == "why"


@pytest.mark.parametrize("name", OPERATIONS[:2])
def test_python_numbers_are_converted_to_the_type_of_the_first(name):
    second = {"Conv2D": "filter", "Conv2DBackpropInput": "out_backprop"}[name]
    for dtype in DTYPES:
        written = tensors(name, dtype=dtype)
        expected = call(name, **written)
        values = written[second].astype(int).tolist()
        assert np.array_equal(call(name, **written | {second: values}), expected)


def test_python_floats_are_not_converted_to_int32():
    written = tensors("Conv2DBackpropInput", dtype="int32") | {"out_backprop": [[[[0.5]]]]}
    message = refused(TypeError, "Conv2DBackpropInput", **written)
    assert message == "Cannot convert [[[[0.5]]]] to EagerTensor of dtype int32"


@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda sizes: np.array(sizes, np.uint8)])
@pytest.mark.parametrize("sizes", [[1, 4, 4, 2], [4, 4]])
def test_input_sizes_has_4_or_2_entries_of_any_integer_kind(kind, sizes):
    assert np.array_equal(call("Conv2DBackpropInput", input_sizes=kind(sizes)), call("Conv2DBackpropInput"))


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_groups_where_the_channels_of_the_filter_divide_those_of_the_input(data_format):
    written = tensors("Conv2DBackpropInput", (2, 4, 4, 6), (3, 3, 2, 9), (2, 2, 2, 9))
    expected = dgrad(written["out_backprop"], written["filter"], (2, 4, 4, 6), groups=3)
    if data_format == "NCHW":
        written |= {"input_sizes": [2, 6, 4, 4], "out_backprop": written["out_backprop"].transpose(0, 3, 1, 2)}
        expected = expected.transpose(0, 3, 1, 2)
    assert np.array_equal(call("Conv2DBackpropInput", **written, data_format=data_format), expected)


@EVERY
def test_groups_must_divide_the_channels_of_the_output(name):
    shapes = ((1, 4, 4, 4), (3, 3, 2, 3), (1, 2, 2, 3))
    message = refused(tf.errors.InvalidArgumentError, name, shapes)
    assert message == "output depth must be evenly divisible by number of groups: 3 vs 2"


@EVERY
def test_use_cudnn_on_gpu_and_name_are_checked_and_ignored(name):
    expected = call(name)
    for value in (True, False, None):
        assert np.array_equal(call(name, use_cudnn_on_gpu=value, name="what ever"), expected)
    assert refused(TypeError, name, use_cudnn_on_gpu=1) == "Expected bool for argument 'use_cudnn_on_gpu' not 1."


def test_int32_wraps():
    filter, dy = (np.full((1, 1, 1, 1), value, np.int32) for value in (2**30, 6))
    assert call("Conv2DBackpropInput", input_sizes=[1, 1], filter=filter, out_backprop=dy) == -(2**31)


def test_calls_that_abort_tensorflow_are_refused_or_answered():
    """Calls that abort TensorFlow must be refused or answered: two axes, an empty gradient, or no channels."""
    assert refused(
        tf.errors.InvalidArgumentError, "Conv2DBackpropInput", filter=np.ones((3, 3), np.float32), input_sizes=[4, 4]
    ).endswith("filter must be 4-dimensional")
    shapes = ((1, 4, 4, 2), (5, 5, 2, 4), (1, 0, 0, 4))
    assert not call("Conv2DBackpropFilter", shapes, strides=[1, 3, 3, 1]).any()
    assert call("Conv2DBackpropInput", input_sizes=[1, 4, 4, 0]).shape == (1, 4, 4, 0)


@EVERY
def test_docstring(name):
    text = getattr(raw_ops, name).__doc__
    assert "{" not in text and all(word in text for word in ("Parameters", "Returns", "Raises", "TensorFlow 2.21"))
