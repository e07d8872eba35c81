"""Filters whose outer taps meet only padding, at every position of y. These taps are removed.

They add nothing to the sums of fprop and dgrad, which can use the inner part of the filter. wgrad keeps all taps,
because its result has zeros there.
"""

from dataclasses import replace
from math import prod

from ...problem import WGRAD


def without_unreached_taps(task, whole=None):
    """The task without the outer taps that meet no element of x. It is unchanged if these taps are few.

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
    return task.viewing(x, own, y)._replace(problem=replace(problem, kernel=kernel, pad_begin=pads))
