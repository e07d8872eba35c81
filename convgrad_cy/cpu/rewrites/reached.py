"""Filters of which most taps meet padding at each position of y: the ends of the filter that do are left out.

No term has them, so fprop and dgrad are those of the filter between them. wgrad has zeros there, and keeps them.
"""

from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

from ...problem import WGRAD
from .copies import Axes


def reached(task):
    """The task without the taps at both ends of the filter that meet no element of x, or itself if most do."""
    problem, (x, filter, y) = task.problem, task.tensors
    taps = problem.reached_taps()
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
    """What computes with a part of the filter, for arrays of certain shapes and strides: as ``_repeat.Work``."""

    work: Any  # that of the part
    place: int  # of the filter among the arrays of a call
    filter: Axes
    taps: list  # (first, end) on each axis

    @classmethod
    def of(cls, work, task):
        """From the work of a task that was ``reached``, and the task that is asked for."""
        return cls(work, task.places[1], Axes.of(task.tensors[1]), task.problem.reached_taps())

    def run(self, *arrays):
        """Write the result, as ``_repeat.Work.run`` does."""
        arrays = list(arrays)
        arrays[self.place] = self.filter.on(arrays[self.place])[(..., *(slice(*ends) for ends in self.taps))]
        self.work.run(*arrays)
