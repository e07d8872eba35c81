"""The integers of a plan: rows of steps, and the blocks of the kernels' loops."""

from typing import Any, NamedTuple

import numpy as np

#: Mark in a row of ``Plan.steps``: the row only packs the filter for the rows that follow.
PACKS = -1


class WindowAxis(NamedTuple):
    """One axis of a window (pyx/copy/window.pxd): position p and tap t are at ``p * step + t * tap + begin``."""

    positions: int
    extent: int
    apart: bool
    step: int
    tap: int
    begin: int


class Blocks(NamedTuple):
    """Block sizes and flags of the loops of ``pyx/``. The struct ``Blocks`` there has the same fields in this order.

    ``lanewise``: small groups; a block of outputs is a block of lanes. ``positions_across``: the columns of a tile are
    positions of a row, not output channels. ``images``: batch extent of a box. ``chunk``: channels of a window.
    ``outputs``: output channels of a block. ``slices``: in wgrad, tasks that share the boxes of one block of the
    filter. ``nontemporal``: whole lines of the target are written with non-temporal stores. ``prefetch``: small groups
    prefetch the source: 1, for later positions of a row; 2, for the next row. ``packs``: each task packs its part of
    the filter. ``pairs``: the tile multiplies pairs of bfloat16. ``groups``: neighbouring groups that a task takes,
    with all their channels in one window. ``phases``: walks that a task computes together. ``target_in_memory``: wgrad
    reads its target from memory, not from the cache. ``pack_channels``: channels of the filter that one packing task
    packs, at most a chunk. ``spreads``: small groups of several channels use the spreading tile, on copies (1), or on
    source and target themselves, whose lanes are adjacent (2). ``heights``: in wgrad of small groups, rows of positions
    that are summed for one vector of lanes before the next vector. ``bands``: boxes, one below the other, that always
    belong to one slice.
    """

    threads: int
    lanewise: bool
    positions_across: bool
    images: int
    chunk: int
    outputs: int
    slices: int
    nontemporal: bool
    prefetch: int
    packs: bool
    pairs: bool
    groups: int = 1
    phases: int = 1
    target_in_memory: bool = False
    pack_channels: int = 0
    spreads: int = 0
    heights: int = 1
    bands: int = 1


class TileBlocks(NamedTuple):
    """Block sizes and flags of the loops of ``pyx/winograd/``. The struct ``TileBlocks`` there has the same fields.

    ``images``: batch extent of a box of tiles; each sibling counts as images of its own. ``chunk``: channels of a
    window. ``outputs``: output channels of a block. ``filters_kept``: output channels whose transformed filters are
    kept at a time; with 0, each task transforms its own. ``tiles_kept``: transformed tiles of the source are kept for
    all blocks of outputs. ``slices``: in wgrad, tasks that share the boxes of one block of the filter.
    ``chunks_at_once``: chunks that a task of fprop or dgrad transforms before it multiplies. ``groups``: neighbouring
    groups that a task takes, with all their channels in one window and all their outputs in one block.
    ``nontemporal``: a target of whole lines is written with non-temporal stores. ``filter_strips``,
    ``filter_channels``: strips and channels of the filter that one transforming task transforms. ``together``: parts
    of the result of fprop or dgrad (stride phases) that the same loops compute.
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
    neighbours in the window are channels, not positions. ``strips``: if tasks pack the filter, tiles read whole vectors
    of the unpacked filter where this is possible.
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
        ``WindowAxis`` and of ``Reads``, and the number of the row that packs the filter, usually the row's own. A row
        with ``PACKS`` there only packs the filter; the parts of its walk follow.
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
    every : walks.Walks
    rows : list
        The rows of each shape class. Numbers of rows in them count from the walk's first row.
    blocks : Blocks
    form, refusals
        As in ``Plan``.
    """

    every: Any
    rows: list
    blocks: Any
    form: str | None = None
    refusals: Any = ()

    def plan(self):
        """The plan, with the rows of all walks."""
        steps, first = self.every.rows(self.rows)
        if len(self.every) > 1:
            steps[:, -1] += np.where(steps[:, -1] == PACKS, 0, first)
        return Plan(steps, np.array(self.blocks, np.int64), self.form, self.refusals)


def same_reads(reads):
    """A function that gives the same ``Reads`` for all rows."""
    return lambda walk, window: reads


def _row(walk, window, reads, packed):
    return [*sum(walk, ()), *sum(window, ()), *reads(walk, window), packed]


_AS_IS = same_reads(Reads())


def whole_rows(parts, windows, reads=_AS_IS):
    """Rows of the parts of each shape class; each row packs its own filter. ``reads`` gives the ``Reads`` of a row."""
    windows = iter(windows)
    return [[_row(part, next(windows), reads, i) for i, part in enumerate(own)] for own in parts]


def cut_rows(walks, parts, windows, reads):
    """Rows of the parts of each shape class, after one row that packs the filter of the walk for all of its parts."""
    rows, windows = [], iter(windows)
    for walk, own in zip(walks, parts, strict=True):
        own = [(part, next(windows)) for part in own]
        rows.append([_row(walk, own[0][1], reads, PACKS), *(_row(*each, reads, 0) for each in own)])
    return rows
