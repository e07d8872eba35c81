"""The algorithm of calls that do not name one."""

import os
import subprocess
import sys

import numpy as np
import pytest

import convgrad_cy as cg
from convgrad_cy.shims import mindspore, onednn, tensorflow

random = np.random.default_rng(0)
#: A layer that "auto" computes by Winograd's algorithm.
X, W = random.standard_normal((2, 64, 28, 28), np.float32), random.standard_normal((64, 64, 3, 3), np.float32)


@pytest.fixture(autouse=True)
def as_before():
    yield
    cg.set_default_algorithm("auto")


def result(**keywords):
    return cg.conv(X, W, padding=1, **keywords).tobytes()


def test_default():
    auto, direct = result(algorithm="auto"), result(algorithm="direct")
    assert auto != direct
    assert cg.get_default_algorithm() == "auto" and result() == auto
    cg.set_default_algorithm("direct")
    assert cg.get_default_algorithm() == "direct" and result() == direct, "a call like an earlier one, too"
    assert result(algorithm="auto") == auto, "a call that names one has that one"
    cg.set_default_algorithm("auto")
    assert result() == auto


def test_all_functions():
    y, up = cg.conv(X, W, padding=1), np.ascontiguousarray(W.swapaxes(0, 1))
    calls = (
        lambda **k: cg.conv_backward_data(y, W, X.shape, padding=1, **k),
        lambda **k: cg.conv_backward_filter(X, y, W.shape, padding=1, **k),
        lambda **k: cg.conv_backward(y, X, W, padding=1, **k)[1],
        lambda **k: cg.conv_transpose(X, up, padding=1, **k),
        lambda **k: cg.conv_transpose_backward_data(y, up, padding=1, **k),
        lambda **k: cg.conv_transpose_backward_filter(X, y, up.shape, padding=1, **k),
    )
    auto, direct = ([call(algorithm=name).tobytes() for call in calls] for name in ("auto", "direct"))
    assert sum(one != other for one, other in zip(auto, direct, strict=True)) > 0, "the others have one algorithm"
    assert [call().tobytes() for call in calls] == auto
    cg.set_default_algorithm("direct")
    assert [call().tobytes() for call in calls] == direct


@pytest.mark.parametrize("wrong, error", [("winograd", ValueError), ("fast", ValueError), (None, TypeError)])
def test_refusals(wrong, error):
    cg.set_default_algorithm("direct")
    with pytest.raises(error, match=r"^algorithm must be "):
        cg.set_default_algorithm(wrong)
    assert cg.get_default_algorithm() == "direct"


def run(value):
    code = "import convgrad_cy as cg; print(cg.get_default_algorithm())"
    environment = {**os.environ, "CONVGRAD_CY_ALGORITHM": value}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


def test_environment():
    assert run("direct").stdout == "direct\n"
    assert run("").stdout == "auto\n"
    refused = run("fast")
    assert refused.returncode == 1 and "CONVGRAD_CY_ALGORITHM must be one of auto, direct, was 'fast'" in refused.stderr


def test_shims_compute_directly():
    """An outlier must change no result outside of its reach."""
    x = X.copy()
    x[0, 0, 5, 5] = 1e9
    exact = cg.conv(x.astype(float), W.astype(float), padding=1)
    far = np.ones(exact.shape, bool)
    far[0, :, 4:7, 4:7] = False
    bound = 1e-3
    assert abs(cg.conv(x, W, padding=1, algorithm="auto") - exact)[far].max() > bound, "the algorithms differ here"
    y = x  # y has as many channels as x
    dx = cg.conv_backward_data(y.astype(float), W.astype(float), x.shape, padding=1)
    made = {
        "mindspore": mindspore.ops.Conv2DBackpropInput(64, 3, pad_mode="pad", pad=1)(y, W, x.shape),
        "onednn": onednn.ConvolutionBackpropData(strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1),
                                                 data_format="NCX", filter_format="OIX",
                                                 output_shape=x.shape)(y, W),
    }  # fmt: skip
    last = tensorflow.raw_ops.Conv2DBackpropInput(
        input_sizes=(2, 28, 28, 64), filter=W.transpose(2, 3, 1, 0), out_backprop=y.transpose(0, 2, 3, 1),
        strides=[1, 1, 1, 1], padding="SAME",
    )  # fmt: skip
    made["tensorflow"] = np.asarray(last).transpose(0, 3, 1, 2)
    for name, result in made.items():
        assert abs(np.asarray(result) - dx)[far].max() < bound, name
