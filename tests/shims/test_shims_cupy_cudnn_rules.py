"""Refusals of ``convgrad_cy.shims.cupy_cudnn``, with the names of its arguments."""

import numpy as np
import pytest

from convgrad_cy.shims import cupy_cudnn as cudnn

F4 = np.float32
X, W, B, Y = np.ones((2, 4, 5, 5), F4), np.ones((6, 4, 3, 3), F4), np.ones(6, F4), np.zeros((2, 6, 3, 3), F4)
READ_ONLY = np.zeros(Y.shape, F4)
READ_ONLY.flags.writeable = False
GOOD = {
    "x": X, "W": W, "b": B, "y": Y, "pad": (0, 0), "stride": (1, 1), "dilation": (1, 1), "groups": 1,
    "auto_tune": True, "tensor_core": "auto",
}  # fmt: skip
#: Change of a good call -> the class and the message.
REFUSED = [
    ({"pad": [0, 0]}, TypeError, "Argument 'pad' has incorrect type (expected tuple, got list)"),
    ({"stride": 1}, TypeError, "Argument 'stride' has incorrect type (expected tuple, got int)"),
    ({"dilation": 2}, TypeError, "Argument 'dilation' has incorrect type (expected tuple, got int)"),
    ({"pad": None}, TypeError, "Argument 'pad' has incorrect type (expected tuple, got NoneType)"),
    ({"pad": (0, 0, 0)}, ValueError, "pad and stride must be of same length"),
    (
        {"pad": (0,), "stride": (1,)},
        cudnn.CuDNNError,
        "pad must have one entry for each spatial axis, 2, not (0,)",
    ),
    ({"dilation": (1,)}, cudnn.CuDNNError, "dilation must have one entry for each spatial axis, 2, not (1,)"),
    ({"pad": (0, -1)}, cudnn.CuDNNError, "pad[1] must be at least 0, not -1"),
    ({"stride": (0, 1)}, cudnn.CuDNNError, "stride[0] must be at least 1, not 0"),
    ({"pad": (0, 0.5)}, TypeError, "pad[1] must be an integer, not 0.5"),
    ({"groups": 0}, cudnn.CuDNNError, "groups must be at least 1, not 0"),
    ({"groups": 2}, cudnn.CuDNNError, "x.shape[1] must be groups * W.shape[1] = 2 * 4, not 4"),
    (
        {"tensor_core": "sometimes"},
        ValueError,
        'tensor_code_mode must be either of "always", "auto", or "never".',
    ),
    ({"d_layout": 2}, ValueError, "unknown cudnnTensorFormat: 2"),
    ({"w_layout": 3}, ValueError, "unknown cudnnTensorFormat: 3"),
    ({"d_layout": 1}, cudnn.CuDNNError, "x.shape[3] must be groups * W.shape[1] = 1 * 4, not 5"),
    ({"x": X.astype(np.int32)}, TypeError, "Dtype int32 is not supported in cuDNN"),
    ({"x": X.astype(">f4")}, TypeError, "Dtype >f4 is not supported in cuDNN"),
    ({"W": W.astype("f8")}, TypeError, "W must have the dtype of x, float32, not float64"),
    ({"y": Y.astype("c8")}, TypeError, "y must have the dtype of x, float32, not complex64"),
    ({"b": B.astype("f2")}, TypeError, "b must have the dtype of x, float32, not float16"),
    ({"x": [1]}, TypeError, "x must be a numpy.ndarray, not list: numpy.asarray makes it one"),
    ({"W": None}, TypeError, "W must be a numpy.ndarray, not NoneType"),
    ({"b": [1]}, TypeError, "b must be a numpy.ndarray, not list: numpy.asarray makes it one"),
    (
        {"x": X[0, 0]},
        cudnn.CuDNNError,
        "x must have 3 to 5 axes (batch, channels, 1 to 3 spatial ones), not 2",
    ),
    ({"W": W[0]}, cudnn.CuDNNError, "W must have as many axes as x, 4, not 3"),
    (
        {"y": np.zeros((2, 6, 3, 4), F4)},
        cudnn.CuDNNError,
        "y.shape[3] must be 3, the extent of a convolution of x.shape[3] = 5 (kernel 3, stride 1, dilation 1, "
        "padding (0, 0)), not 4",
    ),
    ({"y": np.zeros((1, 6, 3, 3), F4)}, cudnn.CuDNNError, "x.shape[0] must be y.shape[0] = 1, not 2"),
    ({"y": np.zeros((2, 5, 3, 3), F4)}, cudnn.CuDNNError, "y.shape[1] must be W.shape[0] = 6, not 5"),
    ({"b": B[:5]}, cudnn.CuDNNError, "b must have one element for each of the 6 channels of y, not 5"),
    ({"y": READ_ONLY}, cudnn.CuDNNError, "y must be writeable, not a read-only array"),
    (
        {"y": np.ndarray(Y.shape, F4, np.zeros(9, F4), 0, (0, 0, 12, 4))},
        cudnn.CuDNNError,
        "y must not overlap itself, but has strides (0, 0, 12, 4)",
    ),
    ({"y": X.reshape(-1)[:108].reshape(Y.shape)}, cudnn.CuDNNError, "y must not overlap x in memory"),
    ({"y": W.reshape(-1)[:108].reshape(Y.shape)}, cudnn.CuDNNError, "y must not overlap W in memory"),
    ({"b": Y.reshape(-1)[:6]}, cudnn.CuDNNError, "y must not overlap b in memory"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(number):
    changed, error, message = REFUSED[number]
    for _ in range(2):
        with pytest.raises(error) as caught:
            cudnn.convolution_forward(**(GOOD | changed))
        assert str(caught.value) == message
    assert (Y == 0).all() and (X == 1).all() and (W == 1).all()


def test_refused_with_the_names_of_the_others():
    """Messages must use the function's names.

    An unknown ``tensor_core`` must be refused only if upstream refuses it.
    """
    backward_data, backward_filter = cudnn.convolution_backward_data, cudnn.convolution_backward_filter
    gx, keywords = np.zeros_like(X), {"deterministic": True, "auto_tune": True, "tensor_core": "?"}
    axes = ((0, 0), (1, 1), (1, 1), 1)
    backward_data(W, Y, None, gx, *axes, **keywords)
    for function, arrays, message in (
        (backward_data, (W, Y[:, :5], None, gx), "x.shape[1] must be W.shape[0] = 6, not 5"),
        (backward_data, (W, Y, B, gx), "b must have one element for each of the 4 channels of y, not 6"),
        (backward_filter, (X, Y, W[:, :3]), "x.shape[1] must be groups * gW.shape[1] = 1 * 3, not 4"),
        (backward_filter, (X, Y[:1], W), "x.shape[0] must be gy.shape[0] = 1, not 2"),
        (backward_filter, (X, W[:2], W), "gy.shape[1] must be gW.shape[0] = 6, not 4"),
        (backward_filter, (X, Y, Y[:, :4]), "gy.shape[1] must be gW.shape[0] = 2, not 6"),
    ):
        with pytest.raises(cudnn.CuDNNError) as caught:
            function(*arrays, *axes, **keywords)
        assert isinstance(caught.value, RuntimeError)
        assert str(caught.value) == message
    for function, arrays in ((backward_data, (W, Y, None, gx)), (backward_filter, (X, Y, W.copy()))):
        with pytest.raises(ValueError, match="tensor_code_mode"):
            function(*arrays, *axes, **(keywords | {"deterministic": False}))


@pytest.mark.torch
def test_tensors_of_pytorch_are_refused():
    import torch

    with pytest.raises(TypeError, match=r"^x must be a numpy.ndarray or a cupy.ndarray, not a torch.Tensor$"):
        cudnn.convolution_forward(**(GOOD | {"x": torch.ones(X.shape)}))
