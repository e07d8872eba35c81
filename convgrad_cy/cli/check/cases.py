"""The layers of the check and their data.

They reach each family of kernels (tests/cli/test_check.py), in 1-D, 2-D and 3-D. The command ``explain`` shows the
family that computes a layer.
"""

from functools import cache
from typing import NamedTuple
from zlib import crc32

import numpy as np

from ..problem_text import parse
from . import reference
from .storage import STORAGES

#: Small layers, in the syntax of ``explain --problem``.
SMALL = (
    'mb2ic3iw17oc5kw4sw2pw1n"one_axis"',
    'mb2ic8ih9oc13kh3ph1n"kernel_3x3"',
    'mb2ic33ih5oc17kh1n"kernel_1x1"',
    'mb2ic3ih16oc8kh7sh2ph3n"first_layer"',
    'mb2ic4ih6oc6kh2sh2n"kernel_2x2_stride_2"',
    'mb2ic3ih12oc4kh3sh2dh1ph2n"stride_and_dilation"',
    'mb2ic3ih7oh4oc4kh3sh2ph0n"padding_at_the_end"',
    'mb2g4ic16ih7oc16kh3ph1n"groups_of_four"',
    'mb2g35ic35ih6oc35kh3sh2ph1n"depthwise_stride_2"',
    'mb1ic3id5ih4iw6oc4kd3kh2kw1n"three_axes"',
    'mb1ic600ih3oc3kh3ph1n"long_sums"',
)
#: Layers with enough products for several threads and for Winograd's algorithm.
LARGE = (
    'mb4ic24ih24oc40kh3ph1n"winograd"',
    'mb2ic32ih20oc32kh17n"large_kernel"',
    'mb2ic3ih64oc192kh16sh16n"patches"',
    'mb2ic1iw4096oc160ow13kw1024sw256n"overlapping_patches"',
    'mb4g48ic48ih28oc48kh5ph2n"depthwise"',
)
#: The kernel that makes each tensor.
KERNELS = {"y": "fprop", "x": "dgrad", "w": "wgrad"}


class Tensors(NamedTuple):
    """x, w and y of a layer, in NCX and OIX."""

    x: np.ndarray
    w: np.ndarray
    y: np.ndarray

    def map(self, function):
        return Tensors(*map(function, self))


class Case(NamedTuple):
    """A layer. All of its sums have exact integers if its data are `integers`."""

    problem: object
    is_large: bool

    @property
    def shapes(self):
        return Tensors(self.problem.x_shape, self.problem.w_shape, self.problem.y_shape)

    def terms(self, tensor):
        """The largest number of products of an element of x, w or y."""
        problem, (_, outputs, *positions) = self.problem, self.problem.y_shape
        taps = np.prod(problem.kernel)
        counts = {
            "y": problem.w_shape[1] * taps,
            "x": outputs // problem.groups * taps,
            "w": problem.batch * np.prod(positions),
        }
        return int(counts[tensor])

    def results(self, tensors):
        """The results of the definition, each from the two other tensors, in float64 or int64."""
        made = {}
        for letter, kernel in KERNELS.items():
            operands = {"y": (tensors.x, tensors.w), "x": (tensors.y, tensors.w), "w": (tensors.x, tensors.y)}[letter]
            shape = getattr(self.shapes, letter)
            made[letter] = getattr(reference, kernel)(*operands, shape, **self.problem.geometry)
        return Tensors(**made)


CASES = tuple(Case(parse(text), text in LARGE) for text in (*SMALL, *LARGE))


def _random(case, purpose):
    return np.random.default_rng([crc32(case.problem.name.encode()), crc32(purpose.encode())])


class Integers(NamedTuple):
    """Integers, as numbers, and the exact results."""

    tensors: Tensors
    exact: Tensors


@cache
def integers(case, is_float):
    """Small integers, whose sums are exact in float32; for int32, integers of the whole range."""
    random, limit = _random(case, "integers"), 4 if is_float else 2**31 - 1
    tensors = case.shapes.map(lambda shape: random.integers(-limit, limit, shape, endpoint=True))
    with np.errstate(over="ignore"):
        return Integers(tensors, case.results(tensors))


class Reals(NamedTuple):
    """Normally distributed numbers of a type, as float64; the results, and the sums of the products' magnitudes."""

    tensors: Tensors
    exact: Tensors
    magnitudes: Tensors


@cache
def reals(case, name):
    random, storage = _random(case, "reals"), STORAGES[name]
    tensors = case.shapes.map(lambda shape: storage.read(storage.store(random.standard_normal(shape))))
    return Reals(tensors, case.results(tensors), case.results(tensors.map(np.abs)))


class Spoilt(NamedTuple):
    """Small integers with one NaN or infinity, as float64, and whether each element of the results is finite."""

    tensors: Tensors
    finite: Tensors


@cache
def spoilt(case, letter, value):
    """The `integers` with ``value`` in the middle of one tensor."""
    tensors = integers(case, True).tensors.map(np.float64)
    place = tuple(size // 2 for size in getattr(case.shapes, letter))
    getattr(tensors, letter)[place] = value
    with np.errstate(invalid="ignore"):
        return Spoilt(tensors, case.results(tensors).map(np.isfinite))
