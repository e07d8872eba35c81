"""Steps that copy operands to another memory order or type, or fill them with zeros."""

from typing import Any, NamedTuple

import numpy as np

from ..._repeat import array_at
from ...dtypes import TABLE, lookup
from ..machine.kernels import compiled
from ..plan.operand import Operand
from ..plan.task import WRITERS

#: Size of an element in bytes -> the unsigned integer type that copies its bits.
_BITS = {2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}
#: Kernels address elements of all 16-bit types as the first type. Their sums have the second.
_HALF, _FLOAT = TABLE[0].view, np.dtype(np.float32)


def _words(source, target):
    """The kernel that copies elements of these types, and the element types that it uses for source and target."""
    sizes = source.itemsize, target.itemsize
    if sizes[0] == sizes[1]:
        return "rearrange", [_BITS[sizes[0]]] * 2
    return "widen" if sizes[0] < sizes[1] else "narrow", [_HALF if size == 2 else _FLOAT for size in sizes]


class Copy(NamedTuple):
    """A step that copies an operand to another one. It runs a kernel for the instruction set in use."""

    source: Operand
    target: Operand
    threads: int
    code: int | None = None  # the code of a 16-bit type, if elements are converted from it to float, or back

    allocates = False

    @property
    def operands(self):
        return self.source, self.target

    def jobs(self):
        return []

    def ready(self, indices):
        """The copy, with axes in the order of the target's memory. Axes that are contiguous with the next are merged.

        The axis with the source's smallest stride comes last but one, because the kernel transposes the last two axes.
        """
        source, target = self.source.view, self.target.view
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
        ends = [
            (indices.get(operand.memory, operand.memory), operand.offset, steps[0], (shape[1:], steps[1:], kind))
            for operand, steps, kind in zip(self.operands, strides, types, strict=True)
        ]
        first = () if kernel == "rearrange" else (self.code,)
        return Copying(getattr(compiled, kernel), first, shape[0] if target.size else 0, ends, self.threads)


class Copying(NamedTuple):
    """A ``Copy``, ready to run. Its kernel takes seven axes, the maximum of memoryviews; ``run_on`` loops over one."""

    kernel: Any
    first: tuple  # the kernel's first arguments
    parts: int  # size of the eighth axis
    ends: list  # for source and target: index of the address, offset, stride of the eighth axis, the other axes
    threads: int

    def run_on(self, addresses, before=None):
        if before is not None:
            before()
        (source, at_source, source_step, of_source), (target, at_target, target_step, of_target) = self.ends
        for part in range(self.parts):
            begin = (
                addresses[source] + at_source + part * source_step,
                addresses[target] + at_target + part * target_step,
            )
            views = array_at(begin[0], *of_source), array_at(begin[1], *of_target)
            self.kernel(*self.first, *views, self.threads)


class Zeros(NamedTuple):
    """A step that fills an operand with zeros."""

    target: Operand
    allocates = False

    @property
    def operands(self):
        return (self.target,)

    def jobs(self):
        return []

    def ready(self, indices):
        memory, offset, view = self.target
        return Filling(indices.get(memory, memory), offset, (view.shape, view.strides, view.dtype))


class Filling(NamedTuple):
    """A ``Zeros``, ready to run."""

    index: int  # of the target's address
    offset: int
    layout: tuple  # shape, strides and dtype. An array here would keep its memory allocated.

    def run_on(self, addresses, before=None):
        if before is not None:
            before()
        array_at(addresses[self.index] + self.offset, *self.layout)[...] = 0


def on_copies(task, wanted, plan):
    """The pipeline of a task that ``plan(task)`` plans on copies of some operands.

    ``wanted``: for x, w and y the task's own operand, or a new one that replaces it. A new operand has another memory
    order or type. New inputs are filled by copies before the plan's steps. A new result is copied back after them.
    """
    copied = [(i, pair) for i, pair in enumerate(zip(task.operands, wanted, strict=True)) if pair[0] is not pair[1]]
    made, written = plan(task._replace(operands=tuple(wanted))), WRITERS.index(task.operation)
    if not copied:
        return made

    def copy(source, target):
        return Copy(source, target, task.machine.threads, task.dtype.code)

    copies_in = [copy(own, other) for i, (own, other) in copied if i != written]
    copies_out = [copy(other, own) for i, (own, other) in copied if i == written]
    return made.between(copies_in, copies_out)


def widened(task):
    """(type, operands): the type of the task's sums, and x, w and y in this type.

    The operands are the task's own if they have this type already. Otherwise they are new operands of the same memory
    order; ``on_copies`` adds the copies to them and from them.
    """
    dtype = lookup(np.dtype(task.dtype.compute))
    if dtype is task.dtype:
        return dtype, task.operands
    orders = [sorted(range(6), key=lambda axis: -abs(tensor.strides[axis])) for tensor in task.tensors]
    each = zip(task.tensors, orders, strict=True)
    return dtype, tuple([Operand.new(tensor.shape, dtype.view, order) for tensor, order in each])
