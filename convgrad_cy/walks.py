"""All walks of an operation, of which those of a kind are planned once.

A dgrad with strides has a walk for each combination of stride phases, thousands of them at times. Most differ only in
where they begin in the target and in the filter, which no choice depends on: they are of one *kind*.
"""

from itertools import product
from math import prod

import numpy as np

from .problem import AxisWalk

#: The fields in which walks of a kind differ, and their columns in the rows of all three axes.
_BEGINS = [AxisWalk._fields.index(name) for name in ("target_begin", "filter_begin")]
_COLUMNS = [axis * len(AxisWalk._fields) + begin for axis in range(3) for begin in _BEGINS]


class Axis:
    """The walks of one axis, by kinds: one walk of each in the order in which they end, and the number of each walk's.

    The last walk is so the last kind's, as the choices ask for.
    """

    def __init__(self, walks):
        if len(walks) == 1:
            self.walks = self.kinds = walks
            self.numbers = [0]
            return
        kinds = {}
        keys = [(*walk[:6], walk[7], walk[9]) for walk in walks]
        for key, walk in zip(reversed(keys), reversed(walks), strict=True):
            kinds.setdefault(key, walk)
        self.walks, self.kinds = walks, [*kinds.values()][::-1]
        place = {key: len(kinds) - 1 - i for i, key in enumerate(kinds)}
        self.numbers = [place[key] for key in keys]


class Walks:
    """The walks of an operation: one that comes first, or none, and then all products of those of the three axes.

    Attributes
    ----------
    kinds : list
        A walk of each kind, in their order; the last walk's at the end.
    counts : list
        How many walks there are of each.
    extents : list
        How many walks each axis has.
    """

    def __init__(self, axes, first=None):
        self.extents = [len(walks) for walks in axes]
        self._axes = [Axis(walks) for walks in axes]
        self._before = 0 if first is None else 1
        self.kinds = [first] * self._before + list(product(*[axis.kinds for axis in self._axes]))
        if len(self.kinds) == self._before + prod(self.extents):
            self.counts = [1] * len(self.kinds)
        else:
            counted = [np.bincount(axis.numbers).tolist() for axis in self._axes]
            self.counts = [1] * self._before + list(map(prod, product(*counted)))

    def __len__(self):
        return sum(self.counts)

    def rows(self, of_kinds):
        """The rows of all walks as int64, and of each the number of its walk's first row.

        ``of_kinds`` has the rows of a walk of each kind, which begin with the fields of the walk's axes.
        """
        lengths = [len(rows) for rows in of_kinds]
        made = np.array([row for rows in of_kinds for row in rows], np.int64)
        begins = np.cumsum([0, *lengths[:-1]])
        if len(lengths) == len(self):  # each walk is its kind's
            return made, np.repeat(begins, lengths)
        numbers, shifts = self._numbers_and_shifts()
        lengths = np.array(lengths)[numbers]
        first = np.cumsum(lengths) - lengths
        first, shifts = np.repeat(first, lengths), np.repeat(shifts, lengths, axis=0)
        made = made[np.repeat(begins[numbers], lengths) + np.arange(len(first)) - first]
        made[:, _COLUMNS] += shifts
        return made, first

    def _numbers_and_shifts(self):
        """For each walk the number of its kind, and how far its columns are from that kind's."""
        numbers, shifts = np.zeros((1, 1, 1), np.intp), np.zeros((*self.extents, len(_COLUMNS)), np.int64)
        for i, axis in enumerate(self._axes):
            along = np.array(axis.numbers).reshape([-1 if j == i else 1 for j in range(3)])
            numbers = numbers * len(axis.kinds) + along
            begins, kinds = (np.array([[walk[c] for c in _BEGINS] for walk in each]) for each in (axis.walks, axis.kinds))
            own = begins - kinds[axis.numbers]
            shifts[..., 2 * i : 2 * i + 2] = own.reshape(*[-1 if j == i else 1 for j in range(3)], 2)
        before = self._before
        numbers = np.concatenate([np.zeros(before, np.intp), numbers.ravel() + before])
        return numbers, np.concatenate([np.zeros((before, len(_COLUMNS)), np.int64), shifts.reshape(-1, len(_COLUMNS))])


def walks_of(problem, backward):
    """The walks of dgrad, of y as the source and x as the target, or of the other operations."""
    if backward:
        return Walks(*problem.reached_and_unreached())
    return Walks([[axis] for axis in problem.forward_walk()])
