"""Arrays in another byte order than the machine's: inputs are copied, ``out`` is refused."""

import numpy as np
import pytest
from operations import DTYPES, OPERATIONS, assert_exact, bits, integer_tensors
from problems import PROBLEMS

import convgrad_cy as cg
from convgrad_cy.shims import cupy_cudnn, mindspore, onednn
from convgrad_cy.shims.tensorflow import raw_ops

SAME = PROBLEMS["2d_same"]
SWAPPED = [name for name in DTYPES if name != "bfloat16"]  # ml_dtypes has one byte order


def swapped(array):
    """An array with the same values in the other byte order."""
    return array.astype(array.dtype.newbyteorder("S"))


@pytest.mark.parametrize("problem", ["1d_groups", "2d_same", "3d_mixed_stride"])
@pytest.mark.parametrize("dtype", SWAPPED)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_values(operation, dtype, problem):
    """The results must be exact, in the machine's byte order, in a first call and in a remembered one."""
    problem, operation = PROBLEMS[problem], OPERATIONS[operation]
    tensors, _ = integer_tensors(problem, dtype)
    for _ in range(2):
        result = operation.call(problem, tensors, layout=swapped)
        assert result.dtype.isnative
        assert_exact(result, operation.expected(problem, tensors), dtype)


def test_one_of_two_is_swapped():
    tensors, _ = integer_tensors(SAME, "float32")
    x, w, dy = tensors
    expected = cg.conv(x, w, **SAME.keywords)
    for arrays in ((swapped(x), w), (x, swapped(w))):
        assert bits(cg.conv(*arrays, **SAME.keywords)) == bits(expected)
        out = np.empty_like(expected)
        assert cg.conv(*arrays, **SAME.keywords, out=out) is out
        assert bits(out) == bits(expected)
    both = [bits(array) for array in cg.conv_backward(dy, x, w, **SAME.keywords)]
    for arrays in ((swapped(dy), x, w), (dy, swapped(x), w), (dy, x, swapped(w))):
        results = cg.conv_backward(*arrays, **SAME.keywords)
        assert [bits(array) for array in results] == both and all(array.dtype.isnative for array in results)


def test_strides_and_empties():
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 12)
    w = np.ones((3, 2, 3), np.float32)
    for change in (lambda a: a[..., ::2], lambda a: a[:, ::-1], lambda a: a[:0], lambda a: a.transpose(1, 0, 2)):
        one, other = change(x), change(swapped(x))
        filter = w[:, : one.shape[1]]
        result = cg.conv(other, filter)
        assert result.dtype == np.float32 and result.dtype.isnative
        np.testing.assert_array_equal(result, cg.conv(one, filter))


def test_out():
    """``out`` must have the machine's byte order, for either result. A refused ``out`` must keep its values."""
    x, w = np.ones((1, 2, 5), np.float32), np.ones((3, 2, 3), np.float32)
    out = np.full((1, 3, 3), 7, ">f4")
    for first in (x, swapped(x)):
        with pytest.raises(TypeError, match=r"^out must be in the machine's own byte order, not of the dtype >f4$"):
            cg.conv(first, w, out=out)
    with pytest.raises(TypeError, match=r"^out\[1\] must be in the machine's own byte order, not of the dtype >f4$"):
        cg.conv_backward(np.ones((1, 3, 3), np.float32), x, w, out=(None, np.ones(w.shape, ">f4")))
    assert (out == 7).all()


def test_out_must_not_overlap_the_array_that_is_copied():
    memory = np.ones((1, 1, 8), ">f4")
    with pytest.raises(ValueError, match=r"^out must not overlap x in memory$"):
        cg.conv(memory, np.ones((1, 1, 3), np.float32), out=memory.view("<f4")[..., :6])
    assert (memory == 1).all()


def test_mindspore():
    dout, weight = np.arange(6, dtype=np.float32).reshape(1, 2, 1, 3), np.ones((2, 3, 1, 2), np.float32)
    operation = mindspore.ops.Conv2DBackpropInput(out_channel=2, kernel_size=(1, 2))
    expected = operation(dout, weight, (1, 3, 1, 4))
    for arrays in ((swapped(dout), weight), (dout, swapped(weight)), (swapped(dout), swapped(weight))):
        assert bits(operation(*arrays, (1, 3, 1, 4))) == bits(expected)
    assert operation(swapped(dout)[:, :, :0], weight, (1, 3, 0, 4)).dtype.isnative


def test_tensorflow():
    x, w = np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1), np.ones((2, 2, 1, 3), np.float32)
    given = {"strides": [1, 1, 1, 1], "padding": "VALID"}
    expected = raw_ops.Conv2D(input=x, filter=w, **given)
    for arrays in ((swapped(x), w), (x, swapped(w)), (swapped(x), swapped(w))):
        assert bits(raw_ops.Conv2D(input=arrays[0], filter=arrays[1], **given)) == bits(expected)


def test_onednn():
    x, w = np.arange(12, dtype=np.float32).reshape(1, 12, 1), np.ones((3, 1, 2), np.float32)
    operation = onednn.Convolution(strides=[1], pads_begin=[0], pads_end=[0], dilations=[1])
    expected = operation(x, w)
    for arrays in ((swapped(x), w), (x, swapped(w)), (swapped(x), swapped(w))):
        assert bits(operation(*arrays)) == bits(expected)


def test_cudnn_has_no_such_type():
    x, w, y = np.ones((1, 1, 3, 3), ">f4"), np.ones((1, 1, 1, 1), ">f4"), np.ones((1, 1, 3, 3), ">f4")
    with pytest.raises(TypeError, match=r"^Dtype >f4 is not supported in cuDNN$"):
        cupy_cudnn.convolution_forward(
            x, w, None, y, (0, 0), (1, 1), (1, 1), 1, auto_tune=False, tensor_core="never"
        )  # fmt: skip
