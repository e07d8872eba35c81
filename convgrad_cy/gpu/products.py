"""The matrix products that ``mma.cu`` and ``mma_wgrad.cu`` form for a task: their walks, launches and sizes."""

from itertools import product
from math import prod

from ..problem import DGRAD, WGRAD
from .joins import ALONE, phase_walks
from .pack import CHANNELS
from .tiles import Kind

#: Walks of an axis in one launch: MOST_PHASES of taps.cuh.
MOST_PHASES = 4
#: Rows, columns and depths are counted in 32 bits, and rounded up to whole tiles.
MOST = 2**31 - 2**16


def kind_of(task):
    """The `Kind` with which the task's type is multiplied."""
    if task.dtype.name == "float32":
        return Kind("bf16", 2, {"high": 3, "medium": 2}[task.precision], 4)
    return Kind(task.dtype.cuda, task.dtype.itemsize, 1, task.dtype.compute_itemsize)


def walks_of(task, join=ALONE):
    """Every combination of walks."""
    return [walk for axes in phases_of(task, join) for walk in product(*axes)]


def products_of(task, kind, join=ALONE, chunk=None):
    """(rows, columns, depth) of the matrix product of each walk, in one group or in joined groups.

    The source's channels are rounded up to a multiple of ``chunk``.
    """
    chunk = chunk or kind.chunk
    channels = -(-task.source.shape[CHANNELS] * join.groups // chunk) * chunk
    others = task.target.shape[CHANNELS] * join.groups
    for walk in walks_of(task, join):
        positions = task.source.shape[0] * prod(axis.positions for axis in walk)
        taps = prod(axis.taps for axis in walk)
        if task.operation == WGRAD:
            yield others, taps * channels, positions
        else:
            yield positions, others * prod(join.phases), taps * channels


def phases_of(task, join=ALONE):
    """The walks of each axis for each launch. Walks with most taps come first, so that short blocks are last.

    If strides are small, blocks for the phases that no tap reaches store zeros. Otherwise a launch before the others
    stores zeros everywhere.
    """
    problem = task.problem
    if join.phases != ALONE.phases:
        return [tuple([axis] for axis in phase_walks(problem))]
    if task.operation != DGRAD:
        return [tuple([axis] for axis in problem.forward_walk())]
    unreached = problem.unreached_walk()
    zeros, phases = [], problem.backward_phases()
    if unreached is not None and max(problem.stride) <= MOST_PHASES:
        phases = problem.complete_backward_phases()
    elif unreached is not None:
        zeros = [tuple([axis] for axis in unreached)]
    depths, rows, columns = (
        [walks[i : i + MOST_PHASES] for i in range(0, len(walks), MOST_PHASES)]
        for walks in (sorted(axis, key=lambda walk: -walk.taps) for axis in phases)
    )
    return zeros + [(depth, row, column) for depth in depths for row in rows for column in columns]
