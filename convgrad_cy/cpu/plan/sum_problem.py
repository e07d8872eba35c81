"""What plans of the sum itself depend on: what may reach a result's bits, and what may not."""

from itertools import chain, repeat
from math import prod
from typing import Any, NamedTuple

from ...memo.once import once
from ...problem import WGRAD
from ..machine import Machine, Tile
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
    walks: list  # one of each kind, or its parts; the last walk's come last
    counts: list  # how many there are of each
    multiplications: int
    filter_bytes: int
    dtype: Any
    tile: Tile
    most_scratch: int  # bytes beside the arrays, which the slices of wgrad take


class Case(_Fields):
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


class Setting(NamedTuple):
    """Where a case is carried out: what may reach no bit of its result."""

    positions_adjacent: bool  # in the source's memory
    source_bytes: int
    machine: Machine

    def threads(self, case):
        tuning = case.tuning
        serial = case.multiplications < tuning.serial_products and case.filter_bytes < tuning.large_filter_bytes
        return 1 if serial else self.machine.threads


def case_of(operation, problem, dtype, tile, backward):
    """The ``Case``; ``backward``: the walks are those of dgrad, as they are in wgrad where it is mirrored."""
    channels, outputs = problem.channels(backward)
    filter_bytes = problem.groups * channels * outputs * prod(problem.kernel) * dtype.compute_itemsize
    every = walks_of(problem, backward)
    sizes = problem.batch, problem.groups, channels, outputs
    walks = every, every.kinds, every.counts
    mirrored = backward and operation == WGRAD
    most = most_scratch(problem, dtype.itemsize, tile) if operation == WGRAD else 0
    return Case(operation, mirrored, *sizes, *walks, problem.multiplications, filter_bytes, dtype, tile, most)


def setting_of(problem, dtype, positions_adjacent, machine, backward):
    """The ``Setting`` of the same."""
    return Setting(positions_adjacent, operand_bytes(problem, dtype.itemsize)[1 if backward else 0], machine)
