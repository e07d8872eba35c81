"""What a plan of the sum itself depends on."""

from math import prod
from typing import NamedTuple

from .cache import operand_bytes
from .machines import SERIAL_MULTIPLICATIONS, Machine
from .walks import Walks, walks_of

#: Of a group, from which on it has to be read by a second thread, too, whatever the products.
LARGE_FILTER_BYTES = 1 << 20


class Case(NamedTuple):
    """What a plan depends on. In dgrad, and where mirrored, y is the source and x the target."""

    operation: str
    batch: int
    groups: int
    channels: int  # of the source, in a group
    outputs: int  # of the target
    every: Walks
    walks: list  # one of each kind, or its parts; the last walk's come last
    counts: list  # how many there are of each
    multiplications: int
    source_bytes: int
    filter_bytes: int
    positions_adjacent: bool  # in the source's memory
    dtype: object
    machine: Machine

    @property
    def itemsize(self):
        return self.dtype.compute_itemsize

    @property
    def lanes(self):
        return self.machine.vector_bytes // self.itemsize

    @property
    def strip(self):
        return self.machine.tile_column_bytes // self.itemsize

    @property
    def count(self):
        """Of all walks."""
        return sum(self.counts)

    @property
    def taps(self):
        return max(prod(axis.taps for axis in walk) for walk in self.walks)

    @property
    def positions(self):
        return self.batch * max(prod(axis.positions for axis in walk) for walk in self.walks)

    @property
    def threads(self):
        serial = self.multiplications < SERIAL_MULTIPLICATIONS and self.filter_bytes < LARGE_FILTER_BYTES
        return 1 if serial else self.machine.threads

    def alone(self):
        """The same of one image."""
        each = self._replace(batch=1, multiplications=self.multiplications // self.batch)
        return each._replace(source_bytes=self.source_bytes // self.batch)

    @property
    def multiplies_pairs(self):
        return self.dtype.name == "bfloat16" and self.machine.multiplies_pairs


def case_of(operation, problem, dtype, positions_adjacent, machine, backward):
    channels, outputs = problem.x_channels, problem.y_channels
    filter_bytes = problem.groups * channels * outputs * prod(problem.kernel) * dtype.compute_itemsize
    if backward:
        channels, outputs = outputs, channels
    every = walks_of(problem, backward)
    counts = (problem.batch, problem.groups, channels, outputs)
    sizes = (problem.multiplications, operand_bytes(problem, dtype)[1 if backward else 0], filter_bytes)
    return Case(operation, *counts, every, every.kinds, every.counts, *sizes, positions_adjacent, dtype, machine)
