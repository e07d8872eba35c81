"""Kernels as large as their stride: each position of y reads a *patch* of x that no other position reads.

The data gradient is then one matrix product of y (positions x channels) and the filter (channels x elements of a
patch). Its result has another order of elements than x, so it is copied to x. If x has few channels and y enough of
them, product and copy together are faster than a small product for each tap::

    patches[n, p, (c, t)] = x[n, c, p * kernel + t]

The elements of a patch have the order of the filter's memory: (c, t), or (t, c) for a filter of the format XIO.
"""

from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...arrays import NUMPY
from ...problem import DGRAD
from ..plan import scratch
from ..plan.reasons import Reason
from .copies import Axes, Copier
from .folded_taps import is_cut


def problem_refusal(problem, tuning):
    """The reason why a data gradient is not formed from patches, or None."""
    if problem.multiplications < tuning.serial_products:
        return Reason("there are fewer than {} products", tuning.serial_products)
    if problem.groups > 1:
        return "there are groups"
    if problem.x_channels > tuning.most_patch_channels:
        return Reason("x has more than {} channels", tuning.most_patch_channels)
    if problem.y_channels < tuning.least_patch_products:
        return Reason("an element has fewer than {} products", tuning.least_patch_products)
    if problem.x_channels * prod(problem.kernel) < tuning.least_patch_elements:
        return Reason("a patch has fewer than {} elements", tuning.least_patch_elements)
    if not all(is_cut(problem, axis) for axis in range(3)):
        return "the kernel does not cut x into patches"
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
    """Most bytes of the copies of x and of the filter."""
    return sum(scratch.array_bytes(task.problem, task.dtype.itemsize)[:2])


def job(task, rest):
    """The matrix product, planned by the families in ``rest``, between copies of the filter and of x."""
    source, filter, target = task.tensors
    found, product = layout(task.problem, source, filter), pointwise(task.problem)
    tensors, here = found.operands(product, filter, target), scratch.left_by(task, _copied(task))
    inner = rest(task._replace(problem=product, tensors=tensors, machine=here))
    return Patched(inner, Copier(task.machine.threads), tuple(task.places[:2]), found)


def pointwise(problem):
    """The pointwise problem: the elements of a patch are the channels of its x."""
    ones = (1, 1, 1)
    return replace(problem, x_channels=problem.x_channels * prod(problem.kernel), x=problem.y, kernel=ones, stride=ones)


class PatchLayout(NamedTuple):
    """Views of x and of the filter, and the memory order of patches."""

    x: Axes  # (n, c, d, kd, h, kh, w, kw): each extent of y is followed by the extent of a patch
    order: tuple  # of these axes in the memory of patches
    filter: Axes  # (o, elements of a patch); (o, c, kd, kh, kw) if it is copied
    copied: bool  # the filter's elements have no common stride, so it is copied

    def operands(self, problem, filter, y):
        """The three tensors of the pointwise problem, as a kernel views them. No memory is read."""
        patches = NUMPY.empty(tuple(self.x.shape[axis] for axis in self.order), y.dtype)
        elements = (1, problem.y_channels, problem.x_channels, 1, 1, 1)
        if self.copied:
            filter = np.empty(elements, y.dtype)
        else:
            filter = as_strided(filter, elements, (0, *self.filter.strides, 0, 0, 0))
        x = patches.reshape(problem.batch, 1, *problem.y, problem.x_channels)
        return np.moveaxis(x, -1, 2), filter, y


def layout(problem, x, filter):
    """The layout of an array x, viewed as (N, 1, C, D, H, W), and of a filter, viewed as (1, O, C, D, H, W)."""
    split = sum(zip(problem.y, problem.kernel, strict=True), ())
    x = Axes.of(x.reshape(problem.batch, problem.x_channels, *split))
    for channels, order in (((0,), (0, 2, 4, 6, 1, 3, 5, 7)), ((-1,), (0, 2, 4, 6, 3, 5, 7, 1))):
        view = np.moveaxis(filter[0], 1, 1 if channels == (0,) else -1)
        step = Axes(view.shape[1:], view.strides[1:]).nested()
        if step is not None:
            return PatchLayout(x, order, Axes((view.shape[0], prod(view.shape[1:])), (view.strides[0], step)), False)
    return PatchLayout(x, (0, 2, 4, 6, 1, 3, 5, 7), Axes.of(filter[0]), True)


class Patched(NamedTuple):
    """A work, like ``_repeat.Work``, that computes a gradient with patches, for arrays of fixed shapes and strides."""

    product: Any  # the work of the pointwise problem
    copier: Copier
    places: tuple  # index of x and of the filter among the arrays of a call
    layout: PatchLayout

    def ready(self):
        """This work with its product ready to run."""
        return self._replace(product=self.product.ready())

    def run(self, first, second, result, before=None):
        """Write the result. Before the first store, when all memory is allocated, ``before`` is called."""
        arrays, (x_place, filter_place) = [first, second, result], self.places
        x, filter = self.layout.x.on(arrays[x_place]), self.layout.filter.on(arrays[filter_place])
        arrays[x_place] = NUMPY.empty(tuple(x.shape[axis] for axis in self.layout.order), first.dtype)
        patches = arrays[x_place].transpose(np.argsort(self.layout.order))
        if self.layout.copied:
            arrays[filter_place] = np.empty(filter.shape, first.dtype)
            arrays[filter_place][...] = filter
        self.product.run(*arrays, before)
        self.copier.copy(patches, x)
