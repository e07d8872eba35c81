"""``out`` of known calls with arrays of CuPy: only the places of the arrays are checked again."""

from itertools import product

import fake_cupy
import numpy as np
import pytest
from operations import integer_tensors
from problems import PROBLEMS
from sim.executor import COMPILER

import convgrad_cy as cg
from convgrad_cy import _repeat, calls
from convgrad_cy.arrays import reach
from convgrad_cy.calls import prepared

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile kernels for the simulator")

SAME = PROBLEMS["2d_same"]
F4 = np.float32


@pytest.fixture(autouse=True)
def cupy(monkeypatch):
    fake_cupy.install(monkeypatch)


def test_out_of_a_known_call_is_not_checked_again(monkeypatch):
    """``out`` must not be checked again: its requirements are in the key."""
    tensors, expected = integer_tensors(SAME, "float32")
    x, w, dy = map(fake_cupy.array, tensors)
    for _ in range(2):
        y, dx, dw = (fake_cupy.empty(array.shape, F4) for array in (dy, x, w))
        cg.conv(x, w, **SAME.keywords, out=y)
        cg.conv_backward(dy, x, w, **SAME.keywords, out=(dx, dw))
        for result, kernel in ((y, "fprop"), (dx, "dgrad"), (dw, "wgrad")):
            np.testing.assert_array_equal(result.get(), expected[kernel])
        for name in ("checked_out", "check_no_overlap", "geometry_of"):
            monkeypatch.setattr(calls.functions, name, None)


def test_out_of_a_known_call_that_overlaps():
    """An overlapping ``out`` must be refused, also with the key of an earlier call, which has equal alignment."""
    memory = fake_cupy.array(np.zeros(60, F4))
    shapes = {"dy": (1, 3, 4), "x": (1, 2, 5), "w": (3, 2, 2), "dx": (1, 2, 5), "dw": (3, 2, 2)}

    def both(**moved):
        places = {"dy": 0, "x": 12, "w": 22, "dx": 34, "dw": 44} | moved
        at = {name: memory[begin:][: int(np.prod(shapes[name]))] for name, begin in places.items()}
        dy, x, w, dx, dw = (at[name].reshape(shape) for name, shape in shapes.items())
        cg.conv_backward(dy, x, w, out=(dx, dw))

    def one(begin):
        x, w = memory[12:22].reshape(shapes["x"]), memory[22:34].reshape(shapes["w"])
        cg.conv(x, w, out=memory[begin : begin + 12].reshape(shapes["dy"]))

    both()
    one(0)
    known, launched = len(calls._KNOWN), len(fake_cupy.launches)
    for function, moved, message in (
        (both, {"dx": 10}, r"out\[0\] must not overlap dy"),
        (both, {"dx": 30}, r"out\[0\] must not overlap w"),
        (both, {"dw": 20}, r"out\[1\] must not overlap x"),
        (both, {"dw": 40}, r"out\[1\] must not overlap out\[0\]"),
        (one, {"begin": 4}, "out must not overlap x"),
        (one, {"begin": 32}, "out must not overlap w"),
    ):
        with pytest.raises(ValueError, match=f"^{message} in memory$"):
            function(**moved)
    assert len(fake_cupy.launches) == launched
    both(dw=0, dy=44)
    one(36)
    assert len(calls._KNOWN) == known


def test_outs_between_each_other():
    """Results that are interleaved must be accepted: they share no element."""
    tensors, expected = integer_tensors(SAME, "float32")
    x, w, dy = map(fake_cupy.array, tensors)
    memory = fake_cupy.empty((2 * max(x.size, w.size),), F4)
    for _ in range(2):
        dx, dw = (memory[i::2][: array.size].reshape(array.shape) for i, array in enumerate((x, w)))
        cg.conv_backward(dy, x, w, **SAME.keywords, out=(dx, dw))
        np.testing.assert_array_equal(dx.get(), expected["dgrad"])
        np.testing.assert_array_equal(dw.get(), expected["wgrad"])


def test_arrays_that_are_apart():
    """Arrays of CuPy must count as apart exactly if NumPy's arrays would."""
    memory = fake_cupy.array(np.zeros(24, F4))
    arrays = [memory[:8], memory[8:], memory[7::-1], memory[20:9:-3], memory[1::2].reshape(3, 4).transpose()]
    answers = []
    for first, second, out in product(arrays, repeat=3):
        answers.append(prepared.are_apart_on_gpu([*map(reach, (first, second, out))], (first, second, out), 2))
        assert answers[-1] == _repeat.are_apart(out.host, first.host, second.host)
    assert any(answers) and not all(answers)
