"""Chunks that do not fit, and other wrong arguments, are refused when the graph is made."""

import numpy as np
import pytest

pytestmark = pytest.mark.dask

F4 = np.float32
W = np.ones((4, 3, 3, 3), F4)


def zeros(shape, chunks, dtype=F4):
    import dask.array as da

    return da.zeros(shape, dtype=dtype, chunks=chunks)


def unknown():
    x = zeros((4, 3, 8, 8), (2, 3, 8, 8))
    return x[x[:, 0, 0, 0] > 0]


#: Message -> function, arguments and keywords of the call.
REFUSED = {
    "x must have chunks along axis 2 that are multiples of the stride 4, except the last, not (30, 34)": (
        "conv", lambda: (zeros((2, 3, 64, 64), ((2,), (3,), (30, 34), (64,))), W), {"stride": 4}),
    "x must have chunks along axis 1 that are multiples of the stride 2, except the last, not (5, 5)": (
        "conv", lambda: (zeros((1, 10, 3), (1, 5, 3)), W[0]), {"stride": 2, "data_format": "NWC"}),
    "x must have chunks along axis 3 of at least 6, the halo of the filter, not (4, 4)": (
        "conv", lambda: (zeros((1, 3, 8, 8), (1, 3, 8, 4)), W), {"dilation": (1, 5), "padding": (0, 6)}),
    "x must have chunks along axis 2 that each have output, not (64, 1)": (
        "conv", lambda: (zeros((1, 3, 65, 8), ((1,), (3,), (64, 1), (8,))), W), {"stride": 2}),
    "x must have one chunk along axis 1, not (1, 1, 1)": (
        "conv", lambda: (zeros((1, 3, 8, 8), (1, 1, 8, 8)), W), {}),
    "padding must be less than the extent 3 of the filter along axis 2, which has several chunks, not 4": (
        "conv", lambda: (zeros((1, 3, 8, 8), (1, 3, 4, 8)), W), {"padding": 4}),
    "w must have one chunk along axis 0, not (2, 2)": (
        "conv", lambda: (zeros((1, 3, 8, 8), 8), zeros(W.shape, (2, 3, 3, 3))), {}),
    "dy must have chunks along axis 3 of at least 2, the halo of the filter, not (5, 1)": (
        "conv_backward_data", lambda: (zeros((1, 4, 6, 6), (1, 4, 6, 5)), W, (1, 3, 8, 8)), {}),
    "dy must have one chunk along axis 1, not (2, 2)": (
        "conv_backward_data", lambda: (zeros((1, 4, 6, 6), (1, 2, 6, 6)), W, (1, 3, 8, 8)), {}),
    "dy must have the chunks (1, 1) along axis 0, to match x, not (2,)": (
        "conv_backward_filter",
        lambda: (zeros((2, 3, 8, 8), (1, 3, 8, 8)), zeros((2, 4, 6, 6), 6), W.shape), {}),
    "dy must have the chunks (2, 2) along axis 2, to match x, not (3, 1)": (
        "conv_backward_filter",
        lambda: (zeros((2, 3, 8, 8), (2, 3, 4, 8)), zeros((2, 4, 4, 4), (2, 4, 3, 4)), W.shape),
        {"stride": 2, "padding": 1}),
    "dy must have one chunk along axis 1, not (1, 1, 1, 1)": (
        "conv_backward_filter",
        lambda: (zeros((2, 3, 8, 8), 8), zeros((2, 4, 6, 6), (2, 1, 6, 6)), W.shape), {}),
    "x must have known chunks, not the shape (nan, 3, 8, 8): compute_chunk_sizes finds them": (
        "conv", lambda: (unknown(), W), {}),
    "x.shape[1] must be groups * w.shape[1] = 1 * 3, not 5": ("conv", lambda: (zeros((1, 5, 8, 8), 8), W), {}),
    "algorithm must be 'auto' or 'direct' for the dtype int32, not 'winograd'": (
        "conv", lambda: (zeros((1, 3, 8, 8), 8, "int32"), W.astype("int32")), {"algorithm": "winograd"}),
}  # fmt: skip
WRONG_TYPES = {
    "x must be a dask.array.Array, not ndarray: dask.array.from_array makes it one": (
        "conv", lambda: (np.zeros((1, 3, 8, 8), F4), W)),
    "dy must be a dask.array.Array, not ndarray: dask.array.from_array makes it one": (
        "conv_backward_filter", lambda: (zeros((1, 3, 8, 8), 8), np.zeros((1, 4, 6, 6), F4), W.shape)),
    "w must be a numpy.ndarray, not list: numpy.asarray makes it one": (
        "conv", lambda: (zeros((1, 3, 8, 8), 8), W.tolist())),
    "w must have the dtype of x, float32, not float64": (
        "conv", lambda: (zeros((1, 3, 8, 8), 8), W.astype("float64"))),
    "x_shape must be a sequence of integers, not 8": (
        "conv_backward_data", lambda: (zeros((1, 4, 6, 6), 6), W, 8)),
}  # fmt: skip


def refusal(error, name, arguments, keywords):
    import convgrad_cy.dask as cd

    with pytest.raises(error) as raised:
        getattr(cd, name)(*arguments(), **keywords)
    return str(raised.value)


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message):
    assert refusal(ValueError, *REFUSED[message]) == message


@pytest.mark.parametrize("message", WRONG_TYPES)
def test_wrong_types(message):
    assert refusal(TypeError, *WRONG_TYPES[message], {}) == message


def test_chunks_are_never_changed():
    """A result must have a chunk for each chunk of the source."""
    import convgrad_cy.dask as cd

    x = zeros((4, 3, 64, 66), ((1, 3), (3,), (8, 40, 16), (32, 34)))
    y = cd.conv(x, W, stride=2, padding=1)
    assert y.chunks == ((1, 3), (4,), (4, 20, 8), (16, 17))
    assert cd.conv_backward_data(y, W, x.shape, stride=2, padding=1).chunks == x.chunks
