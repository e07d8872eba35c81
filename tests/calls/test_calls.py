"""The memory of calls: it is bounded, and no call gets the plan of another one."""

import threading
from collections import namedtuple
from itertools import permutations

import numpy as np
import pytest
import reference
from layouts import INPUTS, OUTPUTS, negative
from operations import DTYPES, dtype_of

import convgrad_cy as cg
from convgrad_cy import _repeat, calls, cpu
from convgrad_cy.checks import functions
from convgrad_cy.cpu import direct
from convgrad_cy.memo.bounded import ENTRY_BYTES, Bounded

RANDOM = np.random.default_rng(5)
X, W = RANDOM.integers(-4, 5, (2, 4, 5, 5)), RANDOM.integers(-4, 5, (6, 4, 3, 3))
Y = reference.fprop(X, W, (2, 6, 3, 3), stride=(1, 1), dilation=(1, 1), pad_begin=(0, 0), groups=1)
F4 = np.float32


def arrays(dtype="float32"):
    return X.astype(dtype_of(dtype)), W.astype(dtype_of(dtype))


@pytest.fixture
def few_known(monkeypatch):
    """Limit the memory to three calls, and empty it."""
    monkeypatch.setattr(calls, "_KNOWN", Bounded(4 * ENTRY_BYTES - 1))
    return calls._KNOWN


def test_a_call_like_an_earlier_one_is_not_checked_again(monkeypatch, few_known):
    x, w = arrays()
    first = cg.conv(x, w, padding=[1, 1])
    monkeypatch.setattr(functions, "geometry_of", None)
    np.testing.assert_array_equal(cg.conv(x, w, padding=(1, 1)), first)
    subclass = x.view(type("Subclass", (np.ndarray,), {}))
    np.testing.assert_array_equal(cg.conv(subclass, w, padding=(1, 1)), first)
    fields = namedtuple("Fields", ("height", "width"))
    np.testing.assert_array_equal(cg.conv(x, w, padding=fields(1, 1)), first)
    with pytest.raises(TypeError, match="not callable"):
        cg.conv(x, w, padding=(1, 2))


def test_a_tuple_that_says_otherwise(few_known):
    """A tuple that lies about its items must be read by its real ones, both to find the call and to compute it."""

    class Other(tuple):
        def __iter__(self):
            return iter((2, 2))

        def __getitem__(self, i):
            return 2

        def __len__(self):
            return 3

    x, w = arrays()
    assert cg.conv(x, w, padding=Other((1, 1))).shape == cg.conv(x, w, padding=(1, 1)).shape == (2, 6, 5, 5)
    assert len(few_known) == 1


@pytest.mark.parametrize("one, other", list(permutations(INPUTS, 2)), ids=lambda layout: layout.__name__)
def test_same_shapes_in_another_layout(one, other):
    x, w = arrays()
    for of_x, of_w in ((one, one), (other, one), (one, other), (other, other), (one, one)):
        np.testing.assert_array_equal(cg.conv(of_x(x), of_w(w)), Y)


@pytest.mark.parametrize("one, other", list(permutations(OUTPUTS, 2)), ids=lambda layout: layout.__name__)
def test_out_in_another_layout(one, other):
    x, w = arrays()
    for layout in (one, other, one):
        out = layout(np.full(Y.shape, 7, F4))
        assert cg.conv(x, w, out=out) is out
        np.testing.assert_array_equal(out, Y)
    np.testing.assert_array_equal(cg.conv(x, w), Y)


def test_same_strides_at_an_unaligned_address():
    x, w = arrays()
    unaligned = np.frombuffer(b"." + x.tobytes(), np.uint8)[1:].view(F4).reshape(x.shape)
    assert unaligned.strides == x.strides
    for array in (x, unaligned, x, unaligned):
        np.testing.assert_array_equal(cg.conv(array, w), Y)
    out = np.zeros(Y.size * 4 + 1, np.uint8)[1:].view(F4).reshape(Y.shape)
    cg.conv(x, w, out=np.zeros(Y.shape, F4))
    with pytest.raises(ValueError, match="out must be aligned"):
        cg.conv(x, w, out=out)


def test_same_shapes_in_another_dtype():
    for dtype in (*DTYPES, *reversed(DTYPES)):
        y = cg.conv(*arrays(dtype))
        assert y.dtype == dtype_of(dtype)
        np.testing.assert_array_equal(y.astype(np.int64), Y)


def test_same_shapes_in_another_function_or_format():
    x, w = np.arange(16.0).reshape(1, 2, 2, 4), np.arange(8.0).reshape(2, 2, 2, 1)
    z = x[:, ::-1].copy()
    variants = [
        lambda: cg.conv(x, w),
        lambda: cg.conv_transpose(x, w),
        lambda: cg.conv_transpose_backward_data(x, w),
        lambda: cg.conv_backward_data(x, w, (1, 2, 3, 4)),
        lambda: cg.conv_backward_data(x, w, (1, 2, 4, 8), stride=2),
        lambda: cg.conv_backward_data(x, w, (1, 2, 5, 8), stride=2),
        lambda: cg.conv_backward_filter(x, x, (2, 2, 1, 1)),
        lambda: cg.conv_transpose_backward_filter(x, x, (2, 2, 1, 1)),
        lambda: cg.conv_backward_filter(x, z * [[[[1]], [[2]]]], (2, 2, 1, 1)),
        lambda: cg.conv_transpose_backward_filter(x, z * [[[[1]], [[2]]]], (2, 2, 1, 1)),
        lambda: cg.conv(x, w, filter_format="XIO"),
        lambda: cg.conv(x, w, stride=2),
        lambda: cg.conv(x, w, stride=(1, 2)),
        lambda: cg.conv(x, w, padding="same_upper"),
        lambda: cg.conv(x, w, padding="same_lower"),
        lambda: cg.conv_transpose(x, w, stride=2),
        lambda: cg.conv_transpose(x, w, stride=2, output_padding=1),
    ]
    fresh = []
    for variant in variants:
        calls.forget()
        fresh.append(variant())
    for expected, variant in [*zip(fresh, variants, strict=True)] * 2:
        np.testing.assert_array_equal(variant(), expected)


def test_other_types_are_refused_after_these_were_accepted():
    """Other types must be refused after equal sizes were accepted: mixed dtypes, or a bool that equals an integer."""
    x, w = arrays()
    np.testing.assert_array_equal(cg.conv(x, w, stride=1, padding=(0, 0)), Y)
    for mixed in ((x.view(np.int32), w), (x, w.view(np.int32))):
        with pytest.raises(TypeError, match="int32"):
            cg.conv(*mixed, stride=1, padding=(0, 0))
    for keywords in ({"stride": True, "padding": (0, 0)}, {"stride": 1, "padding": (0, False)}):
        with pytest.raises(TypeError, match=r"must be an integer.*, not (True|False)"):
            cg.conv(x, w, **keywords)


@pytest.mark.skipif(not _repeat.has_openmp(), reason="built without OpenMP: there is one thread")
def test_other_numbers_of_threads_are_other_calls(monkeypatch, few_known):
    seen = []
    monkeypatch.setattr(direct, "make_plan", lambda *a, make=direct.make_plan: seen.append(a[4].threads) or make(*a))
    for number in (1, 3, 1, 3):
        with cg.num_threads(number):
            cg.conv(*arrays(), algorithm="direct")
    assert seen == [1, 3]


def test_out_is_refused_after_it_was_accepted():
    x, w = arrays()
    memory = np.zeros(X.size + Y.size, F4)
    memory[: X.size] = x.ravel()
    out = memory[X.size :].reshape(Y.shape)
    for _ in range(2):
        cg.conv(memory[: X.size].reshape(X.shape), w, out=out)
        np.testing.assert_array_equal(out, Y)
    with pytest.raises(ValueError, match=r"^out must not overlap x in memory$"):
        cg.conv(memory[1 : X.size + 1].reshape(X.shape), w, out=out)
    with pytest.raises(ValueError, match=r"^out must not overlap w in memory$"):
        cg.conv(x, memory[-W.size :].reshape(W.shape), out=out)
    out.flags.writeable = False
    with pytest.raises(ValueError, match=r"^out must be writeable, not a read-only array$"):
        cg.conv(x, w, out=out)


def test_keywords_that_are_not_remembered(few_known):
    """NumPy's integers, and a list that contains itself, must not be remembered."""
    x, w = arrays()
    assert cg.conv(x, w, padding=np.int64(1)).shape == (2, 6, 5, 5)
    endless = []
    endless.append(endless)
    for keyword, value in (("padding", endless), ("padding", [endless, endless]), ("stride", (endless, 1))):
        with pytest.raises((TypeError, ValueError), match=keyword):
            cg.conv(x, w, **{keyword: value})
    assert few_known.entries == {}


def test_refused_and_empty_calls_are_not_remembered(few_known):
    x, w = arrays()
    with pytest.raises(ValueError):
        cg.conv(x, w, stride=0)
    assert cg.conv(x[:0], w).shape == (0, 6, 3, 3)
    assert few_known.entries == {}


def test_not_without_end(few_known):
    w = np.ones((1, 1, 1), F4)
    sizes = []
    for size in (*range(1, 9), *range(1, 9)):
        np.testing.assert_array_equal(cg.conv(np.full((1, 1, size), 2, F4), w), np.full((1, 1, size), 2))
        sizes.append(len(few_known))
    assert max(sizes) == 3


def test_another_number_of_threads(monkeypatch):
    """Each number of threads must have its own plan: a forked process must not start a team."""
    x, w = (RANDOM.integers(-4, 5, shape).astype(F4) for shape in ((4, 32, 32, 32), (32, 32, 3, 3)))
    seen = []
    machine = cpu.this_machine
    monkeypatch.setattr(cpu, "this_machine", lambda *count: seen.append(*count) or machine(*count))
    monkeypatch.setattr(calls, "_KNOWN", Bounded())
    results = []
    for threads in (1, 2, 1, 2):
        with cg.num_threads(threads):
            results.append(cg.conv(x, w).tobytes())
    assert len(set(results)) == 1
    assert seen == sorted(set(seen))


def test_from_many_threads(few_known):
    """More calls than are remembered, from several threads at a time, must be correct."""
    x, w = arrays()
    wrong = []

    def work(first):
        for i in range(first, first + 200):
            rows = 3 + i % 3
            result = cg.conv(negative(x[:, :, -rows:]) if i % 2 else x[:, :, -rows:], w)
            if not np.array_equal(result, Y[:, :, 5 - rows :]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("dtype", ["V0", "V3", "S5", "M8[s]", "O", "g", "G", "?"])
def test_elements_that_no_kernel_knows(dtype):
    """Elements of no bytes, or of a size that is no power of two, must be handled."""
    array = np.empty((1, 1, 1), dtype)
    for _ in range(2):
        with pytest.raises(TypeError, match=r"^x must have a dtype among"):
            cg.conv(array, array, out=array)


def test_arrays_that_are_apart():
    """Arrays must count as apart by their addresses alone.

    Interleaved ones must not, although they share no element.
    """
    memory = np.arange(40)
    low, high = memory[:20], memory[20:]
    assert _repeat.are_apart(low, high, high) and _repeat.are_apart(high[::-1], low[::-1].reshape(4, 5), low[::3])
    for out, other in ((low, memory[19:]), (low[::-1], memory[5:6]), (memory[::2], memory[1::2]), (low, low)):
        assert not _repeat.are_apart(out, high, other) and not _repeat.are_apart(out, other, high)
        assert not _repeat.are_apart(other, out, high)


@pytest.mark.parametrize("writeable", [False, True])
def test_a_view_is_a_buffer(writeable):
    """A view must have the shape and strides of one array, and the memory of another; it is writable if that one is."""
    view = _repeat.View(1, 0, X.swapaxes(0, 1).reshape(4, 2, 1, 1, 5, 5))
    other = X + 1
    other.flags.writeable = writeable
    seen = np.asarray(_repeat.Seen(view, (None, other, None)))
    assert np.shares_memory(seen, other)
    assert seen.flags.writeable is writeable
    np.testing.assert_array_equal(seen, other.swapaxes(0, 1).reshape(4, 2, 1, 1, 5, 5))
    assert seen.strides == other.swapaxes(0, 1).reshape(4, 2, 1, 1, 5, 5).strides


def test_a_view_of_what_is_no_array():
    with pytest.raises(TypeError, match="NoneType"):
        _repeat.Seen(_repeat.View(0, 0, X.reshape(2, 1, 4, 1, 5, 5)), (None,))
