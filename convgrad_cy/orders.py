"""Arrays brought into another order in memory: before a kernel reads them, or after it wrote them."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .arrays import NUMPY
from .tile_walks import skips

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

    def copy(self, source, target):
        """target = source, with the axes in the order of the target's memory, and those that nest taken as one."""
        axes = []
        for _, size, source_stride, target_stride in sorted(
            (-abs(step), size, other, step)
            for size, other, step in zip(target.shape, source.strides, target.strides, strict=True)
            if size > 1
        ):
            if axes and axes[-1][1:] == (size * source_stride, size * target_stride):
                size *= axes.pop()[0]
            axes.append((size, source_stride, target_stride))
        shape, *strides = zip(*[(1, 0, 0)] * (8 - len(axes)), *axes, strict=True)
        bits = _BITS[target.itemsize]
        views = [as_strided(array.view(bits), shape, row) for array, row in zip((source, target), strides, strict=True)]
        for part in zip(*views, strict=True):  # the kernel takes seven axes, as many as Cython's memoryviews have
            self.rearrange(*part, self.threads)


def _channels_last(tensor):
    """An array of a tensor's shape (N, G, C, D, H, W), whose channels are adjacent and positions are not."""
    shape = tensor.shape
    array = NUMPY.empty((shape[0], *shape[3:], shape[1] * shape[2]), tensor.dtype)
    return np.moveaxis(array.reshape(shape[0], *shape[3:], *shape[1:3]), (4, 5), (1, 2))


def gathered(operation, problem, tensors):
    """The tensors x, w and y; in the place of those whose adjacent positions are skipped, arrays with channels last.

    Elements that lie apart are read and written one by one, and each line of the cache again for every walk.
    """
    x, w, y = tensors
    skipped = [
        is_skipped and abs(tensor.strides[5]) < abs(tensor.strides[2]) and tensor.shape[2] > 1
        for is_skipped, tensor in zip(skips(operation, problem), (x, y), strict=True)
    ]
    return [_channels_last(x) if skipped[0] else x, w, _channels_last(y) if skipped[1] else y]


class Reordered(NamedTuple):
    """What computes a result from, or into, arrays of another order: as ``_repeat.Work``."""

    work: Any
    copier: Copier
    orders: tuple  # of those brought into it: the place among a call's arrays, and the axes before

    @classmethod
    def to(cls, wanted, work, copier, places, tensors):
        """From ``work`` on the tensors that are wanted; ``places`` says which of a call's arrays the tensors view."""
        together = zip(places, tensors, wanted, strict=True)
        return cls(work, copier, tuple((place, Axes.of(one)) for place, one, other in together if one is not other))

    def run(self, first, second, result):
        """Write the result."""
        arrays = [first, second, result]
        for place, axes in self.orders:
            before = axes.on(arrays[place])
            after = _channels_last(before)
            if place < 2:
                self.copier.copy(before, after)
            arrays[place] = after
        self.work.run(*arrays)
        for place, axes in self.orders:
            if place == 2:
                self.copier.copy(arrays[2], axes.on(result))
