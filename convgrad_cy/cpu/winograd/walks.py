"""The walks of Winograd's algorithm: few taps, and neighbouring taps are as far apart as neighbouring positions.

Other walks are split into such walks. Walks that differ only in positions are *siblings*: one product computes the
tiles of all siblings, as if each had its own images. The sums of walks that differ in taps are added; in wgrad, each
of them computes a part of the result.

There may be thousands of walks that differ only in where they begin. Costs are computed for one of them. Only the rows
of a plan contain all.
"""

from collections import Counter
from functools import lru_cache
from math import prod
from operator import mul
from typing import NamedTuple

import numpy as np

from ...problem import DGRAD, WGRAD, AxisWalk
from ..plan.steps import BOX_TILES
from ..plan.walks import Walks, walks_of

#: Maximum taps of a tile on an axis (``tilings.TILES_8``). Longer filters are split into pieces of PIECE_TAPS.
MOST_TAPS, PIECE_TAPS = 5, 4
#: A plan of more walks would take too much memory.
MOST_TILE_WALKS = 4096


class TileAxis(NamedTuple):
    """An axis, split into sets of positions and sets of taps. Each pair of sets is an axis for Winograd's algorithm.

    Attributes
    ----------
    whole : problem.AxisWalk
        The axis before the split, with its taps in ascending order.
    position_phases : int
        With dilation, the positions of a set have the same remainder modulo ``position_phases``.
    tap_phases : int
        With a stride, the taps of a set have the same remainder modulo ``tap_phases``.
    taps : int
        Taps of a set. Many taps would need too many points, so the taps of a phase may be split into several sets.
    siblings, sets : int
        Number of sets of positions, and of sets of taps.
    """

    whole: AxisWalk
    position_phases: int
    tap_phases: int
    taps: int
    siblings: int
    sets: int

    def walk(self, first=0, tap=0):
        """The walk of the sets that begin at position ``first`` and tap ``tap``, integers or arrays.

        By default, it is the walk with the most positions.
        """
        whole, apart, phases = self.whole, self.position_phases, self.tap_phases
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
        """The first tap of each set: all pieces of the first phase, then all pieces of the next."""
        pieces = self.sets // self.tap_phases
        return (np.arange(self.tap_phases)[:, None] + np.arange(pieces) * (PIECE_TAPS * self.tap_phases)).ravel()

    def held(self, tap):
        """Number of taps of the filter in the set that begins at ``tap``. The other taps of its walk are zeros."""
        left = self.whole.taps // self.tap_phases - tap // self.tap_phases
        return left if self.sets == 1 else np.minimum(self.taps, left)


def _tile_axis(walk):
    """The ``TileAxis`` of an axis, or None if it cannot be split in this way."""
    step, apart, phases = walk.source_step, 1, 1
    if walk.taps < 1 or walk.positions < 1:
        return None
    if walk.taps == 1:
        walk = walk._replace(source_tap=step)
    elif walk.source_tap < 0:  # taps are reversed
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
    """Parts of the result that cost the same: stride phases or, in wgrad, sets of taps.

    Attributes
    ----------
    walk : tuple of problem.AxisWalk
        The first walk of a part; no other has more positions.
    siblings, added : int
        Walks of a part whose tiles one product computes, and walks whose sums are added.
    alike : int
        Number of parts.
    """

    walk: tuple
    siblings: int
    added: int
    alike: int


class TileWalks(NamedTuple):
    """The walks of an operation, split so that taps and positions are equally far apart.

    Attributes
    ----------
    all_walks : walks.Walks
        The walks of the definition.
    shapes : list
        For each of their shape classes, the ``TileAxis`` of each axis; empty if a walk cannot be split in this way.
    parts : list of WalkPart
    """

    all_walks: Walks
    shapes: list
    parts: list


#: Size of the lru_cache. The choice of an algorithm needs the same walks many times.
_LATEST_CALLS = 4


@lru_cache(maxsize=_LATEST_CALLS)
def tile_walks(operation, problem):
    """The ``TileWalks`` of an operation; empty if there are more than ``MOST_TILE_WALKS`` walks."""
    if operation == DGRAD and problem.count_backward_phases() > MOST_TILE_WALKS:
        return TileWalks(None, [], [])
    all_walks = walks_of(problem, operation == DGRAD)
    shapes = _tile_axes(all_walks)
    return TileWalks(all_walks, shapes, _parts(operation, shapes, all_walks.counts))


def _tile_axes(all_walks):
    """The ``shapes`` of ``TileWalks``."""
    axes = {axis: _tile_axis(axis) for walk in all_walks.shapes for axis in walk}
    if not all(axes.values()):
        return []
    shapes = [tuple([axes[axis] for axis in walk]) for walk in all_walks.shapes]
    sizes = [prod([axis.siblings * axis.sets for axis in walk]) for walk in shapes]
    return shapes if sum(map(mul, sizes, all_walks.counts)) <= MOST_TILE_WALKS else []


def _parts(operation, shapes, counts):
    """The ``parts`` of ``TileWalks``: shape classes with the same positions and taps on each axis are alike."""
    first, alike = {}, Counter()
    for shape, count in zip(shapes, counts, strict=False):
        key = tuple([(axis.whole.positions, axis.whole.taps) for axis in shape])
        first.setdefault(key, shape)
        alike[key] += count
    parts = []
    for key, shape in first.items():
        siblings, sets = prod([axis.siblings for axis in shape]), prod([axis.sets for axis in shape])
        added, count = (1, sets) if operation == WGRAD else (sets, alike[key])
        parts.append(WalkPart(tuple([axis.walk() for axis in shape]), siblings, added, count))
    return parts


def tile_rows(operation, shape, ends):
    """The rows of all walks of a shape class: [fields of the axes, *ends, taps of the filter, walks added, siblings].

    ``ends``: points of a tile, its positions of the target, and tiles of a box, each on three axes. The rows are sorted
    by siblings, then by the walks that are added; in wgrad by parts of the result, then by siblings.
    """
    siblings, sets = [axis.siblings for axis in shape], [axis.sets for axis in shape]
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
    """Two flags: whether walks skip neighbouring positions on the last axis of x, and of y."""
    rows = [part.walk[2] for part in tile_walks(operation, problem).parts]
    source, target = any(row.source_step > 1 for row in rows), any(row.target_step > 1 for row in rows)
    return (target, source) if operation == DGRAD else (source, target)


def most_added(operation, problem):
    """Maximum number of walks whose sums are added."""
    return max(part.added for part in tile_walks(operation, problem).parts)


def has_parts_of_filter(operation, problem):
    """Whether some walk has only a part of the filter's taps."""
    parts = tile_walks(operation, problem).parts
    return any(prod(axis.taps for axis in part.walk) < prod(problem.kernel) for part in parts)


def tiles_of_box(made):
    """Tiles of a box of a ``TilePlan``, on the axes depth, height, width."""
    return made.steps[0, BOX_TILES].tolist()


def points_of(tiling, walks):
    """Points of a tile on the axes of each walk."""
    return [[table[axis.taps] for table, axis in zip(tiling, walk, strict=True)] for walk in walks]


def points_and_outputs(tiling, walks):
    """Points of a tile and its positions of the target (m of F(m, r)), on the axes of each walk."""
    points = points_of(tiling, walks)
    each = zip(points, walks, strict=True)
    return points, [[n + 1 - axis.taps for n, axis in zip(row, walk, strict=True)] for row, walk in each]
