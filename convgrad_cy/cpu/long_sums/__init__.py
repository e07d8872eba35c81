"""Long sums of few outputs at few positions: vectors lie along the sum, and each operand is read in place.

In other families, the lanes of a vector are outputs or positions. If both are few, most lanes are empty. And copying x
to a window takes longer than the products: a dense layer of two outputs reads each element of x once. In
this family, the lanes of a vector are neighbours along one axis of the *sum*: channels, or the taps of one axis. If the
elements along this axis are not adjacent in memory, or have 16 bits, x and the filter are copied first. Each position
is multiplied by the filters of all outputs, and taps that meet padding are skipped.

The sum is divided into slices. Each is a task, and its part of the filter stays in the cache. The slices are added in
order.
"""

from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...problem import FPROP
from ..plan import scratch
from ..plan.job import Job
from ..plan.operand import Operand
from ..plan.pipeline import Pipeline
from ..plan.reasons import Reason
from ..plan.scratch import SCRATCH
from ..plan.threads import threads_of
from ..rewrites.copies import on_copies, widened
from ..small_groups.limits import has_table

#: Axes of a sum: channels, and taps of depth, height and width.
AXES = range(4)


class LongBlocks(NamedTuple):
    """The integers of ``LongBlocks`` of pyx/long_sums/sums.pxd, in the order of its fields.

    ``order``: the axes of a sum; vectors lie along the last one. ``piece``: maximum elements of a run along it.
    """

    order: tuple
    piece: int
    slices: int
    threads: int


def refusal(task):
    """The reason why this family does not take a task, or None."""
    problem, dtype, tuning = task.problem, task.dtype, task.machine.tuning
    if task.operation != FPROP:
        return "the operation is not forward"
    if task.algorithm == "winograd":
        return "the call asks for the algorithm 'winograd'"
    refused = problem_refusal(problem, tuning, _lanes(dtype, task.machine))
    return refused or scratch.refusal(_taken(task), problem, dtype.itemsize, task.machine.tile)


def _lanes(dtype, machine):
    """Lanes of a vector in the type of the sums."""
    return machine.vector_bytes // dtype.compute_itemsize


def problem_refusal(problem, tuning, lanes):
    """The reason why this family does not take a problem, or None. It does not depend on the batch."""
    terms, positions, outputs = prod(sizes(problem)), prod(problem.y), problem.y_channels
    least, products = tuning.least_long_terms, tuning.least_long_products
    axis = lane_axis(problem, tuning, lanes)
    if problem.groups > 1:
        least = min(least, tuning.least_long_terms_of_groups * outputs)
    elif axis == 0 and 1 < outputs <= tuning.most_long_outputs:  # the filter is copied, whatever the layout
        least = max(least, tuning.least_long_terms_of_outputs * outputs)
        products = tuning.least_copied_long_products
    if terms < least:
        return Reason("a sum has fewer than {} terms", least)
    if problem.groups * terms * outputs * positions < products:
        return Reason("an image has fewer than {} products", products)
    reads = positions * prod(problem.kernel) / prod(problem.x)
    lone = problem.groups > 1 and problem.x_channels == outputs == 1
    if lone and (has_table(problem) or reads > tuning.most_lone_reads):
        return "groups of one channel fill vectors side by side"
    if positions > tuning.most_long_positions:
        return Reason("y has more than {} positions", tuning.most_long_positions)
    few = outputs * positions <= tuning.most_long_sums and terms >= tuning.least_longest_terms
    if outputs > tuning.most_long_outputs and not few:
        return Reason("y has more than {} channels in a group", tuning.most_long_outputs)
    if reads > tuning.most_long_reads:
        return Reason("an element of x has more than {} products of each output", tuning.most_long_reads)
    if filled(problem, axis, lanes) < tuning.least_long_fill:
        return "no axis of the sum fills vectors"
    return None


def sizes(problem):
    """Sizes of the axes of a sum."""
    return problem.x_channels, *problem.kernel


def filled(problem, axis, lanes):
    """The share of lanes that the elements along an axis of the sum fill; 0 if dilation separates them in x."""
    size = sizes(problem)[axis]
    apart = axis > 0 and problem.dilation[axis - 1] > 1
    return 0 if apart else size / (-(-size // lanes) * lanes)


def lane_axis(problem, tuning, lanes):
    """The axis of the sum along which vectors lie: the longest axis that fills them; the last one of equal axes."""
    every, enough = sizes(problem), tuning.long_fill
    return max(AXES, key=lambda axis: (min(filled(problem, axis, lanes), enough), every[axis], axis))


def _taken(task):
    """Bytes of copies of x and the filter, of y in another type, and of the sums of all slices."""
    problem, dtype = task.problem, task.dtype
    x, filter, y = scratch.array_bytes(problem, dtype.compute_itemsize)
    slices = blocks_of(problem, dtype, task.machine).slices
    return x + filter + (y if dtype.itemsize != dtype.compute_itemsize else 0) + slices * y


def blocks_of(problem, dtype, machine):
    """The ``LongBlocks`` of a problem. Only the field ``threads`` depends on the batch and the number of threads."""
    tuning, lanes = machine.tuning, _lanes(dtype, machine)
    last = lane_axis(problem, tuning, lanes)
    order = (*(axis for axis in AXES if axis != last), last)
    terms, length = prod(sizes(problem)), sizes(problem)[last]
    wanted = -(-terms * problem.y_channels * dtype.compute_itemsize // tuning.long_slice_bytes)
    wanted = max(wanted, min(-(-tuning.wanted_tasks // problem.groups), terms // tuning.least_long_terms))
    piece = max(min(-(-length // lanes) * lanes, tuning.least_long_terms), lanes)
    units = prod(sizes(problem)[axis] for axis in order[:3]) * -(-length // piece)
    slices = -(-units // -(-units // max(1, wanted)))
    return LongBlocks(order, piece, slices, threads_of(problem, dtype.itemsize, machine))


def _adjacent(operand, axis):
    """The operand if its elements along ``axis`` are adjacent; otherwise a new operand in which they are."""
    view = operand.view
    if view.shape[axis] == 1 or view.strides[axis] == view.itemsize:
        return operand
    return Operand.new(view.shape, view.dtype, (*(other for other in range(view.ndim) if other != axis), axis))


def pipeline(task, rest=None):
    """One kernel: the ``Job`` of a task, on copies of x and the filter if vectors cannot be loaded from them."""
    dtype, (x, filter, y) = widened(task)
    blocks = blocks_of(task.problem, dtype, task.machine)
    axis = 2 + blocks.order[-1]
    order, *others = blocks
    plan = LongPlan(np.array(task.problem.forward_walk(), np.int64), np.array([*order, *others], np.int64), blocks)

    def job(own):
        return Pipeline((Job("sum_long", plan, own._replace(dtype=dtype), details),))

    return on_copies(task, (_adjacent(x, axis), _adjacent(filter, axis), y), job)


class LongPlan(NamedTuple):
    """The walk and the blocks of long sums as integers for the kernel, and the blocks by name."""

    steps: Any
    blocks: Any
    chosen: LongBlocks


def details(job):
    """Names and values about the job, for ``explain``."""
    problem, blocks = job.task.problem, job.plan.chosen
    sums = blocks.slices * problem.batch * problem.groups * problem.y_channels * prod(problem.y)
    return [
        ("kernel", job.kernel),
        ("vectors along", ("channels", "taps of depth", "taps of height", "taps of width")[blocks.order[-1]]),
        ("slices of a sum", blocks.slices),
        ("tasks", problem.groups * blocks.slices),
        ("threads", blocks.threads),
        ("copied", "nothing"),
        (SCRATCH, sums * job.task.dtype.compute_itemsize),
    ]
