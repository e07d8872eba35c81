"""The CPU backend: chooses the instruction set at import; fprop, dgrad and wgrad run a plan on NumPy arrays."""

import os
from importlib import import_module, util
from math import prod
from pathlib import Path

from . import _cpu_features, winograd
from .algorithm import tiling_of
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
    return available if _most_threads is None else min(available, _most_threads)


def openmp():
    """The OpenMP interface that the kernels were built with."""
    return _kernels.openmp()


def machine():
    """What ``plan.plan`` needs to know."""
    return Machine(*_tile, threads())


#: What the choice of an algorithm may know: not the number of threads.
_alone = Machine(*_tile, 1)


def run_tiles(dtype, depth, count):
    """Run ``count`` full register tiles on each thread and return how many FLOP that was: the kernels' limit."""
    return _kernels.run_tiles(dtype.code, depth, count, threads())


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


def _by_winograd(kernel, operation, problem, dtype, operands, forced):
    """Whether the result has been formed by Winograd's algorithm: not where that is slower, or out of its range."""
    tiling = tiling_of(operation, problem, dtype, forced, _alone)
    if tiling is None:
        return False
    plan = winograd.plan(operation, problem, tiling, machine())
    return kernel(dtype.code, *(array.view(dtype.view) for array in operands), plan.steps, plan.blocks)


def _run(kernel, tiled, operation, problem, dtype, source, filter, target, result, algorithm):
    if result.size == 0:
        return
    if algorithm != "direct" and _by_winograd(
        tiled, operation, problem, dtype, (source, filter, target), algorithm == "winograd"
    ):
        return
    problem, source, target = _merged(problem, source, target)
    positions_adjacent = abs(source.strides[5]) < abs(source.strides[2])
    plan = make_plan(operation, problem, dtype, positions_adjacent, machine())
    if is_channelwise(problem):
        source, filter, target = source.swapaxes(1, 2), filter.swapaxes(0, 1), target.swapaxes(1, 2)
    operands = (array.view(dtype.view) for array in (source, filter, target))
    kernel(dtype.code, *operands, plan.steps, plan.blocks)


def fprop(problem, dtype, x, w, y, algorithm="auto"):
    """Write y; x, w and y are the six-dimensional views that ``arguments`` makes."""
    _run(_kernels.correlate, _kernels.winograd_correlate, FPROP, problem, dtype, x, w, y, y, algorithm)


def dgrad(problem, dtype, x, w, y, algorithm="auto"):
    """Write x."""
    w = w.swapaxes(1, 2)
    _run(_kernels.correlate, _kernels.winograd_correlate, DGRAD, problem, dtype, y, w, x, x, algorithm)


def wgrad(problem, dtype, x, w, y, algorithm="auto"):
    """Write w."""
    _run(_kernels.wgrad, _kernels.winograd_wgrad, WGRAD, problem, dtype, x, w, y, w, algorithm)
