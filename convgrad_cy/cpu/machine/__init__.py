"""The machine: its register tile, caches, kernels and tuned numbers. Plans see it as a ``Machine``."""

from typing import NamedTuple

from ...memo.once import once
from .tuning import Tuning, tuning_of

LINE_BYTES = 64  # of the cache


class RegisterTile(NamedTuple):
    """The register tile: all of a machine that may reach the bits of a result."""

    tile_rows: int
    tile_column_bytes: int
    vector_bytes: int
    multiplies_pairs: bool  # of bfloat16
    splits_vectors: bool  # vectors of 64 bytes, into halves, of which it multiplies twice as many
    tuning: Tuning
    scratch_bytes: int | None = None  # that a call may take beside its arrays; None: plan/scratch.py says

    def pairs(self, dtype):
        """Whether values of a type are multiplied in pairs, in half of the time."""
        return self.multiplies_pairs and dtype.name == "bfloat16"

    @property
    def halves(self):
        """Whether it gains from tiles of half a vector, which there are of 64 bytes alone."""
        return self.splits_vectors and self.vector_bytes >= LINE_BYTES

    def unsplit(self):
        """As if it did not, for models that were fitted so."""
        return self._replace(splits_vectors=False)


class _Fields(NamedTuple):
    tile_rows: int
    tile_column_bytes: int
    vector_bytes: int
    multiplies_pairs: bool
    cache_bytes: int  # of the last cache
    threads: int
    splits_vectors: bool = False
    l1_bytes: int = 32 << 10  # of a core's data; that of the cores of many processors
    l2_bytes: int = 1 << 20
    own_tuning: Tuning | None = None  # other numbers than those of its vectors
    scratch_bytes: int | None = None  # no property of the machine, but a limit of all who share it


class Machine(_Fields):
    """What a plan needs to know of the machine: the register tile, the caches, the number of threads."""

    @once
    def tuning(self):
        return self.own_tuning or tuning_of(self.vector_bytes)

    @once
    def tile(self):
        """What the first stage of planning sees of it."""
        return RegisterTile(*self[:4], self.splits_vectors, self.tuning, self.scratch_bytes)
