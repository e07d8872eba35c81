"""Data gradients of few channels with kernels at least as large as their stride: patches of x touch or overlap.

The elements of x within one stride become the channels of a *cell* (space-to-depth). On cells, the gradient is the
gradient of a convolution of unit stride, and each tap reaches all elements of a cell (shown for one axis)::

    cells[n, b, (c, r)] = sum over o, m of  dy[n, o, b - m] * w[o, c, m * stride + r]
    dx[n, c, b * stride + r - pad] = cells[n, b, (c, r)]

Elements r < kernel % stride have one tap more than the others. So each axis has up to two *parts*, and each combination
of parts is one gradient. No zero is added for a tap that does not exist. With a stride, the product of each phase has
few outputs: the channels of x. The product on cells has prod(stride) times as many, with sums of the same length. It
costs a copy of x and usually a copy of the filter.

If x consists of patches, one for each position of y, a cell is a patch, and its gradient is a matrix product. Then the
filter is often read in place. The elements of a cell have the order (c, r) or (r, c), which does not affect the
result's bits.
"""

from dataclasses import replace
from itertools import pairwise, product
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...problem import DGRAD
from ..plan import scratch
from ..plan.operand import Operand
from ..plan.pipeline import joined
from ..plan.reasons import Reason
from .copies import Copy, Zeros
from .folded_taps import has_patches_on
from .views import nested

#: Axes of cells (n, b, b, b, c, r, r, r), and (n, b, b, b, r, r, r, c), in the order (n, c, b, r, b, r, b, r).
_CHANNELS_FIRST, _CHANNELS_LAST = (0, 4, 1, 5, 2, 6, 3, 7), (0, 7, 1, 4, 2, 5, 3, 6)


class CellPart(NamedTuple):
    """Elements ``begin`` to ``end`` (exclusive) of a cell along one axis; ``taps`` taps reach each of them."""

    begin: int
    end: int
    taps: int

    @property
    def size(self):
        return self.end - self.begin


def parts_of(kernel, stride):
    """The parts of an axis."""
    taps, rest = divmod(kernel, stride)
    return [CellPart(0, rest, taps + 1)] * (rest > 0) + [CellPart(rest, stride, taps)]


def has_patches(problem):
    """Whether x consists of patches, one for each position of y."""
    return all(has_patches_on(problem, axis) for axis in range(3))


def problem_refusal(problem, tuning):
    """The reason why a data gradient is not computed on cells, or None."""
    if problem.multiplications < tuning.serial_products:
        return Reason("there are fewer than {} products", tuning.serial_products)
    if problem.groups > 1:
        return "there are groups"
    if problem.x_channels > tuning.most_patch_channels:
        return Reason("x has more than {} channels", tuning.most_patch_channels)
    if problem.dilation != (1, 1, 1):
        return "the filter is dilated"
    return _refusal_of_patches(problem, tuning) if has_patches(problem) else _refusal_of_overlaps(problem, tuning)


def _refusal_of_patches(problem, tuning):
    if problem.kernel == (1, 1, 1):
        return "a patch has one position"
    products = tuning.least_patch_products * problem.x_channels
    return Reason("an element has fewer than {} products", products) if problem.y_channels < products else None


def _refusal_of_overlaps(problem, tuning):
    axes = [parts_of(kernel, stride) for kernel, stride in zip(problem.kernel, problem.stride, strict=True)]
    if any(part.taps == 0 for parts in axes for part in parts):
        return "the kernel is smaller than the stride"
    products = tuning.least_overlapped_products * problem.x_channels
    if problem.y_channels * prod(problem.kernel) < products * prod(problem.stride):
        return Reason("an element has fewer than {} products", products)
    most, least = (problem.x_channels * prod(end(part.size for part in parts) for parts in axes) for end in (max, min))
    wanted, everywhere = tuning.least_cell_elements, tuning.least_elements_of_all_parts
    if most < wanted and least < everywhere:
        return Reason("a cell has a part of fewer than {} elements, and none of {} or more", everywhere, wanted)
    return None


def refusal(task):
    """The reason why this family does not take a task, or None."""
    if task.operation != DGRAD:
        return "the operation is no data gradient"
    if task.algorithm == "winograd":
        return "the call asks for the algorithm 'winograd'"
    refused = problem_refusal(task.problem, task.machine.tuning)
    return refused or scratch.refusal(_copied(task), task.problem, task.dtype.itemsize, task.machine.tile)


def stepped(problem):
    """The problem with its kernel as the stride, if x consists of patches, otherwise unchanged.

    On an axis where y has one position, any stride has the same effect, but cells must have the kernel's size.
    """
    return replace(problem, stride=problem.kernel) if has_patches(problem) else problem


def combinations(problem):
    """The combinations of the parts of all axes, in a fixed order."""
    return product(*map(parts_of, problem.kernel, problem.stride))


def _copied(task):
    """Bytes of the cells and taps of all combinations."""
    problem = stepped(task.problem)
    every = [inner_problem(problem, parts) for parts in combinations(problem)]
    elements = [prod(shape) for inner in every for shape in inner_shapes(inner)]
    return sum(elements) * task.dtype.itemsize


def pipeline(task, rest, patches=None):
    """The gradients on cells, with copies of the filter before them and of x after them.

    ``rest`` plans the gradient of each combination of parts. It is called once for each of ``combinations``, in order.
    ``patches``: whether cells are patches; by default, the task's problem decides.
    """
    patches = has_patches(task.problem) if patches is None else patches
    problem, (x, filter, y) = stepped(task.problem) if patches else task.problem, task.operands
    task, threads = task._replace(machine=scratch.left_by(task, _copied(task))), task.machine.threads
    last = abs(x.view.strides[2]) < abs(x.view.strides[5])
    inside, after = [], [Zeros(x.with_view(x.view[:, 0][behind])) for behind in unreached(problem)]
    for parts in combinations(problem):
        inner = inner_problem(problem, parts)
        taps, last = taps_in_place(inner, filter) if patches else (None, last)
        shapes = inner_shapes(inner)
        elements = elements_of(problem.x_channels, [part.size for part in parts], last)
        cells = Operand.new((inner.batch, *inner.x, *elements), y.view.dtype)
        copies = []
        if taps is None:
            made = Operand.new((inner.y_channels, *inner.kernel, *elements), y.view.dtype)
            copies = [Copy(filter.with_view(in_cells(filter.view, problem, parts, last)), made, threads)]
            taps = made.with_view(np.moveaxis(made.view.reshape(shapes[1]), -1, 2))
        six = cells.with_view(np.moveaxis(cells.view.reshape(shapes[0]), -1, 2))
        inside.append(rest(task._replace(problem=inner, operands=(six, taps, y))).between(copies))
        after += stores(problem, parts, inner, cells, x, last, threads)
    of_x = "x from patches" if patches else "x from cells"
    notes = {"copied": of_x + ", and the filter" if copies else of_x}
    if len(inside) > 1:
        notes["parts_of_a_cell"] = len(inside)
    return joined(inside).between((), after, **notes)


def inner_problem(problem, parts):
    """The problem of unit stride that computes ``parts`` of all cells; its x has cells as positions."""
    taps = tuple(part.taps for part in parts)
    return replace(
        problem,
        x_channels=problem.x_channels * prod(part.size for part in parts),
        x=tuple(y + count - 1 for y, count in zip(problem.y, taps, strict=True)),
        kernel=taps,
        stride=(1, 1, 1),
        pad_begin=(0, 0, 0),
    )


def elements_of(channels, spatial, last):
    """The axes of a cell's elements in their memory order; ``last``: channels last."""
    return (*spatial, channels) if last else (channels, *spatial)


def inner_shapes(inner):
    """The shapes (N, 1, cells, C) of the cells and (1, O, taps, C) of the filter: C is last, as in memory.

    The caller moves C to the third axis, where kernels expect it.
    """
    return (inner.batch, 1, *inner.x, inner.x_channels), (1, inner.y_channels, *inner.kernel, inner.x_channels)


def taps_in_place(problem, filter):
    """The filter of the pointwise problem of patches, read in place, and whether its channels come last in memory.

    The filter is None if the weights of a patch are not evenly spaced in memory.
    """
    for channels_last in (False, True):
        view = np.moveaxis(filter.view[0], 1, -1 if channels_last else 1)
        step = nested(view.shape[1:], view.strides[1:])
        if step is not None:
            shape = (1, problem.y_channels, problem.x_channels, 1, 1, 1)
            return filter.with_view(as_strided(view, shape, (0, view.strides[0], step, 0, 0, 0))), channels_last
    return None, False


def in_cells(filter, problem, parts, last):
    """A view (o, taps, elements) of the filter (G, O, C, D, H, W): the taps that reach ``parts`` of a cell.

    The view stays within the filter: a part has only taps that exist.
    """
    by_out, by_channel, *by_tap = filter.strides[1:]
    begins = tuple(slice(part.begin, None) for part in parts)
    by_cell = [step * stride for step, stride in zip(by_tap, problem.stride, strict=True)]
    elements = elements_of(problem.x_channels, [part.size for part in parts], last)
    shape = (problem.y_channels, *(part.taps for part in parts), *elements)
    return as_strided(filter[(0, ..., *begins)], shape, (by_out, *by_cell, *elements_of(by_channel, by_tap, last)))


def regions(part, count, size, stride, pad):
    """The regions of one part of each of ``count`` cells, on an axis of x.

    Each is a triple: the slice of cells, the slice of elements within the part, the index in x of the first element.
    The cells at both ends may lie partly outside x. So the elements of a part are divided into ranges: for all elements
    of a range, the same cells lie inside x.
    """
    cuts = {part.begin, part.end, pad % stride, (size + pad) % stride}
    for begin, end in pairwise(sorted(cut for cut in cuts if part.begin <= cut <= part.end)):
        first = max(-(-(pad - begin) // stride), 0)
        last = min((size + pad - 1 - begin) // stride + 1, count)
        if first < last:
            yield slice(first, last), slice(begin - part.begin, end - part.begin), first * stride + begin - pad


def regions_of(problem, parts, inner):
    """Combinations of the ``regions`` of all axes."""
    axes = zip(parts, inner.x, problem.x, problem.stride, problem.pad_begin, strict=True)
    return [tuple(zip(*places, strict=True)) for places in product(*(list(regions(*axis)) for axis in axes))]


def unreached(problem):
    """Indices of the parts of x (n, c, positions) behind the last tap, which no tap reaches."""
    found = []
    axes = zip(problem.x, problem.y, problem.kernel, problem.stride, problem.pad_begin, strict=True)
    for axis, (size, y, kernel, stride, pad) in enumerate(axes):
        reach = max((y - 1) * stride + kernel - pad, 0)  # 0 if all taps meet only padding
        if reach < size:
            found.append((*[slice(None)] * (2 + axis), slice(reach, None)))
    return found


def stores(problem, parts, inner, cells, x, last, threads):
    """Copies of the cells of ``parts`` to x, one for each region."""
    by_image, _, by_channel, *by_position = x.view.strides
    pairs = ((step * stride, step) for step, stride in zip(by_position, problem.stride, strict=True))
    strides = (by_image, by_channel, *sum(pairs, ()))
    for of_cells, of_elements, begins in regions_of(problem, parts, inner):
        source = cells.view[(slice(None), *of_cells, *elements_of(slice(None), of_elements, last))]
        source = source.transpose(_CHANNELS_LAST if last else _CHANNELS_FIRST)
        corner = x.view[(..., *(slice(begin, None) for begin in begins))]
        yield Copy(cells.with_view(source), x.with_view(as_strided(corner, source.shape, strides)), threads)
