"""The forms of padding, stride, output_padding and output_shape, compared with sizes found by search."""

from itertools import product

import numpy as np
import pytest
import reference

import convgrad_cy as cg

RANDOM = np.random.default_rng(11)
X = RANDOM.integers(-5, 6, (2, 3, 9, 8)).astype(np.float64)
W = RANDOM.integers(-5, 6, (4, 3, 3, 2)).astype(np.float64)


def outputs(size, kernel, stride, dilation, padding):
    """The number of windows that fit, by trying all of them."""
    return sum(
        start + (kernel - 1) * dilation < size + sum(padding) for start in range(0, size + sum(padding) + 1, stride)
    )


def same(size, kernel, stride, dilation, lower):
    """The least padding with which ceil(size / stride) windows fit. The odd one is at the end, or at the beginning."""
    total = 0
    while outputs(size, kernel, stride, dilation, (0, total)) < (size + stride - 1) // stride:
        total += 1
    begin = (total + 1) // 2 if lower else total // 2
    return begin, total - begin


def expected_conv(stride, padding, dilation):
    shape = [
        outputs(size, kernel, *rest)
        for size, kernel, *rest in zip(X.shape[2:], W.shape[2:], stride, dilation, padding, strict=True)
    ]
    begin = [pair[0] for pair in padding]
    return reference.fprop(X, W, (2, 4, *shape), stride=stride, dilation=dilation, pad_begin=begin, groups=1)


@pytest.mark.parametrize(
    "padding, pairs",
    [
        (0, ((0, 0), (0, 0))),
        (2, ((2, 2), (2, 2))),
        (np.int64(2), ((2, 2), (2, 2))),
        ((1, 3), ((1, 1), (3, 3))),
        ([1, 3], ((1, 1), (3, 3))),
        (((1, 0), (0, 3)), ((1, 0), (0, 3))),
        ([[7, 0], [0, 8]], ((7, 0), (0, 8))),
        ("valid", ((0, 0), (0, 0))),
    ],
)
def test_padding(padding, pairs):
    np.testing.assert_array_equal(cg.conv(X, W, padding=padding), expected_conv((1, 1), pairs, (1, 1)))


@pytest.mark.parametrize("stride, dilation", list(product([1, 2, 3, 5], [1, 2, 3])))
@pytest.mark.parametrize("word", ["same", "same_upper", "same_lower"])
def test_same(word, stride, dilation):
    padding = [
        same(size, kernel, stride, dilation, word == "same_lower")
        for size, kernel in zip(X.shape[2:], W.shape[2:], strict=True)
    ]
    expected = expected_conv((stride, stride), padding, (dilation, dilation))
    assert expected.shape[2:] == tuple(-(-size // stride) for size in X.shape[2:])
    keywords = {"stride": stride, "padding": word, "dilation": dilation}
    np.testing.assert_array_equal(cg.conv(X, W, **keywords), expected)
    dw = cg.conv_backward_filter(X, expected, W.shape, **keywords)
    geometry = {"stride": (stride,) * 2, "dilation": (dilation,) * 2, "pad_begin": [p[0] for p in padding], "groups": 1}
    np.testing.assert_array_equal(dw, reference.wgrad(X, expected, W.shape, **geometry))
    dx = cg.conv_backward_data(expected, W, X.shape, **keywords)
    np.testing.assert_array_equal(dx, reference.dgrad(expected, W, X.shape, **geometry))


@pytest.mark.parametrize("stride", [(1, 1), (2, 3), (4, 1)])
def test_stride_and_dilation_per_axis(stride):
    expected = expected_conv(stride, ((1, 1), (1, 1)), (2, 1))
    for form in (tuple, list, np.array):
        result = cg.conv(X, W, stride=form(stride), padding=1, dilation=form((2, 1)))
        np.testing.assert_array_equal(result, expected)


def expected_transpose(y, shape, stride, dilation, begin):
    return reference.dgrad(y, W, shape, stride=stride, dilation=dilation, pad_begin=begin, groups=1)


@pytest.mark.parametrize("stride, dilation", list(product([1, 2, 3], [1, 2, 4])))
def test_output_padding(stride, dilation):
    """Every output_padding below max(stride, dilation) must be exact, on each axis."""
    y = RANDOM.integers(-5, 6, (2, 4, 5, 4)).astype(np.float64)
    for extra in product(range(max(stride, dilation)), repeat=2):
        spatial = [
            (size - 1) * stride + (kernel - 1) * dilation + 1 - 1 + more
            for size, kernel, more in zip(y.shape[2:], W.shape[2:], extra, strict=True)
        ]
        expected = expected_transpose(y, (2, 3, *spatial), (stride,) * 2, (dilation,) * 2, (1, 0))
        keywords = {"stride": stride, "dilation": dilation, "padding": ((1, 0), (0, 1))}
        result = cg.conv_transpose(y, W, output_padding=extra, **keywords)
        np.testing.assert_array_equal(result, expected)
        # The gradients belong to the same convolution: y has as many positions as conv of x would have.
        back = cg.conv_transpose_backward_data(expected, W, output_padding=extra, **keywords)
        geometry = {"stride": (stride,) * 2, "dilation": (dilation,) * 2, "pad_begin": (1, 0), "groups": 1}
        np.testing.assert_array_equal(back, reference.fprop(expected, W, y.shape, **geometry))


def layers():
    """The keywords of transposed convolutions. Some of them have the shape of the output."""
    for stride, dilation in ((1, 1), (2, 1), (3, 2), (1, 3)):
        for extra in range(max(stride, dilation)):
            keywords = {"stride": stride, "dilation": dilation, "padding": ((1, 0), (0, 1))}
            rows, columns = (4 * stride + 2 * dilation + extra, 3 * stride + dilation + extra)
            yield keywords | {"output_padding": extra}
            if extra < stride:  # otherwise the shape does not determine the input
                yield keywords | {"output_shape": (2, 3, rows, columns)}
                yield keywords | {"output_shape": [2, 3, rows, columns], "output_padding": 0}
    yield {"stride": 2, "padding": "same", "output_padding": 0}
    yield {"stride": 3, "padding": "same", "output_shape": (2, 3, 14, 12)}
    yield {"stride": 2, "output_padding": None, "output_shape": None}


@pytest.mark.parametrize("data_format", ["NCX", "NXC"])
@pytest.mark.parametrize("layer", list(layers()), ids=str)
def test_keywords_of_a_layer_in_one_dict(layer, data_format):
    """All functions of a transposed convolution must take the same keywords, and belong to the same convolution."""
    x = RANDOM.integers(-5, 6, (2, 4, 5, 4)).astype(np.float64)
    expected = cg.conv_transpose(x, W, **layer)
    dy = RANDOM.integers(-5, 6, expected.shape).astype(np.float64)
    if data_format == "NXC":
        x, dy = (np.ascontiguousarray(np.moveaxis(array, 1, -1)) for array in (x, dy))
        if layer.get("output_shape"):
            n, c, *spatial = layer["output_shape"]
            layer = layer | {"output_shape": (n, *spatial, c)}
    layer = layer | {"data_format": data_format}
    assert cg.conv_transpose(x, W, **layer).shape == dy.shape
    dx = cg.conv_transpose_backward_data(dy, W, **layer)
    dw = cg.conv_transpose_backward_filter(x, dy, W.shape, **layer)
    for one, other in zip(cg.conv_transpose_backward(dy, x, W, **layer), (dx, dw), strict=True):
        np.testing.assert_array_equal(one, other)
    # Sums of products: dx and dw are the transposes of the linear maps from x and from w to the output.
    assert dx.shape == x.shape
    output = cg.conv_transpose(x, W, **layer)
    assert (output * dy).sum() == (dx * x).sum() == (dw * W).sum()


def test_both_gradients_know_the_input_by_its_shape():
    """The shape of the input must decide: an output padding of the stride or more leaves several possible inputs."""
    x, w, layer = np.ones((1, 1, 5)), np.ones((1, 1, 2)), {"dilation": 4, "output_shape": (1, 1, 12)}
    dy = cg.conv_transpose(x, w, **layer)
    dx, _ = cg.conv_transpose_backward(dy, x, w, **layer)
    assert dx.shape == x.shape
    np.testing.assert_array_equal(dx, cg.conv_transpose_backward_data(dy, w, dilation=4, output_padding=3))


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("word", ["same", "same_upper", "same_lower"])
def test_transpose_same(word, stride):
    """The output must be the input times the stride, with the padding of the convolution that leads back."""
    y = RANDOM.integers(-5, 6, (2, 4, 5, 4)).astype(np.float64)
    shape = (2, 3, 5 * stride, 4 * stride)
    begin = [
        same(size, kernel, stride, 1, word == "same_lower")[0]
        for size, kernel in zip(shape[2:], W.shape[2:], strict=True)
    ]
    expected = expected_transpose(y, shape, (stride,) * 2, (1, 1), begin)
    np.testing.assert_array_equal(cg.conv_transpose(y, W, stride=stride, padding=word), expected)


def test_transpose_same_with_output_shape():
    """5 rows come from 15, 14 or 13 rows at stride 3. Each size must be legal, with the padding of its convolution."""
    y = RANDOM.integers(-5, 6, (2, 4, 5, 4)).astype(np.float64)
    for rows in (13, 14, 15):
        shape = (2, 3, rows, 12)
        begin = [same(size, kernel, 3, 1, False)[0] for size, kernel in zip(shape[2:], W.shape[2:], strict=True)]
        expected = expected_transpose(y, shape, (3, 3), (1, 1), begin)
        result = cg.conv_transpose(y, W, stride=3, padding="same", output_shape=shape)
        np.testing.assert_array_equal(result, expected)
    for rows in (12, 16):
        with pytest.raises(ValueError, match="output_shape"):
            cg.conv_transpose(y, W, stride=3, padding="same", output_shape=(2, 3, rows, 12))


def test_output_shape_with_leftovers():
    """Three sizes have five windows of 3 at stride 3. Rows without a window must be zero."""
    y = RANDOM.integers(1, 6, (2, 4, 5, 4)).astype(np.float64)
    for rows in (15, 16, 17):
        result = cg.conv_transpose(y, W, stride=(3, 1), output_shape=(2, 3, rows, 5))
        np.testing.assert_array_equal(result, expected_transpose(y, (2, 3, rows, 5), (3, 1), (1, 1), (0, 0)))
        assert not result[:, :, 15:].any()


@pytest.mark.parametrize("name", ["conv", "conv_transpose_backward_data"])
def test_kernel_larger_than_the_padded_input(name):
    with pytest.raises(ValueError):
        getattr(cg, name)(X, W, dilation=5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("batch, channels, filters", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 0)])
def test_empty(dtype, batch, channels, filters):
    """Without a batch or channels, results must have the right shape, and sums of no terms must be zero."""
    x = np.ones((batch, channels, 6, 5), dtype)
    w = np.ones((filters, channels, 3, 2), dtype)
    y = np.ones((batch, filters, 4, 4), dtype)
    results = {
        "conv": (cg.conv(x, w), y.shape, channels),
        "conv_backward_data": (cg.conv_backward_data(y, w, x.shape), x.shape, filters),
        "conv_backward_filter": (cg.conv_backward_filter(x, y, w.shape), w.shape, batch),
        "conv_transpose": (cg.conv_transpose(y, w), x.shape, filters),
        "conv_transpose_backward_data": (cg.conv_transpose_backward_data(x, w), y.shape, channels),
        "conv_transpose_backward_filter": (cg.conv_transpose_backward_filter(y, x, w.shape), w.shape, batch),
    }
    for name, (result, shape, terms) in results.items():
        assert (result.shape, result.dtype) == (shape, np.dtype(dtype)), name
        assert terms or not result.any(), name
