"""Vectors of the spreading tile, which makes vectors of lanes from those of the source (``pyx/tile/spread.h``)."""

from typing import NamedTuple

from ...problem import WGRAD

#: Not for speed: taps of the width that the spreading tile takes, as pyx/tile/spread.h has it.
SPREAD_PARTS = 16


class Vectors(NamedTuple):
    """What vectors of the spreading tile have: so many groups, whole ones, with so many elements of the source each."""

    groups: int
    words: int
    pairs: bool  # the elements are pairs of bfloat16


def spread_of(sums):
    """The ``Vectors`` of the spreading tile, or None where it does not serve.

    Of other types, and of vectors that no instruction permutes, a task copies a vector for each channel. Short rows
    have few sums, which would wait for each other; few groups leave most of a vector empty; few taps are less work than
    the copies of what they see.
    """
    channels, outputs, rows = sums.channels, sums.outputs, [walk[2] for walk in sums.walks]
    if sums.dtype.compute != "float32" or sums.tile.vector_bytes < 32 or not 1 < max(channels, outputs) <= sums.lanes:
        return None
    if max(row.taps for row in rows) > SPREAD_PARTS or sums.taps < sums.tuning.spread_taps:
        return None
    alike = sums.operation != WGRAD and sums.count == 1 and rows[0].source_step == 1
    if alike and max(channels, outputs) > sums.tuning.most_spread_channels:
        return None
    if sums.operation == WGRAD and channels % 2 and channels != 3:  # taken one by one, they have too few sums
        return None
    if max(row.positions for row in rows) < sums.tuning.spread_positions:
        return None
    pairs = sums.multiplies_pairs and sums.operation != WGRAD and channels % 2 == 0
    words = channels // 2 if pairs else channels
    groups = sums.lanes // max(words, outputs)
    return Vectors(groups, words, pairs) if 2 * sums.groups >= groups else None


def serve_as_they_are(sums, spread):
    """Whether source and target do where lanes are adjacent: no vector of either ends inside a group."""
    if sums.channels != sums.outputs or sums.groups * sums.outputs % sums.lanes:
        return False
    return sums.channels == 1 or (spread is not None and not spread.pairs and sums.lanes % sums.outputs == 0)
