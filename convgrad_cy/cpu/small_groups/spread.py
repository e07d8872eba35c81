"""Vectors of the spreading tile, which permutes vectors of the source in registers (``pyx/tile/spread.h``)."""

from typing import NamedTuple

from ...problem import WGRAD

#: Maximum taps along the width for the spreading tile, as in pyx/tile/spread.h.
SPREAD_PARTS = 16


class Vectors(NamedTuple):
    """The contents of a vector of the spreading tile: whole groups."""

    groups: int  # in a vector
    words: int  # elements of the source for each group
    pairs: bool  # the elements are pairs of bfloat16


def spread_of(sums):
    """The ``Vectors`` of the spreading tile, or None if it is not used.

    It is used only for sums in float32, and for vectors that an instruction can permute. It is not used for

    - short rows: a tile needs several independent sums;
    - few groups: most of a vector would be empty;
    - few taps: their products take less time than the copies.
    """
    channels, outputs, rows = sums.channels, sums.outputs, [walk[2] for walk in sums.walks]
    if sums.dtype.compute != "float32" or sums.tile.vector_bytes < 32 or not 1 < max(channels, outputs) <= sums.lanes:
        return None
    if max(row.taps for row in rows) > SPREAD_PARTS or sums.taps < sums.tuning.spread_taps:
        return None
    alike = sums.operation != WGRAD and sums.count == 1 and rows[0].source_step == 1
    if alike and max(channels, outputs) > sums.tuning.most_spread_channels:
        return None
    # With other odd numbers, the tile takes one channel at a time (SPREAD_TOGETHER of pyx/tile/slide.c): too few sums.
    if sums.operation == WGRAD and channels % 2 and channels != 3:
        return None
    if max(row.positions for row in rows) < sums.tuning.spread_positions:
        return None
    pairs = sums.multiplies_pairs and sums.operation != WGRAD and channels % 2 == 0
    words = channels // 2 if pairs else channels
    groups = sums.lanes // max(words, outputs)
    return Vectors(groups, words, pairs) if 2 * sums.groups >= groups else None


def serve_as_they_are(sums, spread):
    """Whether source and target can be used in place if channels are adjacent in memory: no vector ends in a group."""
    if sums.channels != sums.outputs or sums.groups * sums.outputs % sums.lanes:
        return False
    return sums.channels == 1 or (spread is not None and not spread.pairs and sums.lanes % sums.outputs == 0)
