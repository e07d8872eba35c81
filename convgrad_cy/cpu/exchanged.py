"""Filters larger than y: the filter and y in each other's place.

A convolution commutes. Position p of y and tap t meet x at ``p * stride + t * dilation - pad``, in which p and t are
alike: with the filter in the place of y and y in that of the filter, stride is dilation, and dilation is stride. Then
channels of x are the batch, and the batch is what channels of x were (one axis is written)::

    dx[n, i, q] = sum over o, p, t of  dy[n, o, p] * w[o, i, t]    dgrad stays dgrad
     y[n, o, p] = sum over i, t of     x[n, i, .] * w[o, i, t]     fprop is wgrad, which sums over the batch i
    dw[o, i, t] = sum over n, p of     x[n, i, .] * dy[n, o, p]    wgrad is fprop, which sums over the channels n

A dgrad asks at each position of x for all taps. Those beyond y meet nothing: it has x * y products for each pair of
channels in the place of x * kernel. fprop and wgrad have as many as before, but long rows of taps for positions.

With padding, x may be smaller than the filter, too. A fprop of unit stride is a dgrad with x and y in each other's
place and the filter reversed. Exchanged, it has y * x products in the place of y * kernel.
"""

from dataclasses import replace
from math import prod
from operator import truediv
from typing import Any, NamedTuple

import numpy as np

from ..arrays import NUMPY
from ..problem import DGRAD, FPROP, TAP_LIMIT, WGRAD
from . import dgrad_costs, direct, scratch, small_groups
from .layouts import Axes, Reordered
from .patches import is_whole
from .reasons import Ratio, Reason
from .small_groups.refusal import MOST_TABLE, table_entries
from .task import Task

_OPERATIONS = {FPROP: WGRAD, WGRAD: FPROP, DGRAD: DGRAD}
_REVERSED = (..., *[slice(None, None, -1)] * 3)


def suits_lanes(problem):
    """Whether small groups side by side have a table of all taps."""
    _, height, width = problem.kernel
    return problem.groups > 1 and table_entries(height, width) <= MOST_TABLE


def _least_of_dgrad(task):
    """How many times as large as y the filter of a data gradient has to be."""
    tuning = task.machine.tuning
    return tuning.larger_filter_of_lanes if suits_lanes(task.problem) else tuning.least_larger_filter


def _is_reversed(task):
    """Whether x is so much smaller than the filter that a fprop is one, exchanged, of the filter reversed."""
    problem = task.problem
    if task.operation != FPROP or problem.stride != (1, 1, 1):
        return False
    return prod(problem.kernel) >= _least_of_dgrad(task) * prod(problem.x)


def _least(task):
    """How many taps for each position of y make the exchange faster."""
    problem, tuning = task.problem, task.machine.tuning
    if task.operation == DGRAD:
        # The channels of x were the outputs that fill a tile; images are then.
        fills = (min(count, task.machine.tile_rows) for count in (problem.x_channels, problem.batch))
        return _least_of_dgrad(task) * max(1.0, truediv(*fills)) ** 0.5
    fills = problem.groups == 1 or (task.operation == FPROP and suits_lanes(problem))
    return tuning.larger_filter if fills else tuning.least_larger_filter


def suits(task):
    """Why another family computes a task, or None."""
    operation, problem, *_ = task
    taps, positions, tuning = prod(problem.kernel), prod(problem.y), task.machine.tuning
    if taps <= min(positions, prod(problem.x)):
        return "the filter is not larger than y"
    if task.algorithm == "winograd":
        return "the call asks for the algorithm 'winograd'"
    if task.algorithm == "direct" and operation != WGRAD:  # images are channels here, and so decide about sums
        return "the call asks for the algorithm 'direct', by which an image has the bits that it has alone"
    if positions >= TAP_LIMIT:
        return Reason("y has {} positions or more", TAP_LIMIT)
    declined = scratch.refusal(_taken(task), problem, task.dtype.itemsize, task.machine.tile)
    if declined or _is_reversed(task):
        return declined
    if operation == DGRAD:
        if prod(problem.x) <= tuning.most_parts:
            few = "x has at most {} positions: of few, the sum itself leaves out the taps beyond y"
            return Reason(few, tuning.most_parts)
        # Only every stride-th tap meets a position, and every dilation-th position a tap.
        taps, positions = taps * prod(problem.dilation), positions * prod(problem.stride)
    elif problem.groups == 1 and positions == 1 and (operation == FPROP or is_whole(problem)):
        return "y has one position: taps are channels then"
    else:
        most = max(stride / kernel for stride, kernel in zip(problem.stride, problem.kernel, strict=True) if kernel > 1)
        overlap = tuning.least_exchanged_overlap if problem.groups == 1 else tuning.least_exchanged_overlap_of_groups
        if positions > 1 and most * overlap > 1:
            return Reason("the filter is less than {} times as large as the stride", overlap)
    if operation == DGRAD and problem.groups == 1:
        lanes = dgrad_costs.lanes_of(task.dtype)
        own, itself = (cost(problem, tuning, lanes) for cost in (dgrad_costs.exchanged, dgrad_costs.of_itself))
        slower = "it takes {:.2f} times as long as the sum itself"
        return None if own < itself else Reason(slower, Ratio(own, itself))
    least = _least(task)
    return None if taps >= least * positions else Reason("the filter is less than {:.1f} times as large as y", least)


def _taken(task):
    """Bytes at most of what ``_side_by_side`` copies, and of what the sum itself packs of the exchanged task.

    The first is x, or, of a filter reversed, y and that filter. The second is no copy of the filter: y is the filter of
    the exchanged task, or x of a filter reversed.
    """
    (operation, problem), reverses = task[:2], _is_reversed(task)
    x, filter, y = scratch.array_bytes(problem, task.dtype.itemsize)
    copied = 0 if problem.groups == 1 else y + filter if reverses else x
    other = exchanged_problem(reversed_problem(problem) if reverses else problem)
    asked = DGRAD if reverses else _OPERATIONS[operation], other, task.dtype, task.machine.tile
    return copied + max(family.most_shared(*asked) for family in (direct, small_groups))


def reversed_problem(problem):
    """The padding of the dgrad that computes a fprop of unit stride with its filter reversed."""
    pads = zip(problem.kernel, problem.dilation, problem.pad_begin, strict=True)
    return replace(
        problem,
        x_channels=problem.y_channels,
        y_channels=problem.x_channels,
        x=problem.y,
        y=problem.x,
        pad_begin=tuple((kernel - 1) * dilation - pad for kernel, dilation, pad in pads),
    )


def reversed_fprop(task):
    """A fprop of unit stride as that dgrad."""
    turned, (x, filter, y) = reversed_problem(task.problem), task.tensors
    tensors = y, filter.swapaxes(1, 2)[_REVERSED], x
    return task._replace(operation=DGRAD, problem=turned, places=task.places[::-1], tensors=tensors)


def exchanged_problem(problem):
    """The problem with the filter and y in each other's place."""
    return replace(
        problem,
        batch=problem.x_channels,
        x_channels=problem.batch,
        y=problem.kernel,
        kernel=problem.y,
        stride=problem.dilation,
        dilation=problem.stride,
    )


def exchanged(task):
    """The same task with the filter and y in each other's place."""
    (x, filter, y), (x_place, filter_place, y_place) = task.tensors, task.places
    return task._replace(
        operation=_OPERATIONS[task.operation],
        problem=exchanged_problem(task.problem),
        places=[x_place, y_place, filter_place],
        tensors=(x.swapaxes(0, 2), y.transpose(1, 2, 0, 3, 4, 5), filter.transpose(2, 0, 1, 3, 4, 5)),
    )


def _side_by_side(tensor):
    """An array like a tensor (N, G, C, D, H, W) in which the channels of all groups are one axis; it, if they are."""
    _, by_group, by_channel, *_ = tensor.strides
    _, groups, channels, *_ = tensor.shape
    if groups == 1 or channels == 1 or by_group == channels * by_channel:
        return tensor
    order = (0, 3, 4, 5, 1, 2)
    return NUMPY.empty(tuple(tensor.shape[axis] for axis in order), tensor.dtype).transpose(np.argsort(order))


def job(task, rest):
    """What others make of the task exchanged; for kernels of groups, the channels of all groups are one axis."""
    reverses = _is_reversed(task)
    task = task._replace(machine=scratch.left_by(task, _taken(task)))
    other = exchanged(reversed_fprop(task) if reverses else task)
    x, filter, y = other.tensors
    wanted = _side_by_side(x), filter, _side_by_side(y)
    work = Reordered.to(wanted, rest(other._replace(tensors=wanted)), other)
    return Exchanged(work, other, task.places[1] if reverses else None, Axes.of(task.tensors[1]))


class Exchanged(NamedTuple):
    """What computes a task by way of another one: as ``_repeat.Work``."""

    work: Any
    task: Task
    reversed: int | None  # the place of the filter among a call's arrays, if it is
    filter: Axes

    def ready(self):
        """Its work ready to run; where a filter is reversed, the same with it, and without the arrays of the task."""
        work = self.work.ready()
        return work if self.reversed is None else self._replace(work=work, task=None)

    def run(self, *arrays):
        """Write the result, as ``_repeat.Work.run`` does."""
        arrays = list(arrays)
        arrays[self.reversed] = self.filter.on(arrays[self.reversed])[_REVERSED]
        self.work.run(*arrays)
