"""The operations of the shims on arrays of CuPy: the same values and errors as on arrays of NumPy."""

import fake_cupy
import numpy as np
import pytest
from sim.executor import COMPILER

from convgrad_cy.shims import mindspore, onednn
from convgrad_cy.shims.tensorflow import raw_ops

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile kernels for the simulator")

RANDOM = np.random.default_rng(3)


def draw(*shape):
    return RANDOM.integers(-4, 5, shape).astype(np.float32)


X, W, DY = draw(2, 4, 6, 5), draw(6, 4, 3, 3), draw(2, 6, 4, 3)
X_LAST, W_LAST, DY_LAST = (np.ascontiguousarray(a.transpose(order)) for a, order in (
    (X, (0, 2, 3, 1)), (W, (2, 3, 1, 0)), (DY, (0, 2, 3, 1))
))  # fmt: skip
TF = {"strides": [1, 1, 1, 1], "padding": "VALID"}
ONEDNN = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}
LAYOUT = {"data_format": "NCX"}


def _onednn(name, formats, *rest):
    return lambda one, other: getattr(onednn, name)(**ONEDNN, **LAYOUT, **formats)(one, other, *rest)


#: Name -> a call of two arrays, and the arrays.
CALLS = {
    "mindspore": (
        lambda dout, weight: mindspore.Conv2DBackpropInput(6, 3)(dout, weight, X.shape),
        DY,
        W,
    ),
    "mindspore_flipped": (
        lambda dout, weight: mindspore.Conv2DBackpropInput(6, 3, mode=0)(dout, weight, X.shape),
        DY,
        W,
    ),
    "mindspore_nothing_to_add": (
        lambda dout, weight: mindspore.Conv2DBackpropInput(6, 3)(dout, weight, (2, 4, 2, 5)),
        DY[:, :, :0],
        W,
    ),
    "tensorflow": (lambda x, w: raw_ops.Conv2D(input=x, filter=w, **TF), X_LAST, W_LAST),
    "tensorflow_input": (
        lambda w, dy: raw_ops.Conv2DBackpropInput(input_sizes=X_LAST.shape, filter=w, out_backprop=dy, **TF),
        W_LAST,
        DY_LAST,
    ),
    "tensorflow_filter": (
        lambda x, dy: raw_ops.Conv2DBackpropFilter(input=x, filter_sizes=W_LAST.shape, out_backprop=dy, **TF),
        X_LAST,
        DY_LAST,
    ),
    "tensorflow_empty": (lambda x, w: raw_ops.Conv2D(input=x, filter=w, **TF), X_LAST[:0], W_LAST),
    "onednn": (_onednn("Convolution", {"weights_format": "OIX"}), X, W),
    "onednn_data": (_onednn("ConvolutionBackwardData", {"weights_format": "OIX", "dst_shape": list(X.shape)}), DY, W),
    "onednn_weights": (
        _onednn("ConvolutionBackwardWeights", {"weights_format": "OIX", "weights_shape": list(W.shape)}),
        X,
        DY,
    ),
}


@pytest.fixture(autouse=True)
def cupy(monkeypatch):
    fake_cupy.install(monkeypatch)


@pytest.mark.parametrize("name", CALLS)
def test_values(name):
    call, *arrays = CALLS[name]
    expected = call(*arrays)
    result = call(*map(fake_cupy.array, arrays))
    assert type(result) is fake_cupy.ndarray
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result.get(), expected)
    assert bool(fake_cupy.launches) == bool(expected.size and arrays[0].size)


@pytest.mark.parametrize("name", CALLS)
def test_errors(name):
    """Errors must be the framework's, for types that differ and for arrays with too few axes."""
    call, one, other = CALLS[name]
    for arrays in ((one, other.astype(np.float16)), (np.ones((2, 3, 4), np.float32), other)):
        with pytest.raises(Exception) as expected:
            call(*arrays)
        with pytest.raises(type(expected.value)) as caught:
            call(*map(fake_cupy.array, arrays))
        assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize("name", [name for name in CALLS if "nothing" not in name and "empty" not in name])
def test_one_array_on_the_gpu(name):
    call, one, other = CALLS[name]
    for arrays in ((fake_cupy.array(one), other), (one, fake_cupy.array(other))):
        with pytest.raises(TypeError, match=r"must be a (numpy|cupy)\.ndarray like \w+, not a (numpy|cupy)\.ndarray"):
            call(*arrays)
