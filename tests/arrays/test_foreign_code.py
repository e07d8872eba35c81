"""Code of the caller that runs within a call: it may refuse or lie, but no other memory may be read or written."""

import numpy as np
import pytest
from operations import bits

import convgrad_cy as cg

#: Setting a shape is deprecated since NumPy 2.5, and callers do it as long as it works.
sets_a_shape = pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")


class Liar(np.ndarray):
    """A subclass that claims another shape than its memory has."""

    claimed = (64, 64, 62, 62)

    def view(self, *args):
        return self

    shape = property(lambda self: self.claimed)
    ndim = property(lambda self: len(self.claimed))

    def transpose(self, *axes):
        return np.lib.stride_tricks.as_strided(np.asarray(self), self.claimed, (0,) * 4)


def test_subclass_that_lies():
    x, w = np.ones((64, 3, 64, 64), np.float32), np.ones((64, 3, 3, 3), np.float32)
    small = np.zeros((1, 1, 1, 1), np.float32).view(Liar)
    with pytest.raises(ValueError, match=r"^out must have the shape \(64, 64, 62, 62\), not \(1, 1, 1, 1\)$"):
        cg.conv(x, w, out=small)
    with pytest.raises(ValueError):
        cg.conv(small, w)
    honest = np.ones((1, 3, 5, 5), np.float32)
    result = cg.conv(honest.view(Liar), w)
    assert bits(result) == bits(cg.conv(honest, w))


def index_that(acts, number):
    class Index:
        def __index__(self):
            acts()
            return number

    return Index()


@sets_a_shape
def test_integer_that_reshapes_an_array():
    n = 256
    dy, w = np.ones((2, n, n, 8), np.float32)[::-1], np.ones((3, 3, 4, 8), np.float32)
    formats = {"data_format": "NXC", "filter_format": "XIO"}
    expected = cg.conv_backward_data(dy, w, (2, n + 2, n + 2, 4), **formats)

    def reshape():
        dy.shape = (2, n, 8, n)

    result = cg.conv_backward_data(dy, w, (index_that(reshape, 2), n + 2, n + 2, 4), **formats)
    assert bits(result) == bits(expected)


@sets_a_shape
def test_stride_that_reshapes_an_array():
    x, w = np.ones((1, 4, 8, 8), np.float32), np.ones((2, 4, 3, 3), np.float32)
    expected = cg.conv(x, w, stride=1)

    def reshape():
        x.shape, w.shape = (8, 8, 4, 1), (3, 3, 4, 2)

    assert bits(cg.conv(x, w, stride=index_that(reshape, 1))) == bits(expected)


@sets_a_shape
def test_sequence_that_reshapes_an_array():
    dy, w = np.ones((1, 2, 6, 6), np.float32), np.ones((2, 4, 3, 3), np.float32)
    expected = cg.conv_backward_data(dy, w, (1, 4, 8, 8))

    class Shape:
        def __len__(self):
            return 4

        def __getitem__(self, i):
            if i == 0:
                dy.shape, w.shape = (6, 6, 2, 1), (3, 3, 4, 2)
            return (1, 4, 8, 8)[i]

    assert bits(cg.conv_backward_data(dy, w, Shape())) == bits(expected)
    assert dy.shape == (6, 6, 2, 1)
