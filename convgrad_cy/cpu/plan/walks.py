"""All walks of an operation. Walks of one shape class are planned once.

A *walk* is a triple of ``problem.AxisWalk``: it describes which elements of source, filter and target meet. A dgrad
with strides has a walk for each combination of stride phases, sometimes thousands. Many walks differ only in where they
begin in the target and in the filter. No choice depends on this, so such walks form one *shape class*.
"""

from functools import lru_cache
from itertools import product
from math import prod

import numpy as np

from ...problem import AxisWalk, empty_axis

#: The fields of AxisWalk in which walks of one shape class may differ, and their columns in a row of three axes.
_BEGINS = [AxisWalk._fields.index(name) for name in ("target_begin", "filter_begin")]
_COLUMNS = [axis * len(AxisWalk._fields) + field for axis in range(3) for field in _BEGINS]

#: Maximum number of walks. More would take a second to plan and a gigabyte to run.
MOST_WALKS = 1 << 18
#: Up to FEW_WALKS walks are planned one by one, which is faster than finding shape classes. No plan depends on it.
FEW_WALKS = 8


#: Size of the lru_cache. The families of one call need the same walks.
_LATEST_CALLS = 4


class Axis:
    """The walks of one axis. ``rows``: a row for each walk, with the fields of its ``AxisWalk``.

    Attributes
    ----------
    shapes : list
        The last walk of each shape class, in the order of the walks. So the last entry is the last walk of the axis.
    numbers : numpy.ndarray
        The number of each walk's shape class.
    shifts : numpy.ndarray
        For each walk, the differences of its ``_BEGINS`` from the begins of the walk in ``shapes``.
    """

    def __init__(self, rows):
        keys, inverse = np.unique(_keys(rows), return_inverse=True)
        ends = np.empty(len(keys), np.intp)
        ends[inverse] = np.arange(len(rows))  # the last walk of a shape class is written last
        order = np.argsort(ends)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        last = ends[order]
        self.shapes = [AxisWalk(*row) for row in rows[last].tolist()]
        self.numbers = place[inverse]
        self.shifts = np.stack([rows[:, i] - rows[last, i][self.numbers] for i in _BEGINS], 1)


def _keys(rows):
    """A number for each row. Rows that differ only in ``_BEGINS`` get the same number."""
    keys = 0
    for i, column in enumerate(rows.T):
        if i not in _BEGINS and (column != column[0]).any():
            least = column.min()
            keys = keys * (column.max() - least + 1) + (column - least)
    return keys + np.zeros(len(rows), np.int64)


class Walks:
    """The walks of an operation: all combinations of the walks of the three axes.

    If no tap reaches some positions of dx, a walk without taps comes first. It writes their zeros.

    Attributes
    ----------
    shapes : list
        One walk of each shape class. The last one is the last walk (see ``SumProblem.typical_walk``).
    counts : list
        Number of walks of each shape class.
    extents : list
        Number of walks of each axis.
    """

    @classmethod
    def of_one(cls, walk):
        """The single walk of fprop or wgrad."""
        one = cls.__new__(cls)
        one._before, one.extents, one.counts, one.shapes = 0, [1, 1, 1], [1], [walk]
        return one

    def __init__(self, axes, first=None):
        self._before = 0 if first is None else 1
        self.extents = [len(rows) for rows in axes]
        if prod(self.extents) <= FEW_WALKS:
            shapes = [[AxisWalk(*row) for row in rows.tolist()] for rows in axes]
            self.counts = [1] * (self._before + prod(self.extents))
        else:
            self._axes = [Axis(rows) for rows in axes]
            shapes = [axis.shapes for axis in self._axes]
            numbers = [np.bincount(axis.numbers).tolist() for axis in self._axes]
            self.counts = [1] * self._before + [*map(prod, product(*numbers))]
        self.shapes = [first] * self._before + list(product(*shapes))

    def __len__(self):
        return sum(self.counts)

    def rows(self, of_shapes):
        """The int64 rows of all walks, and for each row the number of its walk's first row.

        ``of_shapes``: for each shape class the rows of one walk, as a list of lists or as an array. A row begins with
        the fields of the walk's three axes.
        """
        made = _joined(of_shapes)
        if len(self) == 1:
            return made, 0
        lengths = np.array([len(rows) for rows in of_shapes])
        begins = np.cumsum(lengths) - lengths
        if len(of_shapes) == len(self):  # each walk has a shape of its own
            return made, np.repeat(begins, lengths)
        numbers, shifts = self._numbers_and_shifts()
        lengths, begins = lengths[numbers], begins[numbers]
        first = np.cumsum(lengths) - lengths
        begins, first, shifts = (np.repeat(each, lengths, axis=0) for each in (begins, first, shifts))
        made = made[begins + np.arange(len(first)) - first]
        made[:, _COLUMNS] += shifts
        return made, first

    def _numbers_and_shifts(self):
        """The number of each walk's shape class, and the shifts of its columns ``_COLUMNS``."""
        before, count, width = self._before, len(self), len(_BEGINS)
        numbers, shifts = np.zeros(count, np.intp), np.zeros((count, len(_COLUMNS)), np.int64)
        places = np.unravel_index(np.arange(count - before), self.extents)
        for i, (axis, place) in enumerate(zip(self._axes, places, strict=True)):
            numbers[before:] = numbers[before:] * len(axis.shapes) + axis.numbers[place]
            shifts[before:, i * width : (i + 1) * width] = axis.shifts[place]
        numbers[before:] += before
        return numbers, shifts


def _joined(of_shapes):
    """The rows of all shape classes in one array."""
    if any(type(rows) is np.ndarray for rows in of_shapes):
        return np.concatenate(of_shapes, dtype=np.int64)
    return np.array([row for rows in of_shapes for row in rows], np.int64)


@lru_cache(maxsize=_LATEST_CALLS)
def walks_of(problem, backward):
    """The walks of an operation.

    ``backward``: the source is y and the target is x, as in dgrad and mirrored wgrad. Otherwise the source is x.
    """
    if not backward:
        return Walks.of_one(problem.forward_walk())
    phases = problem.count_backward_phases()
    if phases > MOST_WALKS:
        raise ValueError(f"stride must have at most {MOST_WALKS} phases that taps of the filter reach, not {phases}")
    if phases == 0:  # along one axis no tap reaches x
        return Walks.of_one(tuple(map(empty_axis, problem.x, problem.y)))
    rows = problem.backward_rows()
    return Walks(rows, problem.unreached_walk(rows))
