"""Data gradients of a small y and a large filter: one matrix product, whose columns are added (GEMM and col2im).

The sum over channels of y is the product of y (positions x channels) and the filter (channels x elements). It gives
each position a *column*: one value for each tap of each channel of x. Each value is then added at its position of x::

    columns[n, p, (c, t)] = sum over o of  dy[n, o, p] * w[o, c, t]
    dx[n, c, q] = sum over p, t of  columns[n, p, (c, t)]   where  p * stride + t * dilation - pad = q

These are y * kernel products for each pair of channels. The direct sum has x * kernel: at each position of x it takes
all taps, and most of them lie outside a small y. For few positions, the product reads the filter in place and once.

The elements of a column have the order of the filter's memory: (c, t), or (t, c) for a filter of the format XIO.
"""

from dataclasses import replace
from math import prod
from operator import truediv
from typing import Any, NamedTuple

import numpy as np

from ...arrays import NUMPY
from ...problem import DGRAD, even
from .. import winograd
from ..machine import LINE_BYTES
from ..machine.kernels import compiled
from ..plan import scratch
from ..plan.reasons import Ratio, Reason
from . import dgrad_costs
from .copies import Axes, Copier, Reordered, widened


def problem_refusal(problem, tuning, lanes, widens=False, pairs=False):
    """The reason why a data gradient is not formed from columns, or None."""
    if prod(problem.y) == 1:
        return "y has one position: taps are channels then"
    if problem.groups > tuning.most_column_groups:
        return Reason("there are more than {} groups", tuning.most_column_groups)
    axes = zip(problem.x, problem.y, problem.stride, strict=True)
    fewer = prod(truediv(x, positions * stride) for x, positions, stride in axes)
    if fewer < tuning.least_column_gain:
        few = "the sum itself has {:.2f} times as many products, less than {}"
        return Reason(few, fewer, tuning.least_column_gain)
    of_others = 2 * lanes if pairs else lanes  # a step with pairs takes half as long
    others = min(cost(problem, tuning, of_others) for cost in (dgrad_costs.of_itself, dgrad_costs.exchanged))
    own = dgrad_costs.by_columns(problem, tuning, lanes) + (dgrad_costs.widened(problem, tuning) if widens else 0)
    slower = "it takes {:.2f} times as long as the sum itself, or exchanged"
    return None if own < others else Reason(slower, Ratio(own, others))


def refusal(task):
    """The reason why this family does not take a task, or None."""
    problem, dtype = task.problem, task.dtype
    if task.operation != DGRAD:
        return "the operation is no data gradient"
    if task.algorithm == "winograd":
        return "the call asks for the algorithm 'winograd'"
    if task.algorithm == "direct":  # the number of images affects this choice
        return "the call asks for the algorithm 'direct', by which an image has the bits that it has alone"
    lanes = dgrad_costs.lanes_of(dtype)
    widens, pairs = dtype.itemsize != dtype.compute_itemsize, task.machine.tile.pairs(dtype)
    refused = problem_refusal(problem, task.machine.tuning, lanes, widens, pairs)
    refused = refused or scratch.refusal(_copied(task), problem, dtype.itemsize, task.machine.tile)
    if refused is None and winograd.refusal(task) is None:
        return "Winograd's algorithm has fewer products"
    return refused


def _copied(task):
    """Bytes of a part's columns and of all copies: the filter, x if there are several parts, all three if widened."""
    problem, itemsize = task.problem, task.dtype.compute_itemsize
    images, channels = part_of(problem, itemsize, task.machine.tuning)
    x, filter, y = scratch.array_bytes(problem, itemsize)
    copies = filter + (0 if images == problem.batch and channels == problem.x_channels else x)
    copies += 0 if task.dtype.itemsize == itemsize else x + filter + y
    return prod(_shape(problem, images, channels)) * itemsize + copies


def _shape(problem, images, channels):
    """Shape of the columns: (n, positions of each axis, g, elements). Kernels see all groups' channels as one axis."""
    return (images, *problem.y, problem.groups, channels * prod(problem.kernel))


def part_of(problem, itemsize, tuning):
    """(images, channels of x): the size of a part, whose columns are formed at a time."""
    channel = prod(_shape(problem, 1, 1)) * itemsize
    most = max(1, tuning.column_bytes // channel)
    if most >= problem.x_channels:
        return even(problem.batch, most // problem.x_channels), problem.x_channels
    return 1, even(problem.x_channels, most)


def pointwise(problem, images, channels):
    """The pointwise problem of a part: the elements of a column are the channels of its x."""
    ones = (1, 1, 1)
    return replace(
        problem,
        batch=images,
        x_channels=channels * prod(problem.kernel),
        x=problem.y,
        kernel=ones,
        stride=ones,
        dilation=ones,
        pad_begin=(0, 0, 0),
    )


def job(task, rest):
    """The matrix products, planned by the families in ``rest``, and the addition of their columns."""
    own = widened(task)
    return Reordered.to(own.tensors, _columned(own, rest, scratch.left_by(task, _copied(task))), task)


def _columned(task, rest, machine):
    """The job of a task whose arrays have the type of its sums; ``machine``: the machine for the products' plans."""
    problem, (x, filter, y), tuning = task.problem, task.tensors, task.machine.tuning
    images, channels = part_of(problem, task.dtype.itemsize, tuning)
    if layout(filter) == ColumnLayout(True, False) and prod(problem.y) <= problem.y_channels:
        channels = problem.x_channels  # all columns are no larger than the filter, which parts would have to copy
    found = layout(filter[:, :, :channels])
    parts, products = [], {}
    for n in range(0, problem.batch, images):
        for c in range(0, problem.x_channels, channels):
            part = ColumnSlice(
                slice(n, min(n + images, problem.batch)), slice(c, min(c + channels, problem.x_channels))
            )
            sizes = part.images.stop - n, part.channels.stop - c
            if sizes not in products:
                columns = NUMPY.empty(_shape(problem, *sizes), y.dtype)
                own = found.operand(filter[:, :, part.channels])
                tensors = np.moveaxis(columns, (-2, -1), (1, 2)), own, y[part.images]
                products[sizes] = rest(
                    task._replace(problem=pointwise(problem, *sizes), tensors=tensors, machine=machine)
                )
            parts.append((sizes, part))
    axes = (problem.x, problem.y, problem.kernel, problem.stride, problem.dilation, problem.pad_begin)
    adder = Adder(
        np.ascontiguousarray(np.transpose(np.array(axes, np.int64))),
        _block(task, found.channels_last, images, channels),
        found.channels_last,
        1 if problem.multiplications < tuning.serial_products else task.machine.threads,
    )
    size = prod(_shape(problem, images, channels))
    copier, tensors = Copier(task.machine.threads), (Axes.of(x), Axes.of(filter), Axes.of(y))
    return Columned(products, parts, adder, copier, tuple(task.places), size, task.dtype.code, tensors, found)


def _block(task, channels_last, images, channels):
    """Channels of a task, whose sums stay in L1; with channels last in L2, since long rows hide its latency."""
    problem, machine, itemsize = task.problem, task.machine, task.dtype.itemsize
    size = machine.l2_bytes if channels_last else machine.l1_bytes
    most = min(channels, size // 2 // (prod(problem.x) * itemsize))
    most = min(most, -(-channels * images * problem.groups // machine.threads))
    return even(channels, most, LINE_BYTES // itemsize if channels_last else 1)


class ColumnSlice(NamedTuple):
    """The part of x whose columns are formed at a time."""

    images: slice
    channels: slice  # of x


class ColumnLayout(NamedTuple):
    """Memory order of a column's elements in a filter (G, O, C, D, H, W), or in some of its channels."""

    channels_last: bool  # the order is (tap, channel)
    copied: bool  # the elements have no common stride, so the filter is copied

    def order(self, filter):
        """The filter with its channels and taps in the order of a column."""
        return np.moveaxis(filter, 2, -1) if self.channels_last else filter

    def operand(self, filter):
        """The filter of the pointwise problem, as a kernel views it, or new memory for its copy. Nothing is read."""
        view = self.order(filter)
        shape = (*view.shape[:2], prod(view.shape[2:]), 1, 1, 1)
        if self.copied:
            return NUMPY.empty(shape, filter.dtype)
        step = Axes(view.shape[2:], view.strides[2:]).nested()
        return Axes(shape, (*view.strides[:2], step, 0, 0, 0)).on(view)


def layout(filter):
    """The ``ColumnLayout`` of a filter."""
    for channels_last in (False, True):
        found = ColumnLayout(channels_last, False)
        view = found.order(filter)
        if Axes(view.shape[2:], view.strides[2:]).nested() is not None:
            return found
    return ColumnLayout(False, True)


class Adder(NamedTuple):
    """Arguments of ``add_columns`` of pyx/kernels.pyx, except its arrays."""

    axes: Any  # x, y, kernel, stride, dilation and padding of each axis, int64
    block: int  # channels of a task
    channels_last: bool  # the elements of a column are (tap, channel)
    threads: int


class Columned(NamedTuple):
    """A work, like ``_repeat.Work``, that computes a gradient with columns, for arrays of fixed shapes and strides."""

    products: dict  # the works of the pointwise problems, by (images, channels)
    parts: list  # pairs of (images, channels) and a ``ColumnSlice``
    adder: Adder
    copier: Copier
    places: tuple  # index of x, of the filter and of y among the arrays of a call
    elements: int  # elements of the columns of a part
    code: int  # code of their type
    tensors: tuple  # the axes of x, the filter and y
    layout: ColumnLayout

    def ready(self):
        """This work with its products ready to run."""
        return self._replace(products={sizes: product.ready() for sizes, product in self.products.items()})

    def run(self, first, second, result, before=None):
        """Write the result. Before the first store, when all memory is allocated, ``before`` is called.

        Several parts are first added in a copy of x, because the product of the last part still allocates memory.
        """
        arrays = [first, second, result]
        x, filter, y = (axes.on(arrays[place]) for axes, place in zip(self.tensors, self.places, strict=True))
        columns, several = NUMPY.empty((self.elements,), first.dtype), len(self.parts) > 1
        added = NUMPY.empty(x.shape, x.dtype) if several else x
        copy = NUMPY.empty((self._largest(filter),), x.dtype) if self.layout.copied else None
        for sizes, part in self.parts:
            own = filter[:, :, part.channels]
            if copy is not None:
                own = copy[: own.size].reshape(own.shape)
                self.copier.copy(filter[:, :, part.channels], own)
            for place, array in zip(self.places, (columns, own, y[part.images]), strict=True):
                arrays[place] = array
            self.products[sizes].run(*arrays)
            target = added[part.images, :, part.channels]
            compiled.add_columns(self.code, columns, target, *self.adder, None if several else before)
        if several:
            if before is not None:
                before()
            self.copier.copy(added, x)

    def _largest(self, filter):
        """Elements of the filter of the largest part."""
        return max(filter[:, :, part.channels].size for _, part in self.parts)
