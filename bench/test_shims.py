"""The cost of a shim's call over the core's: python -m pytest bench/test_shims.py --benchmark-only.

The problem is so small that checks and translation are most of the call. Every operation of the frameworks has two
rows, the shim's call and the core's call on the same arrays, and a test that their difference is below the limit.
"""

import gc
import statistics
import time

import numpy as np
import pytest

import convgrad_cy as cg
from convgrad_cy.shims import mindspore, onednn
from convgrad_cy.shims.tensorflow import raw_ops

#: Greatest difference of a shim's call and the core's, in seconds.
LIMIT = 15e-6
ROUNDS, CALLS = 100, 50

X, W, Y = (np.ones(shape, np.float32) for shape in ((1, 2, 5, 5), (2, 2, 3, 3), (1, 2, 3, 3)))
XL, WL, YL = (np.ones(shape, np.float32) for shape in ((1, 5, 5, 2), (3, 3, 2, 2), (1, 3, 3, 2)))
AXES = {"stride": (1, 1), "dilation": (1, 1), "padding": ((0, 0), (0, 0)), "groups": 1}
LAST = AXES | {"data_format": "NXC", "filter_format": "XIO"}
RAW = {"strides": [1, 1, 1, 1], "padding": "VALID"}
GRAPH = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}


def forward():
    return cg.conv(XL, WL, **LAST)


def data_gradient():
    return cg.conv_backward_data(YL, WL, XL.shape, **LAST)


def filter_gradient():
    return cg.conv_backward_filter(XL, YL, WL.shape, **LAST)


def first_data_gradient():
    return cg.conv_backward_data(Y, W, X.shape, **AXES)


def mindspore_call(name):
    operator = getattr(mindspore, name)(2, 3)
    return lambda: operator(Y, W, X.shape)


def onednn_call(name, *arrays, **shape):
    operation = getattr(onednn, name)(**GRAPH, **shape)
    return lambda: operation(*arrays)


#: Operation -> a call of the shim, and of the core.
PAIRS = {
    "mindspore.Conv2DBackpropInput": (mindspore_call("Conv2DBackpropInput"), first_data_gradient),
    "mindspore.Conv2DTranspose": (mindspore_call("Conv2DTranspose"), first_data_gradient),
    "tensorflow.Conv2D": (lambda: raw_ops.Conv2D(input=XL, filter=WL, **RAW), forward),
    "tensorflow.Conv2DBackpropInput": (
        lambda: raw_ops.Conv2DBackpropInput(input_sizes=[1, 5, 5, 2], filter=WL, out_backprop=YL, **RAW),
        data_gradient,
    ),
    "tensorflow.Conv2DBackpropFilter": (
        lambda: raw_ops.Conv2DBackpropFilter(input=XL, filter_sizes=[3, 3, 2, 2], out_backprop=YL, **RAW),
        filter_gradient,
    ),
    "onednn.ConvolutionBackpropData": (
        onednn_call("ConvolutionBackpropData", YL, WL, output_shape=XL.shape),
        data_gradient,
    ),
    "onednn.ConvTransposeBackpropFilters": (
        onednn_call("ConvTransposeBackpropFilters", YL, XL, filter_shape=WL.shape),
        filter_gradient,
    ),
    "onednn.Convolution": (onednn_call("Convolution", XL, WL), forward),
    "onednn.ConvolutionBackwardData": (
        onednn_call("ConvolutionBackwardData", YL, WL, dst_shape=XL.shape),
        data_gradient,
    ),
    "onednn.ConvolutionBackwardWeights": (
        onednn_call("ConvolutionBackwardWeights", XL, YL, weights_shape=WL.shape),
        filter_gradient,
    ),
    "onednn.ConvTranspose": (onednn_call("ConvTranspose", YL, WL), data_gradient),
    "onednn.ConvTransposeBackwardData": (onednn_call("ConvTransposeBackwardData", XL, WL), forward),
    "onednn.ConvTransposeBackwardWeights": (
        onednn_call("ConvTransposeBackwardWeights", YL, XL, weights_shape=WL.shape),
        filter_gradient,
    ),
}


@pytest.mark.parametrize("which", ["shim", "core"])
@pytest.mark.parametrize("name", PAIRS)
def test_call(benchmark, name, which):
    call = PAIRS[name][which == "core"]
    assert call().any()
    benchmark.group = name
    benchmark(call)


def seconds(call):
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS


@pytest.mark.parametrize("name", PAIRS)
def test_overhead(benchmark, name):
    """The median difference of the two times, over pairs of rounds with one call each, must be at most LIMIT."""
    shim, core = PAIRS[name]
    np.testing.assert_array_equal(shim(), core())

    def measure():
        return statistics.median(seconds(shim) - seconds(core) for _ in range(ROUNDS))

    gc.disable()
    try:
        overhead = benchmark.pedantic(measure, rounds=1)
    finally:
        gc.enable()
    benchmark.group = "measurement of the overhead"
    benchmark.extra_info["overhead_us"] = round(1e6 * overhead, 2)
    print(f"{name}: {1e6 * overhead:.1f} us over the core's call")
    assert overhead <= LIMIT
