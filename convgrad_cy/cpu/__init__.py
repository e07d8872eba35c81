"""The CPU backend: ``prepare`` plans the work of a call."""

from math import prod

from .._repeat import View, Work
from ..problem import DGRAD, WGRAD
from . import layouts, patches
from .direct.mirrored import is_better_mirrored
from .direct.plan import outline
from .direct.plan import plan as make_plan
from .kernels import available_isas as available_isas
from .kernels import compiled
from .kernels import isa as isa
from .kernels import machine as machine
from .kernels import openmp as openmp
from .kernels import run_tiles as run_tiles
from .kernels import threads as threads
from .winograd import plan as winograd
from .winograd.tilings import refusal as refusal
from .winograd.tilings import tiling_of


def _merged(problem, source, target):
    """A pointwise problem in one dimension, where the spatial axes of both tensors are one in memory too."""
    if problem.is_pointwise():
        for tensor in (source, target):
            *_, depth, height, width = tensor.strides
            if height != width * tensor.shape[5] or depth != height * tensor.shape[4]:
                return problem, source, target
        row = (*source.shape[:3], 1, 1, prod(source.shape[3:]))
        return problem.merged(), source.reshape(row), target.reshape((*target.shape[:3], *row[3:]))
    return problem, source, target


def _copier():
    return layouts.Copier(compiled.rearrange, threads())


def _work(kernel, plan, dtype, places, tensors, instead=None):
    views = [View(place, tensor.view(dtype.view)) for place, tensor in zip(places, tensors, strict=True)]
    return Work(kernel, dtype.code, compiled.Program(plan.steps, plan.blocks), *views, instead)


def _turned(places, tensors):
    """The same with x and y in each other's place, as dgrad takes them."""
    source, filter, target = tensors
    return places[::-1], (target, filter.swapaxes(1, 2), source)


def _direct(operation, problem, dtype, here, places, tensors):
    """The work of the sum as the definition has it."""
    if operation == WGRAD and patches.is_dense(problem):
        source, filter, target = tensors
        problem, joined, source = patches.taps_as_channels(problem, filter.swapaxes(1, 2), source)
        tensors = source, joined.swapaxes(1, 2), target
    mirrored = operation == WGRAD and is_better_mirrored(problem, here, dtype.compute_itemsize)
    if operation == DGRAD or mirrored:
        places, tensors = _turned(places, tensors)
    source, filter, target = tensors
    chunk = None
    if operation == DGRAD:
        joined, filter, target = patches.taps_as_channels(problem, filter, target)
        if joined != problem:  # the order of each sum stays as it is for other layouts
            chunk = outline(operation, problem, dtype, False, here).blocks.chunk
            problem = joined
    problem, source, target = _merged(problem, source, target)
    channel = 1 if source.shape[2] == 1 < source.shape[1] else 2  # of groups of one channel, the groups are channels
    positions_adjacent = abs(source.strides[5]) < abs(source.strides[channel])
    plan = make_plan(operation, problem, dtype, positions_adjacent, here, mirrored, chunk)
    kernel = compiled.wgrad if operation == WGRAD else compiled.correlate
    return _work(kernel, plan, dtype, places, (source, filter, target))


def _winograd(operation, problem, dtype, plan, here, places, tensors):
    """The work by Winograd's algorithm; where values leave its range, the sum is formed instead."""
    direct = _direct(operation, problem, dtype, here, places, tensors)
    if operation == DGRAD:
        places, tensors = _turned(places, tensors)
    kernel = compiled.winograd_wgrad if operation == WGRAD else compiled.winograd_correlate
    return _work(kernel, plan, dtype, places, tensors, direct)


def prepare(operation, problem, dtype, algorithm, places, tensors):
    """How to write x (DGRAD), y (FPROP) or w (WGRAD), which is not empty, for any arrays that lie in memory like these.

    ``tensors`` has the six-dimensional views of x, w and y, and ``places`` says which of a call's arrays they view.
    """
    if algorithm != "winograd" and patches.pays(operation, problem):
        source, filter, target = tensors
        layout, product = patches.layout(problem, source, filter), patches.pointwise(problem)
        work = prepare(operation, product, dtype, algorithm, places, layout.operands(product, filter, target))
        return patches.Patched(work, _copier(), operation, tuple(places[:2]), layout)
    here = machine()
    if algorithm == "direct":  # pairs of bfloat16 are multiplied with subnormal numbers taken for zero
        return _direct(operation, problem, dtype, here._replace(multiplies_pairs=False), places, tensors)
    tiling = tiling_of(operation, problem, dtype, algorithm == "winograd", here._replace(threads=1))
    if tiling is None:
        return _direct(operation, problem, dtype, here, places, tensors)
    plan = winograd.plan(operation, problem, tiling, here)
    wanted = layouts.gathered(operation, problem, tensors, plan.chosen.group > 0)
    work = _winograd(operation, problem, dtype, plan, here, places, wanted)
    if all(one is other for one, other in zip(tensors, wanted, strict=True)):
        return work
    return layouts.Reordered.to(wanted, work, _copier(), places, tensors)
