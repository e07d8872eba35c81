"""Copies of arrays into another memory order or type, before a kernel reads them or after it has written them."""

from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...arrays import NUMPY
from ...dtypes import TABLE, lookup
from ..machine.kernels import compiled

#: The unsigned integers as which elements of a size are copied.
_BITS = {2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}
#: The type as which kernels see all 16-bit types, and the type of their sums.
_HALF, _FLOAT = TABLE[0].view, np.dtype(np.float32)


class Axes(NamedTuple):
    """Shape and strides of a view, which can be applied to any array."""

    shape: tuple
    strides: tuple

    @classmethod
    def of(cls, view):
        return cls(view.shape, view.strides)

    def on(self, array):
        if not isinstance(array, np.ndarray):  # an address is an int, and as_strided would view that
            raise TypeError(f"array must be a numpy.ndarray, not {type(array).__name__}")
        return as_strided(array, self.shape, self.strides)

    def nested(self):
        """The stride of all axes merged into one, or None if memory does not allow it."""
        axes = [(size, stride) for size, stride in zip(*self, strict=True) if size > 1]
        if any(outer != size * inner for (_, outer), (size, inner) in pairwise(axes)):
            return None
        return axes[-1][1] if axes else 0


def _words(source, target):
    """Name of the kernel that copies elements of these sizes, and the types as which it sees source and target."""
    sizes = source.itemsize, target.itemsize
    if sizes[0] == sizes[1]:
        return "rearrange", [_BITS[sizes[0]]] * 2
    return "widen" if sizes[0] < sizes[1] else "narrow", [_HALF if size == 2 else _FLOAT for size in sizes]


class Copier(NamedTuple):
    """Copies arrays of any strides, with the kernels of the instruction set in use."""

    threads: int
    code: int | None = None  # code of a 16-bit type, if arrays are converted to float or from it

    def copy(self, source, target):
        """Copy source to target, with axes in the order of the target's memory. Axes that nest are merged.

        The axis with the source's smallest stride comes last but one: the kernel transposes the last two axes.
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
        kernel, types = _words(source, target)
        first = () if kernel == "rearrange" else (self.code,)
        each = zip((source, target), types, strides, strict=True)
        views = [as_strided(array.view(kind), shape, row) for array, kind, row in each]
        for part in zip(*views, strict=True):  # the kernel takes seven axes, the most that its memoryviews have
            getattr(compiled, kernel)(*first, *part, self.threads)


def widened(task):
    """The task in the type of its sums, on new arrays of the same memory order; unchanged if it has that type."""
    dtype = lookup(np.dtype(task.dtype.compute))
    if dtype is task.dtype:
        return task
    orders = [sorted(range(6), key=lambda axis: -abs(tensor.strides[axis])) for tensor in task.tensors]
    each = zip(task.tensors, orders, strict=True)
    made = [NUMPY.empty(tuple(tensor.shape[axis] for axis in order), dtype.view) for tensor, order in each]
    tensors = tuple(array.transpose(np.argsort(order)) for array, order in zip(made, orders, strict=True))
    return task._replace(dtype=dtype, tensors=tensors)


class Reordered(NamedTuple):
    """A work, like ``_repeat.Work``, that runs another work on copies of some arrays, in another order or type."""

    work: Any
    copier: Copier
    orders: tuple  # for each copied array: its index among a call's arrays, the axes before and after, the new type

    @classmethod
    def to(cls, wanted, work, task):
        """Wrap ``work`` on the tensors ``wanted``, copies of the task's tensors; returns ``work`` if none differs."""
        each = zip(task.places, task.tensors, wanted, strict=True)
        orders = [(place, Axes.of(own), Axes.of(one), one.dtype) for place, own, one in each if one is not own]
        return cls(work, Copier(task.machine.threads, task.dtype.code), tuple(orders)) if orders else work

    def ready(self):
        """This work with its inner work ready to run."""
        return self._replace(work=self.work.ready())

    def run(self, first, second, result, before=None):
        """Write the result. Before the first store, when all memory is allocated, ``before`` is called."""
        arrays = [first, second, result]
        for place, given, ordered, dtype in self.orders:
            array = ordered.on(NUMPY.empty((prod(ordered.shape),), dtype))
            if place < 2:
                self.copier.copy(given.on(arrays[place]), array)
            arrays[place] = array
        self.work.run(*arrays, before)
        for place, given, _, _ in self.orders:
            if place == 2:
                self.copier.copy(arrays[2], given.on(result))
