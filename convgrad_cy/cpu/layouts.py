"""Arrays brought into another order in memory: before a kernel reads them, or after it wrote them."""

from collections.abc import Callable
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..arrays import NUMPY
from .kernels import compiled

#: The unsigned integers that stand for elements of a size.
_BITS = {2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}


class Axes(NamedTuple):
    """A view of an array, whatever its address: shape and strides, from its first element on."""

    shape: tuple
    strides: tuple

    @classmethod
    def of(cls, view):
        return cls(view.shape, view.strides)

    def on(self, array):
        return as_strided(array, self.shape, self.strides)

    def nested(self):
        """The stride of all axes taken as one, or None where they are not one in memory."""
        axes = [(size, stride) for size, stride in zip(*self, strict=True) if size > 1]
        if any(outer != size * inner for (_, outer), (size, inner) in pairwise(axes)):
            return None
        return axes[-1][1] if axes else 0


class Copier(NamedTuple):
    """Copies arrays of any strides, with the kernel ``rearrange`` of the module in use."""

    rearrange: Callable
    threads: int

    @classmethod
    def of(cls, threads):
        return cls(compiled.rearrange, threads)

    def copy(self, source, target):
        """target = source, with the axes in the order of the target's memory, and those that nest taken as one.

        Last but one comes the axis on which the source's elements are nearest: the kernel transposes these two.
        """
        if target.size == 0:
            return
        axes = []
        for _, size, source_stride, target_stride in sorted(
            (-abs(step), size, other, step)
            for size, other, step in zip(target.shape, source.strides, target.strides, strict=True)
            if size > 1
        ):
            if axes and axes[-1][1:] == (size * source_stride, size * target_stride):
                size *= axes.pop()[0]
            axes.append((size, source_stride, target_stride))
        nearest = min(range(len(axes)), key=lambda i: abs(axes[i][1]), default=0)
        if nearest < len(axes) - 2:
            axes.insert(-1, axes.pop(nearest))
        shape, *strides = zip(*[(1, 0, 0)] * (8 - len(axes)), *axes, strict=True)
        bits = _BITS[target.itemsize]
        views = [as_strided(array.view(bits), shape, row) for array, row in zip((source, target), strides, strict=True)]
        for part in zip(*views, strict=True):  # the kernel takes seven axes, as many as Cython's memoryviews have
            self.rearrange(*part, self.threads)


class Reordered(NamedTuple):
    """What computes a result from, or into, arrays of another order: as ``_repeat.Work``."""

    work: Any
    copier: Copier
    orders: tuple  # of those brought into it: the place among a call's arrays, and the axes before and after

    @classmethod
    def to(cls, wanted, work, threads, places, tensors):
        """From ``work`` on the tensors that are wanted; ``places`` says which of a call's arrays the tensors view."""
        together = zip(places, tensors, wanted, strict=True)
        changed = ((place, Axes.of(one), Axes.of(other)) for place, one, other in together if one is not other)
        return cls(work, Copier.of(threads), tuple(changed))

    def ready(self):
        """The same with its work ready to run."""
        return self._replace(work=self.work.ready())

    def run(self, first, second, result, before=None):
        """Write the result; ``before`` is called before that, when all memory is there."""
        arrays = [first, second, result]
        for place, given, ordered in self.orders:
            array = ordered.on(NUMPY.empty((prod(ordered.shape),), result.dtype))
            if place < 2:
                self.copier.copy(given.on(arrays[place]), array)
            arrays[place] = array
        self.work.run(*arrays, before)
        for place, given, _ in self.orders:
            if place == 2:
                self.copier.copy(arrays[2], given.on(result))
