"""Filters larger than y: the filter and y are exchanged.

Position p of y and tap t meet x at ``p * stride + t * dilation - pad``. This formula is symmetric in p and t. So the
filter and y can be exchanged, if stride and dilation are exchanged too. The channels of x then become the batch, and
the batch becomes the channels of x (shown for one axis)::

    dx[n, i, q] = sum over o, p, t of  dy[n, o, p] * w[o, i, t]    dgrad stays dgrad
     y[n, o, p] = sum over i, t of     x[n, i, .] * w[o, i, t]     fprop is wgrad, which sums over the batch i
    dw[o, i, t] = sum over n, p of     x[n, i, .] * dy[n, o, p]    wgrad is fprop, which sums over the channels n

A dgrad computes all taps at each position of x, and most of them lie outside y. After the exchange, it has x * y
products for each pair of channels instead of x * kernel. fprop and wgrad keep their number of products, but their
positions are now the taps, which form long rows.

With padding, x may also be smaller than the filter. A fprop of unit stride is also a dgrad with x and y exchanged and
the filter reversed. If its filter and y are then exchanged, it has y * x products instead of y * kernel.
"""

from dataclasses import replace
from math import prod
from operator import truediv

from ...problem import DGRAD, FPROP, TAP_LIMIT, WGRAD
from .. import direct, small_groups
from ..plan import scratch
from ..plan.operand import Operand
from ..plan.reasons import Ratio, Reason
from ..plan.sum_problem import sum_problem_of
from ..small_groups.limits import has_table, suits_last
from . import dgrad_costs
from .copies import on_copies
from .folded_taps import is_dense

_OPERATIONS = {FPROP: WGRAD, WGRAD: FPROP, DGRAD: DGRAD}
_REVERSED = (..., *[slice(None, None, -1)] * 3)


def _least_of_dgrad(task):
    """Minimum ratio of taps to positions of y at which a data gradient is exchanged."""
    tuning = task.machine.tuning
    return tuning.larger_filter_of_lanes if has_table(task.problem) else tuning.least_larger_filter


def _is_reversed(task):
    """Whether x is so much smaller than the filter that fprop becomes a dgrad, which is then exchanged."""
    problem = task.problem
    if task.operation != FPROP or problem.stride != (1, 1, 1):
        return False
    return prod(problem.kernel) >= _least_of_dgrad(task) * prod(problem.x)


def _least(task):
    """Minimum ratio of taps to positions of y at which the exchange is faster."""
    problem, tuning = task.problem, task.machine.tuning
    if task.operation == DGRAD:
        # Channels of x fill the columns of a tile before the exchange, images after it.
        fills = (min(count, task.machine.tile_rows) for count in (problem.x_channels, problem.batch))
        return _least_of_dgrad(task) * max(1.0, truediv(*fills)) ** 0.5
    fills = problem.groups == 1 or (task.operation == FPROP and has_table(problem))
    return tuning.larger_filter if fills else tuning.least_larger_filter


def _is_left_to_small_groups(task):
    """Whether small groups are faster than the exchange, after which images are channels of their source.

    With one image, small groups also take the exchanged task, which is then faster. Data gradients of more channels of
    y than of x gain from the exchange, and so do sums of many taps, whose results leave the cache. A few images that
    are smaller than the filter gain earlier, because most taps meet padding. Data gradients gain from many taps only in
    groups of one channel, with images that are no smaller than the filter.
    """
    (operation, problem, dtype), tuning = task[:3], task.machine.tuning
    if problem.groups == 1 or problem.batch == 1:
        return False
    if operation == DGRAD and problem.x_channels < problem.y_channels:
        return False
    taps, larger = prod(problem.kernel), prod(problem.x) >= prod(problem.kernel)
    if operation == DGRAD:
        if larger and problem.x_channels == problem.y_channels == 1 and taps > tuning.most_depthwise_taps:
            return False
    else:
        few = problem.batch <= tuning.most_padded_images and not larger
        if taps * problem.x_channels > (tuning.most_padded_group_terms if few else tuning.most_group_terms):
            return False
    return suits_last(sum_problem_of(operation, problem, dtype, task.machine.tile, operation == DGRAD))


def refusal(task):
    """The reason why this family does not take a task, or None."""
    operation, problem, *_ = task
    taps, positions = prod(problem.kernel), prod(problem.y)
    if taps <= min(positions, prod(problem.x)):
        return "the filter is not larger than y"
    if task.algorithm == "winograd":
        return "the call asks for the algorithm 'winograd'"
    if task.algorithm == "direct" and operation != WGRAD:  # images become channels, so their number would affect sums
        return "with the algorithm 'direct', the bits of an image must not depend on the batch"
    if positions >= TAP_LIMIT:
        return Reason("y has {} positions or more", TAP_LIMIT)
    refused = None if _is_reversed(task) else _is_slower(task, taps, positions)
    return refused or scratch.refusal(_taken(task), problem, task.dtype.itemsize, task.machine.tile)


def _is_slower(task, taps, positions):
    """The reason why the exchanged task would be slower, or None."""
    operation, problem, tuning = task.operation, task.problem, task.machine.tuning
    if operation == DGRAD:
        if prod(problem.x) <= tuning.most_parts:
            few = "x has at most {} positions, so direct skips the taps outside y"
            return Reason(few, tuning.most_parts)
        # A position of x meets every stride-th tap; after the exchange, every dilation-th position of y. So the ratio
        # of products is (taps / stride) / (positions / dilation). Both are multiplied by stride * dilation.
        taps, positions = taps * prod(problem.dilation), positions * prod(problem.stride)
    elif problem.groups == 1 and positions == 1 and (operation == FPROP or is_dense(problem)):
        return "y has one position: taps are channels then"
    else:
        most = max(stride / kernel for stride, kernel in zip(problem.stride, problem.kernel, strict=True) if kernel > 1)
        overlap = tuning.least_exchanged_overlap if problem.groups == 1 else tuning.least_exchanged_overlap_of_groups
        if positions > 1 and most * overlap > 1:
            return Reason("the filter is less than {} times as large as the stride", overlap)
    if operation == DGRAD and problem.groups == 1:
        lanes = dgrad_costs.lanes_of(task.dtype)
        own, other = dgrad_costs.exchanged(problem, tuning, lanes), dgrad_costs.direct(task, lanes)
        slower = "it takes {:.2f} times as long as direct"
        return None if own < other else Reason(slower, Ratio(own, other))
    if _is_left_to_small_groups(task):
        return "small groups fill their vectors"
    least = _least(task)
    return None if taps >= least * positions else Reason("the filter is less than {:.1f} times as large as y", least)


def _taken(task):
    """Maximum bytes of the copies of ``_side_by_side`` and of the packed filter of the exchanged task.

    The copies are x, or, if the filter is reversed, y and the filter. The exchanged task's filter is y, or x if the
    filter is reversed.
    """
    (operation, problem), reverses = task[:2], _is_reversed(task)
    x, filter, y = scratch.array_bytes(problem, task.dtype.itemsize)
    copied = 0 if problem.groups == 1 else y + filter if reverses else x
    other = exchanged_problem(reversed_problem(problem) if reverses else problem)
    asked = DGRAD if reverses else _OPERATIONS[operation], other, task.dtype, task.machine.tile
    return copied + max(family.most_shared(*asked) for family in (direct, small_groups))


def reversed_problem(problem):
    """The problem of the dgrad with a reversed filter that computes a fprop of unit stride."""
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
    """A fprop of unit stride as the dgrad of ``reversed_problem``."""
    x, filter, y = task.operands
    operands = y, filter.with_view(filter.view.swapaxes(1, 2)[_REVERSED]), x
    return task._replace(operation=DGRAD, problem=reversed_problem(task.problem), operands=operands)


def exchanged_problem(problem):
    """The problem with the filter and y exchanged."""
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
    """The task with the filter and y exchanged."""
    x, filter, y = task.operands
    return task._replace(
        operation=_OPERATIONS[task.operation],
        problem=exchanged_problem(task.problem),
        operands=(
            x.with_view(x.view.swapaxes(0, 2)),
            y.with_view(y.view.transpose(1, 2, 0, 3, 4, 5)),
            filter.with_view(filter.view.transpose(2, 0, 1, 3, 4, 5)),
        ),
    )


def _side_by_side(operand):
    """A new operand (N, G, C, D, H, W) whose groups and channels form one axis; the operand itself if its own do."""
    _, by_group, by_channel, *_ = operand.view.strides
    _, groups, channels, *_ = operand.view.shape
    if groups == 1 or channels == 1 or by_group == channels * by_channel:
        return operand
    return Operand.new(operand.view.shape, operand.view.dtype, (0, 3, 4, 5, 1, 2))


def pipeline(task, rest):
    """The exchanged task, planned by the families in ``rest``. With groups, some arrays are copied."""
    reverses = _is_reversed(task)
    task = task._replace(machine=scratch.left_by(task, _taken(task)))
    other = exchanged(reversed_fprop(task) if reverses else task)
    x, filter, y = other.operands
    made = on_copies(other, (_side_by_side(x), filter, _side_by_side(y)), rest)
    of = "the filter reversed" if reverses else "the filter"
    how = Reason("{} of {}, with {} as its filter", other.operation, of, "x" if reverses else "y")
    return made.noted(computed_as=how)
