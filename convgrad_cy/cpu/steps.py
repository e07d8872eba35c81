"""The rows that tell a kernel which walks to carry out, and how."""

from typing import Any, NamedTuple

import numpy as np

#: Of a row of ``Plan.steps``: it packs the filter of the rows that follow.
PACKS = -1


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
    declined : list
        The forms before it, each by its name and its reason.
    """

    steps: np.ndarray
    blocks: np.ndarray
    form: str | None = None
    declined: Any = ()


class Outline(NamedTuple):
    """A plan of which the rows are made for one walk of each kind.

    Attributes
    ----------
    every : walks.Walks
    rows : list
        For each kind its rows, in which a row's number counts from the walk's first one.
    blocks : Blocks
    form, declined
        Those of the plan.
    """

    every: Any
    rows: list
    blocks: Any
    form: str | None = None
    declined: Any = ()

    def plan(self):
        """The plan, with the rows of all walks."""
        steps, first = self.every.rows(self.rows)
        if len(self.every) > 1:
            steps[:, -1] += np.where(steps[:, -1] == PACKS, 0, first)
        return Plan(steps, np.array(self.blocks, np.int64), self.form, self.declined)


def same_reads(reads):
    """What gives these ``Reads`` for all rows."""
    return lambda walk, window: reads


def _row(walk, window, reads, packed):
    return [*sum(walk, ()), *sum(window, ()), *reads(walk, window), packed]


_AS_IS = same_reads(Reads())


def whole_rows(parts, windows, reads=_AS_IS):
    """For each kind of walks the rows of its parts, each packing its filter; ``reads`` gives ``Reads``."""
    windows = iter(windows)
    return [[_row(part, next(windows), reads, i) for i, part in enumerate(own)] for own in parts]


def cut_rows(walks, parts, windows, reads):
    """The same, where a row comes first that packs the filter of the walk for all of its parts."""
    rows, windows = [], iter(windows)
    for walk, own in zip(walks, parts, strict=True):
        own = [(part, next(windows)) for part in own]
        rows.append([_row(walk, own[0][1], reads, PACKS), *(_row(*each, reads, 0) for each in own)])
    return rows
