"""Places of elements of NumPy arrays: arrays that share memory, and arrays that kernels can read in place."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import convgrad_cy as cg
from convgrad_cy.arrays import is_addressable, overlap, places


def hard_pair():
    """Two arrays for which NumPy cannot tell quickly whether they share an element: an example of its manual."""
    memory = np.zeros(192_163_377, np.int8)
    first = as_strided(memory, strides=(36674, 61119, 85569), shape=(1049, 1049, 1049))
    return first, as_strided(memory[64_023_025:], strides=(12223, 12224, 1), shape=(1049, 1049, 1))


def test_what_cannot_be_decided_counts_as_overlap():
    first, second = hard_pair()
    with pytest.raises(RuntimeError):
        np.shares_memory(first, second, max_work=places._OVERLAP_WORK)
    assert overlap(first, second)


def test_an_undecided_out_is_refused(monkeypatch):
    """An out that is interleaved with x shares no element. If NumPy cannot tell this quickly, it must be refused."""
    memory, w = np.ones(200, np.float32), np.ones((1, 1, 1), np.float32)
    x, out = memory[::2].reshape(1, 1, 100), memory[1::2].reshape(1, 1, 100)
    assert cg.conv(x, w, out=out) is out
    monkeypatch.setattr(places, "_OVERLAP_WORK", 0)
    with pytest.raises(ValueError, match=r"^out must not overlap x in memory$"):
        cg.conv(x, w, out=out)


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    (
        ((1, 4, 3), (7, 32, 4), True),  # nothing steps along an axis of one element
        ((4, 1, 3), (32, -5, 4), True),
        ((4, 3, 1), (32, 4, 3), True),
        ((2, 4, 3), (192, 32, 8), True),
        ((2, 4, 3), (130, 32, 8), False),
    ),
)
def test_axes_of_one_element_have_any_stride(shape, strides, expected):
    array = as_strided(np.zeros(128, np.float32), shape, strides)
    if expected:
        assert array.flags.aligned and not array.flags.c_contiguous
    assert is_addressable(array) == expected
