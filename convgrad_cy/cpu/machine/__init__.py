"""The machine: its register tile, caches, kernels and tuned numbers. Plans receive it as a ``Machine``."""

from typing import NamedTuple

from ...memo.once import once
from .tuning import Tuning, tuning_of

LINE_BYTES = 64  # bytes of a cache line

#: The ways to multiply pairs of bfloat16, and the time of their products: 1 is the time of products of float32.
VECTORS, MATRICES = 1, 2
PAIRED_TIME = {0: 1, VECTORS: 1 / 2, MATRICES: 1 / 16}


class RegisterTile(NamedTuple):
    """All properties of a machine that may affect the result's bits: the register tile, tuned numbers, scratch limit.

    Stage 1 of planning (direct/order.py) receives only this, not the ``Machine`` with its caches and threads.
    """

    tile_rows: int
    tile_column_bytes: int
    vector_bytes: int
    multiplies_pairs: int  # has instructions for pairs of bfloat16: VECTORS, or MATRICES (tile registers); 0: none
    splits_vectors: bool  # it computes vectors of 64 bytes in two halves, and vectors of 32 bytes twice as fast
    tuning: Tuning
    scratch_bytes: int | None = None  # the scratch limit of a call; None: the limit of plan/scratch.py

    def pairs(self, dtype):
        """The way in which values of a type are multiplied in pairs, VECTORS or MATRICES; or 0."""
        return int(self.multiplies_pairs) if dtype.name == "bfloat16" else 0

    @property
    def halves(self):
        """Whether tiles of half a vector are faster on this machine. They exist only for vectors of 64 bytes."""
        return self.splits_vectors and self.vector_bytes >= LINE_BYTES

    def unsplit(self):
        """This tile without split vectors, for cost models that were fitted without them."""
        return self._replace(splits_vectors=False)


class _Fields(NamedTuple):
    tile_rows: int
    tile_column_bytes: int
    vector_bytes: int
    multiplies_pairs: int
    cache_bytes: int  # of the last-level cache
    threads: int
    splits_vectors: bool = False
    l1_bytes: int = 32 << 10  # of a core's L1 data cache; the default holds for many processors
    l2_bytes: int = 1 << 20
    own_tuning: Tuning | None = None  # replaces the tuning for the machine's vectors
    scratch_bytes: int | None = None  # the limit of ``set_scratch_limit``, which all calls share


class Machine(_Fields):
    """The properties of the machine that plans need: the register tile, the caches, the number of threads."""

    @once
    def tuning(self):
        return self.own_tuning or tuning_of(self.vector_bytes)

    @once
    def tile(self):
        """The ``RegisterTile``: the part of the machine that may affect the result's bits."""
        return RegisterTile(*self[:4], self.splits_vectors, self.tuning, self.scratch_bytes)
