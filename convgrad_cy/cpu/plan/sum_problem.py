"""What plans of the sum itself depend on: a ``SumProblem`` may reach a result's bits, a ``Placement`` may not."""

from itertools import chain, repeat
from math import prod
from typing import Any, NamedTuple

from ...memo.once import once
from ...problem import WGRAD
from ..machine import Machine, RegisterTile
from ..machine.caches import operand_bytes
from .scratch import most_scratch
from .walks import Walks, walks_of


class _Fields(NamedTuple):
    operation: str
    mirrored: bool  # wgrad with x and y in each other's place
    batch: int
    groups: int
    channels: int  # of the source, in a group
    outputs: int  # of the target
    every: Walks
    walks: list  # one of each shape class, or its parts; the last walk's come last
    counts: list  # how many there are of each
    multiplications: int
    filter_bytes: int
    dtype: Any
    tile: RegisterTile
    most_scratch: int  # bytes beside the arrays, which the slices of wgrad take


class SumProblem(_Fields):
    """What the order of sums depends on. In dgrad, and where mirrored, y is the source and x the target.

    What follows from the fields is asked for again and again while a plan is made, and computed once.
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
        """Of all walks."""
        return sum(self.counts)

    @once
    def taps(self):
        return max([prod([axis.taps for axis in walk]) for walk in self.walks])

    @once
    def positions(self):
        return self.batch * max([prod([axis.positions for axis in walk]) for walk in self.walks])

    @once
    def tuning(self):
        return self.tile.tuning

    @once
    def multiplies_pairs(self):
        return self.tile.pairs(self.dtype)

    def alone(self):
        """The same of one image."""
        if self.batch == 1:
            return self
        return self._replace(batch=1, multiplications=self.multiplications // self.batch)

    def parted(self, parts):
        """The same with the parts of its walks in their place."""
        if len(parts) == len(self.walks) and all(own == [walk] for own, walk in zip(parts, self.walks, strict=True)):
            return self
        counts = chain(*map(repeat, self.counts, map(len, parts)))
        return self._replace(walks=[*chain(*parts)], counts=[*counts])


class Placement(NamedTuple):
    """Where sums are formed. None of it may reach a bit of their result."""

    positions_adjacent: bool  # in the source's memory
    source_bytes: int
    machine: Machine

    def threads(self, sums):
        tuning = sums.tuning
        serial = sums.multiplications < tuning.serial_products and sums.filter_bytes < tuning.large_filter_bytes
        return 1 if serial else self.machine.threads


def sum_problem_of(operation, problem, dtype, tile, backward):
    """The ``SumProblem``; ``backward``: the walks are those of dgrad, as they are in wgrad where it is mirrored."""
    channels, outputs = problem.channels(backward)
    filter_bytes = problem.groups * channels * outputs * prod(problem.kernel) * dtype.compute_itemsize
    every = walks_of(problem, backward)
    sizes = problem.batch, problem.groups, channels, outputs
    walks = every, every.shapes, every.counts
    mirrored = backward and operation == WGRAD
    most = most_scratch(problem, dtype.itemsize, tile) if operation == WGRAD else 0
    return SumProblem(operation, mirrored, *sizes, *walks, problem.multiplications, filter_bytes, dtype, tile, most)


def placement_of(problem, dtype, positions_adjacent, machine, backward):
    """The ``Placement`` of the same sums."""
    return Placement(positions_adjacent, operand_bytes(problem, dtype.itemsize)[1 if backward else 0], machine)
