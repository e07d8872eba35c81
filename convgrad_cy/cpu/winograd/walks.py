"""The walks of Winograd's algorithm: taps as far apart as positions, and few of them.

Any walk is taken apart into such ones. Those that differ in positions alone are *siblings*: one product has the tiles
of all of them, as if each had images of its own. Where they differ in taps, their sums are added, or, in wgrad, each
makes a part of the filter.
"""

from functools import lru_cache
from itertools import product
from math import prod
from operator import mul
from typing import NamedTuple

from ...problem import DGRAD, WGRAD, AxisWalk
from ..walks import Walks, walks_of

#: Not for speed: taps on an axis for which there are tiles (``tilings.LARGEST``); longer filters are cut into pieces of
#: PIECE_TAPS.
MOST_TAPS, PIECE_TAPS = 5, 4
#: Not for speed: beyond this many walks a plan would take too much memory.
MOST_TILE_WALKS = 4096


class TileAxis(NamedTuple):
    """An axis on which positions and taps are equally far apart.

    Attributes
    ----------
    walk : problem.AxisWalk
    held : int
        Taps that the filter has; those of the walk beyond are zeros.
    """

    walk: AxisWalk
    held: int


def _pieces(walk):
    """An axis as those of a few taps each. A filter of many taps would need too many points."""
    if walk.taps <= MOST_TAPS:
        return [TileAxis(walk, walk.taps)]
    return [
        TileAxis(walk.part(0, walk.positions, first, PIECE_TAPS), min(PIECE_TAPS, walk.taps - first))
        for first in range(0, walk.taps, PIECE_TAPS)
    ]


def _tile_axes(walk):
    """An axis as axes on which taps are as far apart as positions: for each set of positions, all sets of taps.

    Those of a dilated axis are parted by their remainder modulo the dilation, those of a strided one modulo the stride.
    """
    step, tap = walk.source_step, walk.source_tap
    if walk.taps == 1:
        return [[TileAxis(walk._replace(source_tap=step), 1)]]
    if tap < 0:  # taps in reverse
        last = walk.taps - 1
        reversed_ = walk._replace(
            source_begin=walk.source_begin + last * tap,
            source_tap=-tap,
            filter_begin=walk.filter_begin + last * walk.filter_step,
            filter_step=-walk.filter_step,
        )
        return _tile_axes(reversed_)
    if min(max(tap // step, 1), walk.positions) * walk.taps > MOST_TILE_WALKS * PIECE_TAPS:
        return []
    if tap % step == 0:
        apart = tap // step
        return [
            _pieces(
                walk._replace(
                    positions=-(-(walk.positions - first) // apart),
                    source_begin=walk.source_begin + first * step,
                    source_step=tap,
                    target_begin=walk.target_begin + first * walk.target_step,
                    target_step=walk.target_step * apart,
                )
            )
            for first in range(min(apart, walk.positions))
        ]
    apart = step // tap
    if step % tap or walk.taps % apart:
        return []
    phases = [
        walk._replace(
            taps=walk.taps // apart,
            source_begin=walk.source_begin + first * tap,
            source_tap=step,
            filter_begin=walk.filter_begin + first * walk.filter_step,
            filter_step=walk.filter_step * apart,
        )
        for first in range(apart)
    ]
    return [[piece for phase in phases for piece in _pieces(phase)]]


class TileWalks(NamedTuple):
    """The walks of an operation such that taps and positions are equally far apart.

    Attributes
    ----------
    every : walks.Walks
        The walks as the definition has them.
    parts : list
        A list for each part of the result, a kind of stride phases or, in wgrad, taps: of its siblings, the first of
        which have most positions, each a list of the walks, triples of ``TileAxis``, whose sums are added. None where
        that cannot be.
    counts : list
        How many parts there are of each kind.
    """

    every: Walks
    parts: list
    counts: list


#: What the choice of an algorithm asks about one call, again and again.
_LATEST_CALLS = 4


@lru_cache(maxsize=_LATEST_CALLS)
def tile_walks(operation, problem):
    """The ``TileWalks`` of an operation."""
    every = walks_of(problem, operation == DGRAD)
    return TileWalks(every, *_parts(operation, every))


def _parts(operation, every):
    """The parts and counts of ``TileWalks``."""
    if len(every) > MOST_TILE_WALKS or any(axis.taps == 0 for walk in every.kinds for axis in walk):
        return [], []
    axes = [[_tile_axes(axis) for axis in walk] for walk in every.kinds]
    if not all(map(all, axes)):
        return [], []
    sizes = [prod(sum(map(len, axis)) for axis in walk) for walk in axes]
    if sum(map(mul, sizes, every.counts)) > MOST_TILE_WALKS:
        return [], []
    if operation != WGRAD:
        return [[list(product(*taps)) for taps in product(*walk)] for walk in axes], every.counts
    axes = [[list(zip(*axis, strict=True)) for axis in walk] for walk in axes]  # for each set of taps, all of positions
    parts = [[[walk] for walk in product(*positions)] for walk in axes for positions in product(*walk)]
    return parts, [1] * len(parts)


def first_walks(parts):
    """The first walk of each part: the others have no more positions, and its number of taps."""
    return [[axis.walk for axis in siblings[0][0]] for siblings in parts]


def skips(operation, problem):
    """Whether the walks skip positions that are neighbours on the last axis: of x, and of y."""
    parts = tile_walks(operation, problem).parts
    walks = [walk[2].walk for siblings in parts for added in siblings for walk in added]
    source, target = any(walk.source_step > 1 for walk in walks), any(walk.target_step > 1 for walk in walks)
    return (target, source) if operation == DGRAD else (source, target)


def most_added(operation, problem):
    """Of how many walks the sums are added, at most."""
    return max(len(siblings[0]) for siblings in tile_walks(operation, problem).parts)


def has_parts_of_filter(operation, problem):
    """Whether walks have some of the filter's taps."""
    walks = first_walks(tile_walks(operation, problem).parts)
    return any(prod(axis.taps for axis in walk) < prod(problem.kernel) for walk in walks)
