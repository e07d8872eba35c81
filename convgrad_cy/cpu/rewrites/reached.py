"""Filters whose outer taps meet only padding, at every position of y: these taps are removed.

No term contains them, so fprop and dgrad can use the inner part of the filter. wgrad keeps all taps, because its result
has zeros there.
"""

from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

from ...problem import WGRAD
from .copies import Axes


def reached(task, whole=None):
    """The task without the outer taps that meet no element of x; unchanged if these are only few.

    ``whole``: the problem whose taps decide, if the task's problem is a part of it.
    """
    problem, (x, filter, y) = task.problem, task.tensors
    taps = (whole or problem).reached_taps()
    kernel = tuple(end - first for first, end in taps)
    if task.operation == WGRAD or task.algorithm == "winograd":
        return task
    if prod(kernel) > task.machine.tuning.most_reached_taps * prod(problem.kernel):
        return task
    firsts = zip(problem.pad_begin, problem.dilation, taps, strict=True)
    pads = tuple(pad - first * dilation for pad, dilation, (first, _) in firsts)
    own = filter[(..., *(slice(*ends) for ends in taps))]
    return task._replace(problem=replace(problem, kernel=kernel, pad_begin=pads), tensors=(x, own, y))


class Narrowed(NamedTuple):
    """A work, like ``_repeat.Work``, that uses the inner part of the filter, for arrays of fixed shapes and strides."""

    work: Any  # the work of the narrowed task
    place: int  # index of the filter among the arrays of a call
    filter: Axes
    taps: list  # (first, end) on each axis

    @classmethod
    def of(cls, work, task, whole=None):
        """Wrap the work of the task that ``reached`` returned for the same arguments; ``task``: the task before."""
        return cls(work, task.places[1], Axes.of(task.tensors[1]), (whole or task.problem).reached_taps())

    def run(self, *arrays):
        """Write the result, as ``_repeat.Work.run`` does."""
        arrays = list(arrays)
        arrays[self.place] = self.filter.on(arrays[self.place])[(..., *(slice(*ends) for ends in self.taps))]
        self.work.run(*arrays)
