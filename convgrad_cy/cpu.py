"""The CPU backend: chooses the instruction set at import; ``prepare`` plans a call and ``run`` carries it out."""

import os
from collections.abc import Callable
from importlib import import_module, util
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import _cpu_features
from .plan import DGRAD, FPROP, WGRAD, Machine, is_channelwise
from .plan import plan as make_plan


def _is_built(name):
    return util.find_spec(f"{__package__}._kernels_{name}") is not None


def available_isas():
    """The instruction sets that were built and that this machine runs, the best last."""
    return tuple(name for name in _cpu_features.supported() if _is_built(name))


def _chosen_isa():
    allowed = available_isas()
    wanted = os.environ.get("CONVGRAD_CY_ISA", "")
    if not allowed:
        supported = ", ".join(_cpu_features.supported()) or "no known level"
        raise ImportError(f"convgrad_cy was built without kernels for this machine, which supports {supported}")
    if wanted and wanted not in allowed:
        raise ImportError(f"CONVGRAD_CY_ISA must be one of {', '.join(allowed)} on this machine, was {wanted!r}")
    return wanted or allowed[-1]


#: Name of the instruction set in use.
isa = _chosen_isa()
_kernels = import_module(f"._kernels_{isa}", __package__)
_tile = _kernels.tile()


def _cpu_quota():
    """Processors that the control group of this process may use, or None without a limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, int(quota) // int(period))
    except (OSError, ValueError):  # no such file, or the quota is "max"
        return None


_most_threads = None if os.environ.get("OMP_NUM_THREADS") else _cpu_quota()


def _after_fork_in_child():
    # The threads of an OpenMP team do not survive a fork, and libgomp would wait for them for ever.
    global _most_threads
    _most_threads = 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def threads():
    """Threads that a large problem would use now: OpenMP's number, at most the control group's CPUs; 1 in a fork."""
    available = _kernels.max_threads()
    return available if _most_threads is None or available < _most_threads else _most_threads


def openmp():
    """The OpenMP interface that the kernels were built with."""
    return _kernels.openmp()


def machine():
    """What ``plan.plan`` needs to know."""
    return Machine(*_tile, threads())


def run_tiles(dtype, depth, count):
    """Run ``count`` full register tiles on each thread and return how many FLOP that was: the kernels' limit."""
    return _kernels.run_tiles(dtype.code, depth, count, threads())


#: The filter as (group, in, out, ..); depthwise tensors as (batch, channel, group, ..), and their filter.
_SWAPPED_CHANNELS = (0, 2, 1, 3, 4, 5)
_SWAPPED_GROUPS = (1, 0, 2, 3, 4, 5)


class View(NamedTuple):
    """How a kernel sees one of the three arrays: which one, and the steps to six axes, None where one is not needed."""

    place: int
    order: tuple  # the caller's axes in the order (batch, channels, spatial) or (out, in, spatial)
    shape: tuple  # channels split by groups, missing spatial axes of extent one
    swapped: tuple  # the six axes in the order of the kernel
    dtype: np.dtype

    def of(self, arrays):
        place, order, shape, swapped, dtype = self
        array = arrays[place]
        if order is not None:
            array = array.transpose(order)
        array = array.reshape(shape)
        if swapped is not None:
            array = array.transpose(swapped)
        return array if dtype is None else array.view(dtype)


class Work(NamedTuple):
    """What ``run`` does for arrays of certain shapes and strides, wherever they are."""

    kernel: Callable
    code: int  # of the dtype
    views: tuple  # of source, filter and target
    program: Any  # the plan, as the kernels take it


def _is_one_axis(tensor):
    """Whether the spatial axes of a tensor are one in memory, too."""
    *_, depth, height, width = tensor.strides
    return height == width * tensor.shape[5] and depth == height * tensor.shape[4]


def prepare(problem, dtype, places, views, arrays):
    """The work of a call; ``places[i]`` is the place of x, w, y in ``arrays``, of which the last is the result."""
    x, w, y = (
        View(place, None if list(order) == sorted(order) else order, shape, None, None)
        for place, (order, shape) in zip(places, views, strict=True)
    )
    if arrays[2].size == 0:
        return Work(_leave_empty, dtype.code, (x, w, y), None)
    operation = (DGRAD, WGRAD, FPROP)[places.index(2)]
    source, target = (y, x) if operation == DGRAD else (x, y)
    if problem.is_pointwise() and _is_one_axis(source.of(arrays)) and _is_one_axis(target.of(arrays)):
        problem = problem.merged()
        source, target = (
            view._replace(shape=(*view.shape[:3], 1, 1, prod(view.shape[3:]))) for view in (source, target)
        )
    strides = source.of(arrays).strides
    plan = make_plan(operation, problem, dtype, abs(strides[5]) < abs(strides[2]), machine())
    swaps = [None, _SWAPPED_CHANNELS if operation == DGRAD else None, None]
    if is_channelwise(problem):
        swaps = [_SWAPPED_CHANNELS, _SWAPPED_GROUPS, _SWAPPED_CHANNELS]
    return Work(
        _kernels.wgrad if operation == WGRAD else _kernels.correlate,
        dtype.code,
        tuple(
            view._replace(swapped=swap, dtype=None if dtype.view == arrays[0].dtype else dtype.view)
            for view, swap in zip((source, w, target), swaps, strict=True)
        ),
        _kernels.Program(plan.steps, plan.blocks),
    )


def _leave_empty(*_):
    """The kernel of a result without elements."""


def run(work, first, second, result):
    """Write the result."""
    kernel, code, (source, filter, target), program = work
    arrays = (first, second, result)
    kernel(code, source.of(arrays), filter.of(arrays), target.of(arrays), program)
