"""Inputs of a direct plan. A ``SumProblem`` may affect the result's bits, a ``Placement`` never does."""

from itertools import chain, repeat
from math import prod
from typing import Any, NamedTuple

from ...memo.once import once
from ...problem import WGRAD
from ..machine import Machine, RegisterTile
from ..machine.caches import operand_bytes
from .scratch import most_scratch
from .threads import threads_of
from .walks import Walks, walks_of


class _Fields(NamedTuple):
    operation: str
    mirrored: bool  # wgrad with x and y exchanged
    batch: int
    groups: int
    channels: int  # of the source, in a group
    outputs: int  # channels of the target, in a group
    all_walks: Walks  # of all stride phases, not split
    walks: list  # one walk of each shape class; if walks are split, their parts
    counts: list  # for each of these, the number of walks of its shape class
    multiplications: int
    filter_bytes: int
    dtype: Any
    tile: RegisterTile
    most_scratch: int  # maximum bytes for the sums of the slices of wgrad


class SumProblem(_Fields):
    """Everything that may affect the order of sums. In dgrad and mirrored wgrad, y is the source and x the target.

    Values that follow from the fields are computed once, because the planner uses them many times.
    """

    @once
    def itemsize(self):
        return self.dtype.compute_itemsize

    @once
    def lanes(self):
        return self.tile.vector_bytes // self.itemsize

    @once
    def strip(self):
        return self.tile.tile_column_bytes // self.itemsize

    @once
    def count(self):
        """Number of all walks."""
        return sum(self.counts)

    @once
    def taps(self):
        return max([prod([axis.taps for axis in walk]) for walk in self.walks])

    @once
    def positions(self):
        return self.batch * max([prod([axis.positions for axis in walk]) for walk in self.walks])

    @property
    def typical_walk(self):
        """The last walk, with which costs are computed. All choices must use the same walk, so that they agree.

        On each axis, the positions of stride phases differ by at most one. Parts of split walks may differ more.
        """
        return self.walks[-1]

    @once
    def tuning(self):
        return self.tile.tuning

    @once
    def multiplies_pairs(self):
        return self.tile.pairs(self.dtype)

    def alone(self):
        """This problem with a batch of one image."""
        if self.batch == 1:
            return self
        return self._replace(batch=1, multiplications=self.multiplications // self.batch)

    def parted(self, parts):
        """This problem with each walk replaced by its parts."""
        if len(parts) == len(self.walks) and all(own == [walk] for own, walk in zip(parts, self.walks, strict=True)):
            return self
        counts = chain(*map(repeat, self.counts, map(len, parts)))
        return self._replace(walks=[*chain(*parts)], counts=[*counts])


class Placement(NamedTuple):
    """Layout and machine. They must not affect the result's bits."""

    positions_adjacent: bool  # in memory, by ``are_positions_adjacent`` of rewrites/views.py
    source_bytes: int
    threads: int  # of the call
    machine: Machine


def sum_problem_of(operation, problem, dtype, tile, backward):
    """The ``SumProblem``; ``backward``: y is the source and x the target, as in dgrad and mirrored wgrad."""
    channels, outputs = problem.channels(backward)
    filter_bytes = problem.groups * channels * outputs * prod(problem.kernel) * dtype.compute_itemsize
    all_walks = walks_of(problem, backward)
    sizes = problem.batch, problem.groups, channels, outputs
    walks = all_walks, all_walks.shapes, all_walks.counts
    mirrored = backward and operation == WGRAD
    most = most_scratch(problem, dtype.itemsize, tile) if operation == WGRAD else 0
    return SumProblem(operation, mirrored, *sizes, *walks, problem.multiplications, filter_bytes, dtype, tile, most)


def placement_of(problem, dtype, positions_adjacent, machine, backward):
    """The ``Placement`` of a problem; ``backward`` as in ``sum_problem_of``."""
    source_bytes = operand_bytes(problem, dtype.itemsize)[1 if backward else 0]
    return Placement(positions_adjacent, source_bytes, threads_of(problem, dtype.itemsize, machine), machine)
