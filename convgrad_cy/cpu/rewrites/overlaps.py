"""Data gradients of few channels with kernels larger than their stride: patches of x overlap.

The elements of x within one stride become the channels of a *block*. On blocks, the gradient is the gradient of a
convolution of unit stride, and each tap reaches all elements of a block (one axis is written)::

    blocks[n, b, (c, r)] = sum over o, m of  dy[n, o, b - m] * w[o, c, m * stride + r]
    dx[n, c, b * stride + r - pad] = blocks[n, b, (c, r)]

Elements r < kernel % stride have one tap more than the others. So each axis has up to two *parts*, and each combination
of parts is one gradient. No term is added that does not exist. A strided sum has few channels for each tap; this one
has prod(stride) times as many, and costs a copy of the filter and one of x. The elements of a block have the order of x
in memory, (c, r) or (r, c). This order affects no bit.
"""

from dataclasses import replace
from itertools import pairwise, product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...arrays import NUMPY
from ...problem import DGRAD
from ..plan import scratch
from ..plan.reasons import Reason
from .copies import Axes, Copier


class BlockPart(NamedTuple):
    """Elements ``begin`` to ``end`` of a block along one axis, and the number of taps that reach each."""

    begin: int
    end: int
    taps: int

    @property
    def size(self):
        return self.end - self.begin


def parts_of(kernel, stride):
    """The parts of an axis."""
    taps, rest = divmod(kernel, stride)
    return [BlockPart(0, rest, taps + 1)] * (rest > 0) + [BlockPart(rest, stride, taps)]


def problem_refusal(problem, tuning):
    """The reason why a data gradient is not formed from overlapping patches, or None."""
    if problem.multiplications < tuning.serial_products:
        return Reason("there are fewer than {} products", tuning.serial_products)
    if problem.groups > 1:
        return "there are groups"
    if problem.x_channels > tuning.most_patch_channels:
        return Reason("x has more than {} channels", tuning.most_patch_channels)
    if problem.dilation != (1, 1, 1):
        return "the filter is dilated"
    axes = [parts_of(kernel, stride) for kernel, stride in zip(problem.kernel, problem.stride, strict=True)]
    if any(part.taps == 0 for parts in axes for part in parts):
        return "the kernel is smaller than the stride"
    products = tuning.least_overlapped_products * problem.x_channels
    if problem.y_channels * prod(problem.kernel) < products * prod(problem.stride):
        return Reason("an element has fewer than {} products", products)
    most, least = (problem.x_channels * prod(end(part.size for part in parts) for parts in axes) for end in (max, min))
    wanted, everywhere = tuning.least_block_elements, tuning.least_elements_of_all_parts
    if most < wanted and least < everywhere:
        return Reason("a block has parts of fewer than {} elements, and none of {}", everywhere, wanted)
    return None


def refusal(task):
    """The reason why this family does not take a task, or None."""
    if task.operation != DGRAD:
        return "the operation is no data gradient"
    if task.algorithm == "winograd":
        return "the call asks for the algorithm 'winograd'"
    refused = problem_refusal(task.problem, task.machine.tuning)
    return refused or scratch.refusal(_copied(task), task.problem, task.dtype.itemsize, task.machine.tile)


def _copied(task):
    """Bytes of the blocks and taps of all pieces."""
    problem = task.problem
    every = [inner_problem(problem, parts) for parts in product(*map(parts_of, problem.kernel, problem.stride))]
    return sum(prod(shape) for inner in every for shape in inner_shapes(inner)) * task.dtype.itemsize


def job(task, rest):
    """The gradients on blocks, planned by the families in ``rest``, between a copy of the filter and one of x."""
    problem, (x, filter, y) = task.problem, task.tensors
    last, pieces = abs(x.strides[2]) < abs(x.strides[5]), []
    task = task._replace(machine=scratch.left_by(task, _copied(task)))
    for parts in product(*map(parts_of, problem.kernel, problem.stride)):
        inner = inner_problem(problem, parts)
        tensors = piece_arrays(inner, parts, problem.x_channels, last, y.dtype)
        blocks, taps = (array.reshape(shape) for array, shape in zip(tensors, inner_shapes(inner), strict=True))
        work = rest(task._replace(problem=inner, tensors=(np.moveaxis(blocks, -1, 2), np.moveaxis(taps, -1, 2), y)))
        pieces.append(Piece(work, parts, inner, regions_of(problem, parts, inner)))
    seen = views(x, filter, problem, last)
    return Overlapped(
        pieces, Copier(task.machine.threads), tuple(task.places[:2]), problem, last, rests(problem), *seen
    )


def inner_problem(problem, parts):
    """The problem of unit stride that computes ``parts`` of all blocks; its x has blocks as positions."""
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
    """The axes of a block's elements in their memory order; ``last``: channels last."""
    return (*spatial, channels) if last else (channels, *spatial)


def piece_arrays(inner, parts, channels, last, dtype):
    """New arrays for blocks (n, blocks of each axis, elements) and taps (o, taps of each axis, elements)."""
    elements = elements_of(channels, [part.size for part in parts], last)
    blocks = NUMPY.empty((inner.batch, *inner.x, *elements), dtype)
    return blocks, NUMPY.empty((inner.y_channels, *inner.kernel, *elements), dtype)


def inner_shapes(inner):
    """Shapes of blocks and taps for kernels, but with the channels last: (N, 1, blocks, C), (1, O, taps, C)."""
    return (inner.batch, 1, *inner.x, inner.x_channels), (1, inner.y_channels, *inner.kernel, inner.x_channels)


def views(x, filter, problem, last):
    """Axes of x (n, c, positions) and of the filter (o, taps, elements), whose last taps may exceed its memory."""
    by_out, by_channel, *by_tap = filter.strides[1:]
    taps = tuple(-(-kernel // stride) for kernel, stride in zip(problem.kernel, problem.stride, strict=True))
    by_block = [step * stride for step, stride in zip(by_tap, problem.stride, strict=True)]
    shape = (problem.y_channels, *taps, *elements_of(problem.x_channels, problem.stride, last))
    return Axes.of(x[:, 0]), Axes(shape, (by_out, *by_block, *elements_of(by_channel, by_tap, last)))


class Piece(NamedTuple):
    """One combination of parts of the three axes, with the work and the problem of its gradient."""

    work: Any
    parts: tuple
    inner: Any
    regions: list  # slices of blocks and of elements along each axis, and the first index in x

    @property
    def elements(self):
        """Elements of blocks and taps."""
        blocks, taps = inner_shapes(self.inner)
        return prod(blocks) + prod(taps)

    def taps(self, filter, last):
        """The piece's part of a filter that is viewed in blocks of taps."""
        taps = [slice(part.taps) for part in self.parts]
        elements = elements_of(slice(None), [slice(part.begin, part.end) for part in self.parts], last)
        return filter[(slice(None), *taps, *elements)]


def regions(part, count, size, stride, pad):
    """Regions of a part of ``count`` blocks on an axis of x: slices of blocks and of elements, the first index in x.

    Blocks at both ends may lie partly outside x. So elements are divided where their first or last block changes.
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


def rests(problem):
    """Indices of the parts of x (n, c, positions) behind the last tap, which no tap reaches."""
    found = []
    axes = zip(problem.x, problem.y, problem.kernel, problem.stride, problem.pad_begin, strict=True)
    for axis, (size, y, kernel, stride, pad) in enumerate(axes):
        reach = max((y - 1) * stride + kernel - pad, 0)  # all taps may meet padding alone
        if reach < size:
            found.append((*[slice(None)] * (2 + axis), slice(reach, None)))
    return found


class Overlapped(NamedTuple):
    """A work, like ``_repeat.Work``, that computes a gradient on blocks, for arrays of fixed shapes and strides."""

    pieces: list
    copier: Copier
    places: tuple  # index of x and of the filter among the arrays of a call
    problem: Any
    last: bool  # elements of a block have channels last
    rests: list
    x: Axes
    filter: Axes

    def ready(self):
        """This work with its pieces ready to run."""
        return self._replace(pieces=[piece._replace(work=piece.work.ready()) for piece in self.pieces])

    def run(self, first, second, result, before=None):
        """Write the result. Before the first store, when all memory is allocated, ``before`` is called."""
        arrays, (x_place, filter_place) = [first, second, result], self.places
        x, filter = self.x.on(arrays[x_place]), self.filter.on(arrays[filter_place])
        made = []
        for piece in self.pieces:
            blocks, taps = piece_arrays(piece.inner, piece.parts, self.problem.x_channels, self.last, first.dtype)
            self.copier.copy(piece.taps(filter, self.last), taps)
            arrays[x_place], arrays[filter_place] = blocks, taps
            piece.work.run(*arrays)
            made.append(blocks)
        if before is not None:
            before()
        self._store(made, x)

    def _store(self, made, x):
        """Copy the blocks of all pieces to x, and zeros to the parts that no tap reaches."""
        for rest in self.rests:
            x[rest] = 0
        for piece, blocks in zip(self.pieces, made, strict=True):
            for of_blocks, of_elements, begins in piece.regions:
                source = blocks[(slice(None), *of_blocks, *elements_of(slice(None), of_elements, self.last))]
                source = source.transpose((0, 7, 1, 4, 2, 5, 3, 6) if self.last else (0, 4, 1, 5, 2, 6, 3, 7))
                self.copier.copy(source, self._target(x, begins, source.shape))

    def _target(self, x, begins, shape):
        """A view of x (n, c, blocks and elements of each axis) that begins at the position ``begins``."""
        corner = x[(slice(None), slice(None), *(slice(begin, None) for begin in begins))]
        by_image, by_channel, *by_position = x.strides
        pairs = ((step * stride, step) for step, stride in zip(by_position, self.problem.stride, strict=True))
        return Axes(shape, (by_image, by_channel, *sum(pairs, ()))).on(corner)
