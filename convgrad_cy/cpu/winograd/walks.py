"""The walks of Winograd's algorithm: taps as far apart as positions, and few of them.

Any walk is taken apart into such ones. Those that differ in positions alone are *siblings*: one product has the tiles
of all of them, as if each had images of its own. Where they differ in taps, their sums are added, or, in wgrad, each
makes a part of the filter.

There may be thousands, which differ only in where they begin: what they cost is asked of one, and only a plan's rows
have them all.
"""

from collections import Counter
from functools import lru_cache
from math import prod
from operator import mul
from typing import NamedTuple

import numpy as np

from ...problem import DGRAD, WGRAD, AxisWalk
from ..plan.walks import Walks, walks_of

#: Not for speed: taps on an axis for which there are tiles (``tilings.TILES_8``); longer filters are cut into pieces of
#: PIECE_TAPS.
MOST_TAPS, PIECE_TAPS = 5, 4
#: Not for speed: beyond this many walks a plan would take too much memory.
MOST_TILE_WALKS = 4096


class TileAxis(NamedTuple):
    """An axis as axes on which positions and taps are equally far apart: for each set of positions, all sets of taps.

    Attributes
    ----------
    whole : problem.AxisWalk
        The axis before it is taken apart, its taps in ascending order.
    apart : int
        Positions of a dilated axis are parted by their remainder modulo this.
    phases : int
        The taps of a strided one likewise.
    taps : int
        Of a set. A filter of many taps would need too many points: so those of a phase are cut into pieces.
    siblings, sets : int
        How many sets of positions and of taps there are.
    """

    whole: AxisWalk
    apart: int
    phases: int
    taps: int
    siblings: int
    sets: int

    def walk(self, first=0, tap=0):
        """That of the set with this first position and this first tap, which may be arrays: no other has more."""
        whole, apart, phases = self.whole, self.apart, self.phases
        return AxisWalk(
            positions=-(-(whole.positions - first) // apart),
            taps=self.taps,
            source_size=whole.source_size,
            source_begin=whole.source_begin + first * whole.source_step + tap * whole.source_tap,
            source_step=whole.source_step * apart,
            source_tap=whole.source_tap * phases,
            target_begin=whole.target_begin + first * whole.target_step,
            target_step=whole.target_step * apart,
            filter_begin=whole.filter_begin + tap * whole.filter_step,
            filter_step=whole.filter_step * phases,
        )

    def first_taps(self):
        """Of all sets: pieces of one phase after those of another."""
        pieces = self.sets // self.phases
        return (np.arange(self.phases)[:, None] + np.arange(pieces) * (PIECE_TAPS * self.phases)).ravel()

    def held(self, tap):
        """Taps that the filter has of the set with this first one; those of the walk beyond are zeros."""
        left = self.whole.taps // self.phases - tap // self.phases
        return left if self.sets == 1 else np.minimum(self.taps, left)


def _tile_axis(walk):
    """The ``TileAxis`` of an axis, or None where there is none."""
    step, apart, phases = walk.source_step, 1, 1
    if walk.taps < 1 or walk.positions < 1:
        return None
    if walk.taps == 1:
        walk = walk._replace(source_tap=step)
    elif walk.source_tap < 0:  # taps in reverse
        last = walk.taps - 1
        walk = walk._replace(
            source_begin=walk.source_begin + last * walk.source_tap,
            source_tap=-walk.source_tap,
            filter_begin=walk.filter_begin + last * walk.filter_step,
            filter_step=-walk.filter_step,
        )
    tap = walk.source_tap
    if tap % step == 0:
        apart = tap // step
    elif step % tap == 0 and walk.taps % (step // tap) == 0:
        phases = step // tap
    else:
        return None
    taps = walk.taps // phases
    pieces = 1 if taps <= MOST_TAPS else -(-taps // PIECE_TAPS)
    siblings = min(apart, walk.positions)
    return TileAxis(walk, apart, phases, taps if pieces == 1 else PIECE_TAPS, siblings, phases * pieces)


class WalkPart(NamedTuple):
    """What alike parts of the result cost: stride phases or, in wgrad, taps.

    Attributes
    ----------
    walk : tuple of problem.AxisWalk
        A first one of each: no other has more positions.
    siblings, added : int
        Walks of a part whose tiles are those of one product, and of which the sums are added.
    alike : int
        How many parts there are.
    """

    walk: tuple
    siblings: int
    added: int
    alike: int


class TileWalks(NamedTuple):
    """The walks of an operation such that taps and positions are equally far apart.

    Attributes
    ----------
    every : walks.Walks
        The walks as the definition has them.
    shapes : list
        For each of their shape classes the ``TileAxis`` of its axes; none where that cannot be.
    parts : list of WalkPart
    """

    every: Walks
    shapes: list
    parts: list


#: What the choice of an algorithm asks about one call, again and again.
_LATEST_CALLS = 4


@lru_cache(maxsize=_LATEST_CALLS)
def tile_walks(operation, problem):
    """The ``TileWalks`` of an operation; without any walk where there are too many."""
    if operation == DGRAD and problem.count_backward_phases() > MOST_TILE_WALKS:
        return TileWalks(None, [], [])
    every = walks_of(problem, operation == DGRAD)
    shapes = _tile_axes(every)
    return TileWalks(every, shapes, _parts(operation, shapes, every.counts))


def _tile_axes(every):
    """The ``shapes`` of ``TileWalks``."""
    axes = {axis: _tile_axis(axis) for walk in every.shapes for axis in walk}
    if not all(axes.values()):
        return []
    shapes = [tuple([axes[axis] for axis in walk]) for walk in every.shapes]
    sizes = [prod([axis.siblings * axis.sets for axis in walk]) for walk in shapes]
    return shapes if sum(map(mul, sizes, every.counts)) <= MOST_TILE_WALKS else []


def _parts(operation, shapes, counts):
    """The ``parts`` of ``TileWalks``: shape classes that differ in where they begin alone are one."""
    first, alike = {}, Counter()
    for shape, count in zip(shapes, counts, strict=False):
        key = tuple([(axis.whole.positions, axis.whole.taps) for axis in shape])
        first.setdefault(key, shape)
        alike[key] += count
    parts = []
    for key, shape in first.items():
        siblings, sets = (prod([axis[i] for axis in shape]) for i in (-2, -1))
        added, count = (1, sets) if operation == WGRAD else (sets, alike[key])
        parts.append(WalkPart(tuple([axis.walk() for axis in shape]), siblings, added, count))
    return parts


def tile_rows(operation, shape, ends):
    """The rows of all walks of a shape class: fields of its axes, taps that the filter holds, walks added, siblings.

    ``ends``: what stands between them, ``[points, outputs, tiles of a box]`` of the axes. First come siblings, of each
    all walks that are added; in wgrad first parts of the filter, of each all siblings.
    """
    siblings, sets = ([axis[i] for axis in shape] for i in (-2, -1))
    extents = sets + siblings if operation == WGRAD else siblings + sets
    of_positions, of_taps = (3, 0) if operation == WGRAD else (0, 3)
    counts = [1 if operation == WGRAD else prod(sets), prod(siblings)]
    columns, held = [], []
    for i, axis in enumerate(shape):
        first, tap = 0, 0
        if axis.siblings > 1:
            first = np.arange(axis.siblings).reshape([-1] + [1] * (5 - i - of_positions))
        if axis.sets > 1:
            tap = axis.first_taps().reshape([-1] + [1] * (5 - i - of_taps))
        columns += axis.walk(first, tap)
        held.append(axis.held(tap))
    columns += [*ends, *held, *counts]
    if prod(extents) == 1:
        return [columns]
    rows = np.empty((*extents, len(columns)), np.int64)
    for i, column in enumerate(columns):
        rows[..., i] = column
    return rows.reshape(-1, len(columns))


def skips(operation, problem):
    """Whether the walks skip positions that are neighbours on the last axis: of x, and of y."""
    rows = [part.walk[2] for part in tile_walks(operation, problem).parts]
    source, target = any(row.source_step > 1 for row in rows), any(row.target_step > 1 for row in rows)
    return (target, source) if operation == DGRAD else (source, target)


def most_added(operation, problem):
    """Of how many walks the sums are added, at most."""
    return max(part.added for part in tile_walks(operation, problem).parts)


def has_parts_of_filter(operation, problem):
    """Whether walks have some of the filter's taps."""
    parts = tile_walks(operation, problem).parts
    return any(prod(axis.taps for axis in part.walk) < prod(problem.kernel) for part in parts)


def tiles_of_box(made):
    """Of a ``TilePlan``, on the axes depth, height, width as ``tile_rows`` has them."""
    return made.steps[0, 36:39].tolist()


def points_of(tiling, walks):
    """The points on the axes of each walk."""
    return [[table[axis.taps] for table, axis in zip(tiling, walk, strict=True)] for walk in walks]


def points_and_outputs(tiling, walks):
    """Those of a tile on the axes of each walk."""
    points = points_of(tiling, walks)
    each = zip(points, walks, strict=True)
    return points, [[n + 1 - axis.taps for n, axis in zip(row, walk, strict=True)] for row, walk in each]
