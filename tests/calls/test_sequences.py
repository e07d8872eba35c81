"""The sequences that may hold strides, paddings and shapes: each is read once, and not without end."""

from array import array
from collections import deque, namedtuple
from collections.abc import Sequence
from itertools import count

import numpy as np
import pytest

import convgrad_cy as cg

F4 = np.float32
RANDOM = np.random.default_rng(4)
X, W, Y = (RANDOM.integers(-4, 5, shape).astype(F4) for shape in ((2, 3, 9, 8), (4, 3, 3, 2), (2, 4, 7, 7)))


class Registered(Sequence):
    def __init__(self, values):
        self.values = list(values)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        return self.values[i]


class Shape:
    """A shape like TensorFlow's: it is no Sequence, and without values its rank is unknown."""

    def __init__(self, values=None):
        self.values = values

    def __len__(self):
        return len(list(iter(self)))

    def __getitem__(self, i):
        return self.values[i]

    def __iter__(self):
        if self.values is None:
            raise ValueError("cannot iterate over a shape of unknown rank")
        return iter(self.values)


class Indexed:
    """A sequence without an iterator, as in old Python."""

    def __init__(self, values):
        self.values, self.read = values, []

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        self.read.append(i)
        return self.values[i]


class Endless(Indexed):
    def __iter__(self):
        return count(1)


class Subclass(list):
    pass


def as_fields(values):
    return namedtuple("Fields", [f"axis_{i}" for i in range(len(values))])(*values)


#: Forms that hold sequences as well as integers.
FORMS = {
    "list": list,
    "list's subclass": Subclass,
    "namedtuple": as_fields,
    "NumPy's integers": lambda values: [np.int16(v) if isinstance(v, int) else v for v in values],
    "deque": deque,
    "Sequence": Registered,
    "TensorShape": Shape,
    "indexed": Indexed,
    "int64": np.array,
}
#: Forms that hold integers only.
FLAT_FORMS = {"uint8": lambda values: np.array(values, np.uint8), "array": lambda values: array("i", values)}


@pytest.mark.parametrize("form", (FORMS | FLAT_FORMS).values(), ids=FORMS | FLAT_FORMS)
def test_forms(form):
    """Each form must be accepted instead of a tuple, for each keyword and each shape."""
    for keyword, value in (("stride", (2, 1)), ("dilation", (1, 3)), ("padding", (1, 2))):
        np.testing.assert_array_equal(cg.conv(X, W, **{keyword: form(value)}), cg.conv(X, W, **{keyword: value}))
    pairs = [form((1, 0)), form((0, 2))]
    for padding in (pairs, form(pairs)) if form in FORMS.values() else (pairs,):
        np.testing.assert_array_equal(cg.conv(X, W, padding=padding), cg.conv(X, W, padding=((1, 0), (0, 2))))
    np.testing.assert_array_equal(cg.conv_backward_data(Y, W, form(X.shape)), cg.conv_backward_data(Y, W, X.shape))
    np.testing.assert_array_equal(cg.conv_backward_filter(X, Y, form(W.shape)), cg.conv_backward_filter(X, Y, W.shape))
    for name, value in (("output_padding", (1, 0)), ("output_shape", (2, 3, 16, 14))):
        expected = cg.conv_transpose(Y, W, stride=2, **{name: value})
        np.testing.assert_array_equal(cg.conv_transpose(Y, W, stride=2, **{name: form(value)}), expected)


def test_ranges():
    expected = cg.conv(X, W, stride=(1, 2), padding=(0, 1))
    np.testing.assert_array_equal(cg.conv(X, W, stride=range(1, 3), padding=range(2)), expected)
    dx = cg.conv_backward_data(np.ones((3, 1, 4), F4), np.ones((1, 4, 2), F4), range(3, 6))
    assert dx.shape == (3, 4, 5)


@pytest.mark.torch
def test_shapes_of_torch():
    torch = pytest.importorskip("torch")
    dy, w = torch.from_numpy(Y), torch.from_numpy(W)
    expected = cg.conv_backward_data(Y, W, X.shape)
    for shape in (torch.Size(X.shape), torch.tensor(X.shape), torch.tensor(X.shape).numpy()):
        np.testing.assert_array_equal(cg.conv_backward_data(dy, w, shape).numpy(), expected)
    np.testing.assert_array_equal(cg.conv(X, W, stride=torch.tensor(2)), cg.conv(X, W, stride=2))
    with pytest.raises(TypeError, match=r"not an array of shape \(2, 4, 7, 7\): give its shape$"):
        cg.conv_backward_data(dy, w, dy)


def test_each_member_is_read_once():
    stride, shape, pairs = Indexed([1, 1]), Indexed(X.shape), [Indexed([0, 0]), Indexed([0, 0])]
    padding = Indexed(pairs)
    cg.conv_backward_data(Y, W, shape, stride=stride, padding=padding)
    for read in (stride, padding, *pairs):
        assert read.read == [0, 1, 2]  # the last index finds the end
    assert shape.read == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("keyword", ("stride", "dilation", "padding", "output_padding", "output_shape"))
def test_without_end(keyword):
    with pytest.raises(ValueError, match=rf"^{keyword} must have .*, not <"):
        cg.conv_transpose(Y, W, **{keyword: Endless([1, 1])})


def test_members_that_change_their_sequence():
    """An integer that changes its sequence while it is read must be too late."""

    class Index:
        def __index__(self):
            stride.extend([1] * 9)
            return 2

    stride = [Index(), 1]
    np.testing.assert_array_equal(cg.conv(X, W, stride=stride), cg.conv(X, W, stride=(2, 1)))
    assert len(stride) == 11


@pytest.mark.parametrize("value", (Shape(), {1, 2}, iter([1, 1]), bytearray(2)))
def test_refused(value):
    with pytest.raises(TypeError, match=r"^stride must be an integer or one for each spatial axis, not "):
        cg.conv(X, W, stride=value)
    with pytest.raises(TypeError, match=r"^x_shape must be a sequence of integers, not "):
        cg.conv_backward_data(Y, W, value)


def test_a_pair_for_one_axis():
    """A pair for one axis must be refused: meant as causal padding, it would be one integer for each of two axes."""
    x, w = X[:, :, 0], W[:, :, 0]
    for pair in ((2, 0), [2, 0], np.array([2, 0])):
        with pytest.raises(ValueError, match=r": a \(begin, end\) pair of one axis is \(\(2, 0\),\)$"):
            cg.conv(x, w, padding=pair)
    np.testing.assert_array_equal(cg.conv(x, w, padding=((2, 0),)), cg.conv(np.pad(x, ((0, 0), (0, 0), (2, 0))), w))
    for keyword, value in (("stride", (2, 1)), ("padding", (2, 0, 0)), ("padding", ())):
        with pytest.raises(ValueError, match=rf"^{keyword} must have one entry for each spatial axis, 1, not \(.*\)$"):
            cg.conv(x, w, **{keyword: value})
