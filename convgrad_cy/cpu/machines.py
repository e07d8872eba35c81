"""What plans depend on of the machine, and when a second thread pays."""

from pathlib import Path
from typing import NamedTuple

from .tuning import Tuning, tuning_of

LINE_BYTES = 64  # of the cache

#: Below this many products, starting a second thread costs more than it saves, unless a large filter has to be read;
#: where each element that is read or written takes part in few of them, as in a depthwise problem, an eighth of that.
SERIAL_MULTIPLICATIONS = 4_000_000


class Tile(NamedTuple):
    """The register tile: all of a machine that may reach the bits of a result."""

    tile_rows: int
    tile_column_bytes: int
    vector_bytes: int
    multiplies_pairs: bool  # of bfloat16
    splits_vectors: bool  # vectors of 64 bytes, into halves, of which it multiplies twice as many
    tuning: Tuning

    @property
    def halves(self):
        """Whether it gains from tiles of half a vector, which there are of 64 bytes alone."""
        return self.splits_vectors and self.vector_bytes >= LINE_BYTES

    def unsplit(self):
        """As if it did not, for models that were fitted so."""
        return self._replace(splits_vectors=False)


class Machine(NamedTuple):
    """What a plan needs to know of the machine: the register tile, the last cache, the number of threads."""

    tile_rows: int
    tile_column_bytes: int
    vector_bytes: int
    multiplies_pairs: bool
    cache_bytes: int  # of the last cache
    threads: int
    splits_vectors: bool = False
    tuning: Tuning | None = None  # other numbers than those of its vectors

    @property
    def tile(self):
        """What the first stage of planning sees of it."""
        return Tile(*self[:4], self.splits_vectors, self.tuning or tuning_of(self.vector_bytes))


def last_cache_bytes():
    """Size of the last cache, or a common one where the system does not say."""
    try:
        return int(Path("/sys/devices/system/cpu/cpu0/cache/index3/size").read_text().removesuffix("K\n")) << 10
    except (OSError, ValueError):
        return 32 << 20
