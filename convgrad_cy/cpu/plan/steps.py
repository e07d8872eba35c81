"""The integers that tell a kernel its work: rows of steps, and the blocks of their loops."""

from typing import Any, NamedTuple

import numpy as np

#: Of a row of ``Plan.steps``: it packs the filter of the rows that follow.
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
    """The integers that steer the loops of ``pyx/``; the fields and their order are those of ``Blocks`` there.

    ``lanewise``: small groups side by side, a block of outputs being lanes. ``positions_across``: the
    columns of a tile are positions of a row, not output channels. ``images``: batch extent of a box of positions.
    ``chunk``: channels of a window. ``outputs``: output channels of a block. ``slices``: tasks that share the boxes of
    one block of the filter. ``nontemporal``: the target is stored past the cache, where it is whole lines.
    ``prefetch``: the source of lanes is prefetched: 1, for later positions of a row; 2, for the next row. ``packs``:
    each task packs its part of the filter. ``pairs``: the tile takes pairs of bfloat16. ``groups``: neighbours that a
    task takes, with all their channels in one window. ``phases``: walks that a task computes together.
    ``target_in_memory``: the target, which wgrad reads, comes from memory. ``pack_channels``: of a chunk of the filter,
    which a task packs that has no products. ``spreads``: small groups of several channels take the spreading tile, on
    copies (1), or on source and target where lanes are adjacent (2). In their wgrad, ``heights``: rows of positions
    that are summed for a vector of lanes before the next. ``bands``: boxes, one below the other, which no slice ends
    between.
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
    """The integers that steer the loops of ``pyx/winograd/``; the fields are those of ``TileBlocks`` there.

    ``images``: of a box of tiles, those of each sibling counted. ``chunk``: channels of a window. ``outputs``: output
    channels of a block. ``filters_kept``: output channels whose transformed filters are kept at a time; 0: a task
    transforms its own. ``tiles_kept``: transformed tiles of the source are kept for all blocks of outputs. ``slices``:
    tasks that share the boxes of one block of the filter. ``chunks_at_once``: chunks that a task of fprop or dgrad
    transforms before it multiplies. ``groups``: neighbours that a task takes, with all their channels in one window and
    all their outputs in one block. ``nontemporal``: a target of whole lines is stored past the cache.
    ``filter_strips``, ``filter_channels``: of a group, whose filters a task transforms that has no products.
    ``together``: parts of the result of fprop or dgrad, stride phases, whose tasks are those of the same loops.
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
    """How a step reads its operands where it has the choice; the fields are those of ``Reads`` in ``pyx/``.

    ``copies``: a window is faster than the source itself. ``channels_inside``: in wgrad, neighbours in the window of a
    source of channels last are channels, not positions. ``strips``: where each task packs its part of the filter, tiles
    read whole vectors of the filter itself, if they can.
    """

    copies: bool = False
    channels_inside: bool = False
    strips: bool = False


class Plan(NamedTuple):
    """One operation on one problem, ready for the kernels.

    Attributes
    ----------
    steps : numpy.ndarray
        The walks to carry out one after the other, each with its window: int64, one row for each, the fields of three
        ``problem.AxisWalk``, of three ``WindowAxis``, of ``Reads``, and the row for whose taps the filter is packed,
        most often this one. With a ``PACKS`` there, that is all that a row does: parts of its walk follow.
    blocks : numpy.ndarray
        A ``Blocks``, as int64.
    form : str
        What direct makes of fprop or dgrad, by a form's name.
    refusals : list
        The forms before it, each by its name and its reason.
    """

    steps: np.ndarray
    blocks: np.ndarray
    form: str | None = None
    refusals: Any = ()


class Outline(NamedTuple):
    """A plan of which the rows are made for one walk of each shape class.

    Attributes
    ----------
    every : walks.Walks
    rows : list
        For each shape class its rows, in which a row's number counts from the walk's first one.
    blocks : Blocks
    form, refusals
        Those of the plan.
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
    """What gives these ``Reads`` for all rows."""
    return lambda walk, window: reads


def _row(walk, window, reads, packed):
    return [*sum(walk, ()), *sum(window, ()), *reads(walk, window), packed]


_AS_IS = same_reads(Reads())


def whole_rows(parts, windows, reads=_AS_IS):
    """For each shape class of walks the rows of its parts, each packing its filter; ``reads`` gives ``Reads``."""
    windows = iter(windows)
    return [[_row(part, next(windows), reads, i) for i, part in enumerate(own)] for own in parts]


def cut_rows(walks, parts, windows, reads):
    """The same, where a row comes first that packs the filter of the walk for all of its parts."""
    rows, windows = [], iter(windows)
    for walk, own in zip(walks, parts, strict=True):
        own = [(part, next(windows)) for part in own]
        rows.append([_row(walk, own[0][1], reads, PACKS), *(_row(*each, reads, 0) for each in own)])
    return rows
