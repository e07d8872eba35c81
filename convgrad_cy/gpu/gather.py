"""Any geometry, type and strides, with one thread or block for each element of the result: the last family."""

from math import prod

from ..problem import DGRAD, WGRAD
from .plan import FILTER, SOURCE, TARGET, Launch, Plan, integers
from .walk_sets import parts

_MOST_BLOCKS = 2**31 - 1
_CORRELATE_THREADS = 128


def suits(task):
    return True


def launches(task):
    if task.operation == WGRAD:
        return Plan((_wgrad(task),))
    if task.operation == DGRAD:
        unreached = task.problem.unreached_walk()
        zeros = [] if unreached is None else [tuple([walk] for walk in unreached)]
        axes = [*zeros, *parts(tuple(task.problem.backward_phases()))]
    else:
        axes = [tuple([walk] for walk in task.problem.forward_walk())]
    return Plan(tuple(_correlate(task, walks) for walks in axes))


def _sizes(task):
    """The first arguments of both kernels."""
    batch, groups, channels = task.source.shape[:3]
    return batch, groups, channels, task.target.shape[2]


def _strides(task):
    return task.source.strides, task.filter.strides, task.target.strides


def _correlate(task, walks):
    """fprop or dgrad at the positions that these walks of each axis visit."""
    visited = [sum(walk.positions for walk in axis) for axis in walks]
    macros = {
        "CHANNELS_ADJACENT": int(abs(task.target.strides[2]) < abs(task.target.strides[5])),
        "STORAGE": task.dtype.cuda,
        "THREADS": _CORRELATE_THREADS,
        "WALKS": sum(map(len, walks)),
    }
    elements = prod(task.target.shape[:3]) * prod(visited)
    arguments = integers(_sizes(task), [len(axis) for axis in walks], visited, _strides(task), *walks)
    return _launch("correlate", macros, -(-elements // _CORRELATE_THREADS), _CORRELATE_THREADS, arguments)


def _wgrad(task):
    walk = task.problem.forward_walk()
    products = task.source.shape[0] * prod(axis.positions for axis in walk)
    threads = next((number for number in (32, 64, 128) if products <= 4 * number), 256)
    macros = {"STORAGE": task.dtype.cuda, "THREADS": threads}
    arguments = integers(_sizes(task), _strides(task), walk)
    return _launch("wgrad", macros, prod(task.filter.shape), threads, arguments)


def _launch(kernel, macros, blocks, threads, arguments):
    macros = tuple((name, str(value)) for name, value in macros.items())
    grid, block = (min(blocks, _MOST_BLOCKS), 1, 1), (threads, 1, 1)
    return Launch("gather.cu", macros, kernel, grid, block, 0, (SOURCE, FILTER, TARGET), arguments)
