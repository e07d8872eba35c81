"""A user's program. Checkers must refuse exactly the lines that end with ``# wrong``. It is never run."""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Unpack, assert_type

import convgrad_cy as cg
from convgrad_cy.explanation import Explanation, Explanations
from convgrad_cy.shims import cupy_cudnn, mindspore, onednn
from convgrad_cy.shims import tensorflow as tf
from convgrad_cy.typing import Keywords

F4 = NDArray[np.float32]


# Arrays of libraries that are not installed. They have the members that the protocols of convgrad_cy.typing name.


class Tensor:
    """Like torch.Tensor."""

    requires_grad = False

    def data_ptr(self) -> int:
        return 0


class Array:
    """Like jax.Array."""

    is_fully_addressable = True

    def devices(self) -> set[object]:
        return set()


class OnGPU:
    """Like cupy.ndarray."""

    def reduced_view(self) -> "OnGPU":
        return self

    def set(self, arr: object, stream: object = None) -> None:
        pass


class Conv2d:
    """A layer that passes keywords on."""

    def __init__(self, w: F4, **keywords: Unpack[Keywords]) -> None:
        self.w, self.keywords = w, keywords

    def backward(self, dy: F4, x: F4) -> tuple[F4, F4]:
        return cg.conv_backward(dy, x, self.w, **self.keywords)


def right(x: F4, w: F4, dy: F4, double: NDArray[np.float64], tensor: Tensor, array: Array, gpu: OnGPU) -> None:
    y = assert_type(cg.conv(x, w, stride=2, padding="same"), F4)
    cg.conv(x, w, stride=(1, 2), padding=((1, 2), (0, 1)), dilation=np.array([1, 2]), groups=np.int64(1), out=y)
    assert_type(cg.conv_backward_data(dy, w, x.shape, data_format="NHWC", filter_format="hwio"), F4)
    assert_type(cg.conv_backward_filter(x, dy, w.shape, algorithm="direct", precision="ieee"), F4)
    assert_type(cg.conv_backward(dy, x, w, out=(None, w)), tuple[F4, F4])
    assert_type(cg.conv_transpose(double, double, output_padding=(0, 1)), NDArray[np.float64])
    assert_type(cg.conv_transpose_backward(tensor, tensor, tensor, output_shape=[1, 2, 9]), tuple[Tensor, Tensor])
    assert_type(cg.conv_backward_filter(array, array, (4, 2, 3)), Array)
    assert_type(cg.conv_transpose_backward_data(gpu, gpu, out=gpu), OnGPU)
    assert_type(cg.explain("conv", [(1, 2, 9), w], "bfloat16", padding=1), Explanation)
    assert_type(cg.explain(cg.conv_backward, [dy, x, w], stride=[2]), Explanations)
    with cg.num_threads(2):
        assert_type(cg.get_num_threads(), int)
    onednn.Convolution(strides=[1], pads_begin=[0], pads_end=[0], dilations=[1], weights_format="OIX")(x, w)
    assert_type(mindspore.ops.Conv2DTranspose(32, 3, pad_mode="same")(dy, w, (1, 2, 3, 4)), F4)
    assert_type(tf.raw_ops.Conv2D(input=x, filter=w, strides=[1, 2, 2, 1], padding="SAME"), F4)
    cupy_cudnn.convolution_forward(x, w, None, y, (1,), (1,), None, 1, auto_tune=True, tensor_core="auto")
    cupy_cudnn.convolution_forward(gpu, gpu, gpu, gpu, (1,), (1,), (2,), 1, auto_tune=False, tensor_core="never")
    cg.set_default_algorithm("direct")
    Conv2d(w, stride=2, padding="valid").backward(dy, x)


def wrong(x: F4, w: F4, dy: F4, tensor: Tensor, array: Array, gpu: OnGPU) -> None:
    cg.conv(x, tensor)  # wrong
    cg.conv_backward(gpu, x, gpu)  # wrong
    cg.conv(array, array, out=array)  # wrong
    cg.conv([[[1.0]]], w)  # wrong
    cg.conv(x, w, padding="smae")  # wrong
    cg.conv(x, w, strides=2)  # wrong
    cg.conv_backward_data(dy, w)  # wrong
    cg.conv_backward(dy, x, w, data_format="NHCW")  # wrong
    cg.conv_transpose(x, w, 2)  # wrong
    cg.conv(x, w, out=tensor)  # wrong
    cg.explain("convolve", [x, w])  # wrong
    cg.set_default_algorithm("winograd")  # wrong
    cg.set_num_threads("2")  # wrong
    Conv2d(w, stride="2")  # wrong
    onednn.Convolution(strides=[1], pads_begin=[0], pads_end=[0])  # wrong
    cupy_cudnn.convolution_forward(x, w, None, gpu, (1,), (1,), None, 1, auto_tune=True, tensor_core="auto")  # wrong
    mindspore.ops.Conv2DTranspose(32, 3, pad_mode="full")  # wrong
    tf.raw_ops.Conv2D(x, w, [1, 2, 2, 1], "SAME")  # wrong
