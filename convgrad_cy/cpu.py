"""The CPU backend: chooses the instruction set at import; ``prepare`` plans a call and ``run`` carries it out."""

import os
from importlib import import_module, util
from math import prod
from pathlib import Path

from . import _cpu_features
from ._repeat import View, Work
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


def _is_one_axis(tensor):
    """Whether the spatial axes of a tensor are one in memory, too."""
    *_, depth, height, width = tensor.strides
    return height == width * tensor.shape[5] and depth == height * tensor.shape[4]


def prepare(problem, dtype, places, views, arrays):
    """The work of a call whose result is not empty.

    ``arrays`` are the two inputs and the result; ``places`` says which of them x, w and y are, and ``views`` has for
    each of these the order of its axes and its shape in six dimensions.
    """
    operation = (DGRAD, WGRAD, FPROP)[places.index(2)]
    orders = [None if list(order) == sorted(order) else order for order, _ in views]
    shapes = [shape for _, shape in views]
    i, j = (2, 0) if operation == DGRAD else (0, 2)  # source and target among x, w, y
    tensors = [View(*view).of(arrays) for view in zip(places, orders, shapes, strict=True)]
    if problem.is_pointwise() and _is_one_axis(tensors[i]) and _is_one_axis(tensors[j]):
        problem = problem.merged()
        for k in (i, j):
            shapes[k] = (*shapes[k][:3], 1, 1, prod(shapes[k][3:]))
            tensors[k] = tensors[k].reshape(shapes[k])
    strides = tensors[i].strides
    plan = make_plan(operation, problem, dtype, abs(strides[5]) < abs(strides[2]), machine())
    swaps = [None, _SWAPPED_CHANNELS if operation == DGRAD else None, None]
    if is_channelwise(problem):
        swaps = [_SWAPPED_CHANNELS, _SWAPPED_GROUPS, _SWAPPED_CHANNELS]
    seen_as = None if dtype.view == arrays[0].dtype else dtype.view
    return Work(
        _kernels.wgrad if operation == WGRAD else _kernels.correlate,
        dtype.code,
        _kernels.Program(plan.steps, plan.blocks),
        *(View(places[k], orders[k], shapes[k], swaps[k], seen_as) for k in (i, 1, j)),
    )
