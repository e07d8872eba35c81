"""The integers of a plan: rows of steps, and the blocks of the kernels' loops."""

from typing import Any, NamedTuple

import numpy as np

from ...problem import AxisWalk

#: Columns of the walk in a row of any plan: the fields of ``AxisWalk`` on the axes depth, height, width.
WALK_COLUMNS = 3 * len(AxisWalk._fields)
#: Columns of a row of a ``TilePlan`` after its walk, each on three axes: points of a tile, its positions of the target,
#: tiles of a box, and taps of the filter in this walk.
POINTS, TILE_SIZES, BOX_TILES, HELD_TAPS = (slice(WALK_COLUMNS + 3 * i, WALK_COLUMNS + 3 * i + 3) for i in range(4))
#: The last two columns: the number of consecutive walks whose sums are added, and the number of siblings
#: (winograd/walks.py).
ADDED, SIBLINGS = HELD_TAPS.stop, HELD_TAPS.stop + 1
#: A value of the last column of ``Plan.steps``: the row only packs the filter, for the rows that follow.
PACKS = -1


class WindowAxis(NamedTuple):
    """One axis of a window (pyx/copy/window.pxd): position p and tap t are at ``p * step + t * tap + begin``.

    Usually taps share the elements of a window, and ``step`` and ``tap`` are the steps of the walk. If ``apart``, the
    window has a separate copy for each tap, one after the other: ``step`` is 1 and ``tap`` is the length of a copy.
    """

    positions: int  # of a box
    extent: int  # elements along the axis
    apart: bool  # each tap has its own copy of its elements
    step: int
    tap: int
    begin: int


class Blocks(NamedTuple):
    """Block sizes and flags of the loops of ``pyx/``. The struct ``Blocks`` there has the same fields in this order."""

    threads: int  # of the call
    lanewise: bool  # small groups: a block of outputs is a block of lanes
    positions_across: bool  # fprop and dgrad: the columns of a tile are positions of a row, not output channels
    images: int  # batch extent of a box
    chunk: int  # channels of a window
    outputs: int  # output channels of a task; in small groups, lanes
    slices: int  # wgrad: tasks among which the boxes of one block of the filter are divided
    nontemporal: bool  # whole lines of the target are written with non-temporal stores
    prefetch: int  # small groups prefetch the source: 0, not; 1, for later positions of a row; 2, for the next row
    packs: bool  # fprop and dgrad: each task packs its part of the filter
    pairs: int  # the tile multiplies pairs of bfloat16: VECTORS or MATRICES of cpu/machine, or 0
    groups: int = 1  # neighbouring groups that a task takes, with all their channels in one window
    phases: int = 1  # dgrad: walks (stride phases) that a task computes together
    target_in_memory: bool = False  # wgrad reads its target from memory, not from the cache
    pack_channels: int = 0  # fprop and dgrad: channels of the filter that one packing task packs, at most a chunk
    spreads: int = 0  # small groups use the spreading tile: 0, not; 1, on copies; 2, on source and target in place
    heights: int = 1  # wgrad of small groups: rows of positions summed for one vector of lanes, then for the next
    bands: int = 1  # wgrad of small groups: boxes, one below the other, that stay in one slice (small_groups/boxes.py)


class TileBlocks(NamedTuple):
    """Block sizes and flags of the loops of ``pyx/winograd/``. The struct ``TileBlocks`` there has the same fields.

    ``images``: batch extent of a box of tiles; each sibling counts as images of its own. ``chunk``: channels of a
    window. ``outputs``: output channels of a block. ``filters_kept``: output channels whose transformed filters are
    kept at a time; if 0, each task transforms the filters that it needs. ``tiles_kept``: transformed tiles of the
    source are kept for all blocks of outputs. ``slices``: in wgrad, tasks among which the boxes of one block of the
    filter are divided. ``chunks_at_once``: chunks that a task of fprop or dgrad transforms before it multiplies.
    ``groups``: neighbouring groups that a task takes, with all their channels in one window and all their outputs in
    one block. ``nontemporal``: a target of whole lines is written with non-temporal stores. ``filter_strips``,
    ``filter_channels``: strips and channels of the filter that one transforming task transforms. ``together``: parts of
    the result of fprop or dgrad (stride phases) that the same loops compute.
    """

    threads: int
    images: int
    chunk: int
    outputs: int
    filters_kept: int
    tiles_kept: bool
    slices: int
    chunks_at_once: int
    groups: int
    nontemporal: bool = False
    filter_strips: int = 1
    filter_channels: int = 1
    together: int = 1


class Reads(NamedTuple):
    """The choices of a step about its reads. The struct ``Reads`` of ``pyx/`` has the same fields.

    ``copies``: a window is faster than the source itself. ``channels_inside``: in wgrad of a channels-last source,
    neighbours in the window are channels, not positions. ``strips``: tiles read the filter in place, without
    packing, where its outputs are whole adjacent vectors. Only plans whose tasks pack the filter use it.
    """

    copies: bool = False
    channels_inside: bool = False
    strips: bool = False


class Plan(NamedTuple):
    """One operation on one problem, ready for the kernels.

    Attributes
    ----------
    steps : numpy.ndarray
        One int64 row for each walk, in the order of execution: the fields of three ``problem.AxisWalk``, of three
        ``WindowAxis`` and of ``Reads``, and the index of the row that packs the filter, usually the row's own index.
        If it is ``PACKS``, the row only packs the filter, and the parts of its walk follow.
    blocks : numpy.ndarray
        A ``Blocks``, as int64.
    form : str
        Name of the form that direct uses for fprop or dgrad.
    refusals : list
        The forms that declined before it, as pairs of name and reason.
    """

    steps: np.ndarray
    blocks: np.ndarray
    form: str | None = None
    refusals: Any = ()


class Outline(NamedTuple):
    """A plan with rows for only one walk of each shape class.

    Attributes
    ----------
    all_walks : walks.Walks
    rows : list
        The rows of each shape class. Their last column, the row that packs the filter, counts from the walk's first
        row.
    blocks : Blocks
    form, refusals
        As in ``Plan``.
    """

    all_walks: Any
    rows: list
    blocks: Any
    form: str | None = None
    refusals: Any = ()

    def plan(self):
        """The plan, with the rows of all walks."""
        steps, first = self.all_walks.rows(self.rows)
        if len(self.all_walks) > 1:
            steps[:, -1] += np.where(steps[:, -1] == PACKS, 0, first)
        return Plan(steps, np.array(self.blocks, np.int64), self.form, self.refusals)


def same_reads(reads):
    """A function that returns these ``Reads`` for all rows."""
    return lambda walk, window: reads


def _row(walk, window, reads, packed):
    return [*sum(walk, ()), *sum(window, ()), *reads(walk, window), packed]


_AS_IS = same_reads(Reads())


def whole_rows(parts, windows, reads=_AS_IS):
    """Rows of the parts of each shape class; each row packs its own filter. ``reads`` gives the ``Reads`` of a row."""
    windows = iter(windows)
    return [[_row(part, next(windows), reads, i) for i, part in enumerate(own)] for own in parts]


def split_rows(walks, parts, windows, reads):
    """Rows of the parts of each shape class, after one row that packs the filter of the walk for all of its parts."""
    rows, windows = [], iter(windows)
    for walk, own in zip(walks, parts, strict=True):
        own = [(part, next(windows)) for part in own]
        rows.append([_row(walk, own[0][1], reads, PACKS), *(_row(*each, reads, 0) for each in own)])
    return rows
