"""Data gradients of a small y under a large filter: a product of matrices, whose columns are added (GEMM and col2im).

The sum over channels of y is a product of y (positions x channels) and the filter (channels x elements), which leaves
each position a *column*: what it has for each tap of each channel of x. Then each is added where its tap lies::

    columns[n, p, (c, t)] = sum over o of  dy[n, o, p] * w[o, c, t]
    dx[n, c, q] = sum over p, t of  columns[n, p, (c, t)]   where  p * stride + t * dilation - pad = q

These are y * kernel products for each pair of channels. The sum itself asks at each position of x for all taps, most of
which lie beyond a small y: x * kernel. And of few positions the product reads the filter where it is, once.

The elements of a column are in the order of the filter's memory: (c, t), or (t, c) for a filter of the format XIO.
"""

from dataclasses import replace
from math import prod
from operator import truediv
from typing import Any, NamedTuple

import numpy as np

from ..arrays import NUMPY
from ..problem import DGRAD, even
from . import scratch, winograd
from .kernels import compiled
from .layouts import Axes, Copier
from .machines import LINE_BYTES


def refusal(problem, tuning):
    """Why a data gradient is not formed from columns, or None."""
    if prod(problem.y) == 1:
        return "y has one position: taps are channels then"
    if problem.batch > tuning.most_column_images:
        return f"there are more than {tuning.most_column_images} images"
    if problem.x_channels * problem.y_channels < tuning.least_column_pairs:
        return f"there are fewer than {tuning.least_column_pairs} pairs of channels in a group"
    least, gain = _least(problem, tuning), _gain(problem, tuning)
    return (
        None if gain >= least else f"it has to be {least:.1f} times as fast as the sum itself, and is {gain:.2f} times"
    )


def _least(problem, tuning):
    """The least gain: the sum itself does leave out what it can, the more the more often it multiplies by one tap."""
    dilations = [dilation for taps, dilation in zip(problem.kernel, problem.dilation, strict=True) if taps > 1]
    return tuning.least_column_gain ** len(dilations) * (2 * problem.batch - 1) * prod(dilations) ** 0.5


def _gain(problem, tuning):
    """How many times as fast, if the sum itself left out no product beyond y."""
    axes = zip(problem.x, problem.y, problem.stride, strict=True)
    asked = prod(truediv(x, positions * stride) for x, positions, stride in axes) * problem.multiplications
    added = tuning.column_products + truediv(tuning.column_row_products, problem.kernel[2])
    own = problem.multiplications * (1 + truediv(added, problem.y_channels))
    return asked / (own + tuning.column_call_products)


def suits(task):
    """Why another family computes a task, or None."""
    problem, dtype = task.problem, task.dtype
    if task.operation != DGRAD:
        return "the operation is no data gradient"
    if task.algorithm == "winograd":
        return "the call asks for the algorithm 'winograd'"
    if task.algorithm == "direct":  # how many images there are decides, too
        return "the call asks for the algorithm 'direct', by which an image has the bits that it has alone"
    if dtype.itemsize != dtype.compute_itemsize:
        return f"columns of {dtype.name} would be rounded before they are added"
    declined = refusal(problem, task.machine.tuning)
    declined = declined or scratch.refusal(_copied(task), problem, dtype.itemsize, task.machine.tile)
    if declined is None and winograd.suits(task) is None:
        return "Winograd's algorithm has fewer products"
    return declined


def _copied(task):
    """Bytes of the columns and, if need be, of a copy of the filter."""
    problem, itemsize = task.problem, task.dtype.itemsize
    return prod(_shape(problem)) * itemsize + scratch.array_bytes(problem, itemsize)[1]


def _shape(problem):
    """Of the columns: (n, positions of each axis, g, elements). Kernels take the channels of all groups as one axis."""
    return (problem.batch, *problem.y, problem.groups, problem.x_channels * prod(problem.kernel))


def pointwise(problem):
    """The problem whose x has the elements of a column as channels."""
    ones = (1, 1, 1)
    return replace(
        problem,
        x_channels=problem.x_channels * prod(problem.kernel),
        x=problem.y,
        kernel=ones,
        stride=ones,
        dilation=ones,
        pad_begin=(0, 0, 0),
    )


def job(task, rest):
    """The product of matrices, which others plan, and what adds its columns."""
    problem, (x, filter, y) = task.problem, task.tensors
    found = layout(filter)
    columns, machine = NUMPY.empty(_shape(problem), y.dtype), task.machine.spending(_copied(task))
    tensors = np.moveaxis(columns, (-2, -1), (1, 2)), found.operand(filter), y
    inner = rest(task._replace(problem=pointwise(problem), tensors=tensors, machine=machine))
    axes = (problem.x, problem.y, problem.kernel, problem.stride, problem.dilation, problem.pad_begin)
    adder = Adder(
        np.ascontiguousarray(np.transpose(np.array(axes, np.int64))),
        _block(task, found.channels_last),
        found.channels_last,
        1 if problem.multiplications < task.machine.tuning.serial_products else task.machine.threads,
    )
    copier, places = Copier.of(task.machine.threads), tuple(task.places[:2])
    return Columned(inner, adder, copier, places, columns.size, task.dtype.code, Axes.of(x), found)


def _block(task, channels_last):
    """Channels of a task, whose sums stay in the cache: a row of many adjacent ones hides that of the second level."""
    problem, machine, itemsize = task.problem, task.machine, task.dtype.itemsize
    size = machine.l2_bytes if channels_last else machine.l1_bytes
    most = min(problem.x_channels, size // 2 // (prod(problem.x) * itemsize))
    tasks = problem.batch * problem.groups
    most = min(most, -(-problem.x_channels * tasks // machine.threads))
    return even(problem.x_channels, most, LINE_BYTES // itemsize if channels_last else 1)


class Layout(NamedTuple):
    """How a filter (G, O, C, D, H, W) has the elements of a column."""

    channels_last: bool  # they are (tap, channel)
    filter: Axes  # (G, O, elements), or with these in axes of their own where it is copied
    copied: bool  # they do not follow each other at one distance

    def operand(self, filter):
        """The filter of the pointwise problem, as a kernel views it; no memory is read."""
        shape = (*self.filter.shape[:2], prod(self.filter.shape[2:]), 1, 1, 1)
        return NUMPY.empty(shape, filter.dtype) if self.copied else self.filter.on(filter).reshape(shape)


def layout(filter):
    """The ``Layout`` of a filter."""
    for channels_last, view in ((False, filter), (True, np.moveaxis(filter, 2, -1))):
        step = Axes(view.shape[2:], view.strides[2:]).nested()
        if step is not None:
            return Layout(
                channels_last, Axes((*view.shape[:2], prod(view.shape[2:])), (*view.strides[:2], step)), False
            )
    return Layout(False, Axes.of(filter), True)


class Adder(NamedTuple):
    """What ``add_columns`` of pyx/kernels.pyx is told beside its arrays."""

    axes: Any  # x, y, kernel, stride, dilation and padding of each axis, int64
    block: int  # channels of a task
    channels_last: bool  # in an element of a column
    threads: int


class Columned(NamedTuple):
    """What computes a gradient by way of columns, for arrays of certain shapes and strides: as ``_repeat.Work``."""

    product: Any  # the work of the pointwise problem
    adder: Adder
    copier: Copier
    places: tuple  # of x and of the filter among the arrays of a call
    elements: int  # of all columns
    code: int  # of their type
    x: Axes
    layout: Layout

    def ready(self):
        """The same with its product ready to run."""
        return self._replace(product=self.product.ready())

    def run(self, first, second, result, before=None):
        """Write the result; ``before`` is called before that, when all memory is there."""
        arrays, (x_place, filter_place) = [first, second, result], self.places
        x = self.x.on(arrays[x_place])
        if self.layout.copied:
            filter = self.layout.filter.on(arrays[filter_place])
            arrays[filter_place] = NUMPY.empty(filter.shape, first.dtype)
            self.copier.copy(filter, arrays[filter_place])
        columns = arrays[x_place] = NUMPY.empty((self.elements,), first.dtype)
        self.product.run(*arrays)
        compiled.add_columns(self.code, columns, x, *self.adder, before)
