"""Data gradients of a small y and a large filter by GEMM and col2im.

The product of y (positions x channels of y) and the filter (channels of y x elements) gives each position of y a
*column*: one value for each tap of each channel of x. Each value is then added to its position of x::

    columns[n, p, (c, t)] = sum over o of  dy[n, o, p] * w[o, c, t]
    dx[n, c, q] = sum over p, t of  columns[n, p, (c, t)]   where  p * stride + t * dilation - pad = q

This takes y * kernel multiplications for each pair of channels. The direct sum takes x * kernel: it computes all taps
at each position of x, and most of them lie outside a small y. With few positions, GEMM reads the filter once, in place.

The elements of a column have their order in the filter's memory: (c, t), or (t, c) for a filter of the format
(spatial..., in, out).
"""

from dataclasses import replace
from math import prod
from operator import truediv
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..._repeat import array_at
from ...problem import DGRAD, balanced_size
from .. import winograd
from ..machine import LINE_BYTES, MATRICES
from ..machine.kernels import compiled
from ..plan import scratch
from ..plan.operand import Operand
from ..plan.pipeline import Loop, Pipeline, joined
from ..plan.reasons import Ratio, Reason
from ..plan.sum_problem import sum_problem_of
from ..plan.threads import threads_of
from ..small_groups.limits import suits_last
from . import dgrad_costs, overlaps
from .copies import Copy, on_copies, widened
from .views import nested


def refusal(task):
    """The reason why this family does not take a task, or None."""
    if task.operation != DGRAD:
        return "the operation is no data gradient"
    if task.algorithm == "winograd":
        return "the call asks for the algorithm 'winograd'"
    if task.algorithm == "direct":  # the number of images affects this choice
        return "with the algorithm 'direct', the bits of an image must not depend on the batch"
    refused = _is_slower(task)
    refused = refused or scratch.refusal(_copied(task), task.problem, task.dtype.itemsize, task.machine.tile)
    if refused is None and winograd.refusal(task) is None:
        return "Winograd's algorithm has fewer products"
    return refused


def _is_slower(task):
    """The reason why columns would be slower than direct or exchanged, or None."""
    problem, dtype, tuning = task.problem, task.dtype, task.machine.tuning
    pairs, lanes = task.machine.tile.pairs(dtype), dgrad_costs.lanes_of(dtype)
    if prod(problem.y) == 1:
        return "y has one position: taps are channels then"
    if pairs == MATRICES:
        return "tile registers form all products sooner"
    if problem.groups > tuning.most_column_groups:
        return Reason("there are more than {} groups", tuning.most_column_groups)
    axes = zip(problem.x, problem.y, problem.stride, strict=True)
    fewer = prod(truediv(x, positions * stride) for x, positions, stride in axes)
    if fewer < tuning.least_column_gain:
        few = "direct has {:.2f} times as many products, less than {}"
        return Reason(few, fewer, tuning.least_column_gain)
    if fewer < tuning.least_gain_over_cells and overlaps.problem_refusal(problem, tuning) is None:
        return "cells of x have nearly as few products, and need no additions"
    if problem.groups > 1 and suits_last(sum_problem_of(DGRAD, problem, dtype, task.machine.tile, True)):
        return "small groups fill their vectors"
    own = dgrad_costs.by_columns(problem, tuning, lanes)
    if dtype.itemsize != dtype.compute_itemsize:  # all arrays are copied to the type of the sums
        own += dgrad_costs.widening(problem, tuning)
    of_others = 2 * lanes if pairs else lanes  # with pairs, a tile computes two products in the same time
    others = min(dgrad_costs.exchanged(problem, tuning, of_others), dgrad_costs.direct(task, of_others))
    slower = "it takes {:.2f} times as long as direct, or exchanged"
    return None if own < others else Reason(slower, Ratio(own, others))


def _copied(task):
    """Bytes of the columns of one part and of all copies.

    The filter is copied, x too if there are several parts, and all three arrays if they are widened.
    """
    problem, itemsize = task.problem, task.dtype.compute_itemsize
    images, channels = part_of(problem, itemsize, task.machine.tuning)
    x, filter, y = scratch.array_bytes(problem, itemsize)
    copies = filter + (0 if images == problem.batch and channels == problem.x_channels else x)
    copies += 0 if task.dtype.itemsize == itemsize else x + filter + y
    return prod(_shape(problem, images, channels)) * itemsize + copies


def _shape(problem, images, channels):
    """Shape of the columns: (n, positions of each axis, g, elements)."""
    return (images, *problem.y, problem.groups, channels * prod(problem.kernel))


def part_of(problem, itemsize, tuning):
    """(images, channels of x): the size of a part. The columns of one part are in memory at a time."""
    channel = prod(_shape(problem, 1, 1)) * itemsize
    most = max(1, tuning.column_bytes // channel)
    if most >= problem.x_channels:
        return balanced_size(problem.batch, most // problem.x_channels), problem.x_channels
    return 1, balanced_size(problem.x_channels, most)


def pointwise(problem, images, channels):
    """The problem of one tap whose dgrad is the GEMM of a part: the elements of a column are the channels of its x."""
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


def pipeline(task, rest):
    """The matrix products, planned by the families in ``rest``, and the addition of their columns."""
    dtype, operands = widened(task)
    machine = scratch.left_by(task, _copied(task))
    made = on_copies(task, operands, lambda own: _columns(own._replace(dtype=dtype), rest, machine))
    if dtype is not task.dtype:
        made = made.noted(copied=Reason("{}; all three arrays, in the type of the sums", made.notes["copied"]))
    return made


def _columns(task, rest, machine):
    """The pipeline of a task whose arrays have the type of its sums. ``machine``: the machine of inner tasks."""
    problem, (x, filter, y), tuning = task.problem, task.operands, task.machine.tuning
    images, channels = part_of(problem, task.dtype.itemsize, tuning)
    if layout(filter.view) == ColumnLayout(True, False) and prod(problem.y) <= problem.y_channels:
        # One part: the columns of all channels are no larger than the filter, which several parts would have to copy.
        # This does not affect the result's bits: with one tap, any part adds the channels of y one by one.
        channels = problem.x_channels
    found, threads = layout(filter.view[:, :, :channels]), task.machine.threads
    adder = Adder(
        np.ascontiguousarray(np.transpose(np.array(_axes_of(problem), np.int64))),
        _block(task, found.channels_last, images, channels),
        found.channels_last,
        threads_of(problem, task.dtype.itemsize, task.machine),
    )
    parts = [
        (slice(n, min(n + images, problem.batch)), slice(c, min(c + channels, problem.x_channels)))
        for n in range(0, problem.batch, images)
        for c in range(0, problem.x_channels, channels)
    ]
    columns = Operand.new((prod(_shape(problem, images, channels)),), y.view.dtype)
    copy = Operand.new((filter.view[:, :, :channels].size,), y.view.dtype) if found.copied else None
    added = Operand.new(x.view.shape, x.view.dtype) if len(parts) > 1 else x
    parts_of_sizes = {}  # parts of equal sizes differ only in where their operands begin
    for part in parts:
        parts_of_sizes.setdefault(tuple([each.stop - each.start for each in part]), []).append(part)
    made = []
    for sizes, alike in parts_of_sizes.items():
        each = [_operands_of(part, added, filter, y) for part in alike]
        target, whole, read = each[0]
        shape = _shape(problem, *sizes)
        own_columns, own, copies = columns.view[: prod(shape)].reshape(shape), whole, ()
        if copy is not None:
            own = copy.with_view(copy.view[: whole.view.size].reshape(whole.view.shape))
            copies = (Copy(whole, own, threads),)
        taps = own.with_view(found.operand(own.view))
        operands = columns.with_view(np.moveaxis(own_columns, (-2, -1), (1, 2))), taps, read
        inner = task._replace(problem=pointwise(problem, *sizes), operands=operands, machine=machine)
        product = rest(inner).between(copies, (Addition(columns, target, adder, task.dtype.code),))
        if len(alike) > 1:
            distances = tuple([_distances(each[0], other) for other in each])
            product = product._replace(steps=(Loop(product.steps, distances),))
        made.append(product)
    if len(parts) > 1:  # x is written after the last part, which is the last step that allocates memory
        made.append(Pipeline((Copy(added, x, threads),)))
    notes = {"parts": len(parts), "channels_of_x_that_are_added_at_a_time": adder.block}
    copied = "x, which is added from columns" + (", and the filter" if found.copied else "")
    return joined(made).noted(**notes, copied=copied)


def _operands_of(part, x, filter, y):
    """Operands for x, the filter and y of a part (images, channels of x)."""
    images, channels = part
    return (
        x.with_view(x.view[images, :, channels]),
        filter.with_view(filter.view[:, :, channels]),
        y.with_view(y.view[images]),
    )


def _distances(first, other):
    """Pairs (memory, bytes): the distance from each operand of the first part to the same operand of another part."""
    return tuple([(one.memory, two.offset - one.offset) for one, two in zip(first, other, strict=True)])


def _axes_of(problem):
    return problem.x, problem.y, problem.kernel, problem.stride, problem.dilation, problem.pad_begin


def _block(task, channels_last, images, channels):
    """Channels of x that a task adds. Their sums stay in L1.

    With channels last, they stay in L2 instead: rows of channels are long, which hides its latency.
    """
    problem, machine, itemsize = task.problem, task.machine, task.dtype.itemsize
    size = machine.l2_bytes if channels_last else machine.l1_bytes
    most = min(channels, size // 2 // (prod(problem.x) * itemsize))
    most = min(most, -(-channels * images * problem.groups // machine.threads))
    return balanced_size(channels, most, LINE_BYTES // itemsize if channels_last else 1)


class ColumnLayout(NamedTuple):
    """Memory order of a column's elements in a filter (G, O, C, D, H, W), or in a slice of its channels."""

    channels_last: bool  # the order is (tap, channel), otherwise (channel, tap)
    copied: bool  # the filter is copied first, because its elements do not have one stride in either order

    def order(self, filter):
        """The filter with its channels and taps in the order of a column."""
        return np.moveaxis(filter, 2, -1) if self.channels_last else filter

    def operand(self, filter):
        """A view of the filter, or of its copy, as the filter of the pointwise problem."""
        view = self.order(filter)
        shape, step = (*view.shape[:2], prod(view.shape[2:]), 1, 1, 1), nested(view.shape[2:], view.strides[2:])
        return as_strided(view, shape, (*view.strides[:2], step, 0, 0, 0))


def layout(filter):
    """The ``ColumnLayout`` of a filter."""
    for channels_last in (False, True):
        found = ColumnLayout(channels_last, False)
        view = found.order(filter)
        if nested(view.shape[2:], view.strides[2:]) is not None:
            return found
    return ColumnLayout(False, True)


class Adder(NamedTuple):
    """Arguments of ``add_columns`` of pyx/kernels.pyx, except its arrays."""

    axes: Any  # x, y, kernel, stride, dilation and padding of each axis, int64
    block: int  # channels of a task
    channels_last: bool  # the elements of a column have the order (tap, channel)
    threads: int


class Addition(NamedTuple):
    """A step that adds columns to their positions of x (col2im)."""

    columns: Operand
    target: Operand
    adder: Adder
    code: int  # the code of their type

    allocates = True  # its kernel does

    @property
    def operands(self):
        return self.columns, self.target

    def jobs(self):
        return []

    def ready(self, indices):
        ends = [
            (indices.get(memory, memory), offset, (view.shape, view.strides, view.dtype))
            for memory, offset, view in self.operands
        ]
        return Adding(ends, self.adder, self.code)


class Adding(NamedTuple):
    """An ``Addition``, ready to run."""

    ends: list  # for columns and target: index of the address, offset, layout (an array would keep its memory)
    adder: Adder
    code: int

    def run_on(self, addresses, before=None):
        arrays = [array_at(addresses[index] + offset, *layout) for index, offset, layout in self.ends]
        compiled.add_columns(self.code, *arrays, *self.adder, before)
