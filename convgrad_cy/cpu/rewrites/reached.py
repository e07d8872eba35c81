"""Filters whose outer taps meet only padding, at every position of y. These taps are removed.

They add nothing to the sums of fprop and dgrad. In the result of wgrad they are zeros. So all three operations can use
the inner part of the filter.
"""

from dataclasses import replace
from math import prod

from ...problem import WGRAD
from .copies import Zeros


def without_unreached_taps(task, whole=None):
    """The task without the outer taps that meet no element of x. It is unchanged if these taps are few.

    ``whole``: the problem whose taps decide, if the task's problem is a part of it.
    """
    problem, (x, filter, y) = task.problem, task.tensors
    taps = (whole or problem).reached_taps()
    kernel = tuple(end - first for first, end in taps)
    if task.algorithm == "winograd":
        return task
    if prod(kernel) > task.machine.tuning.most_reached_taps * prod(problem.kernel):
        return task
    firsts = zip(problem.pad_begin, problem.dilation, taps, strict=True)
    pads = tuple(pad - first * dilation for pad, dilation, (first, _) in firsts)
    own = filter[(..., *(slice(*ends) for ends in taps))]
    return task.viewing(x, own, y)._replace(problem=replace(problem, kernel=kernel, pad_begin=pads))


def pipeline(task, plan):
    """The pipeline that ``plan`` returns for the task without unreached taps, with the zeros of wgrad after it."""
    inner = without_unreached_taps(task)
    made = plan(inner)
    if task.operation != WGRAD or inner is task:
        return made
    return made.between((), [Zeros(task.operands[1].with_view(view)) for view in _unreached(task)])


def _unreached(task):
    """Views of the parts of the filter that no tap of ``without_unreached_taps`` covers. They do not overlap."""
    view = task.operands[1].view
    for axis, (first, end) in enumerate(task.problem.reached_taps(), 3):
        before, inside, after = (
            view[(*[slice(None)] * axis, slice(*ends))] for ends in ((0, first), (first, end), (end, None))
        )
        yield from (part for part in (before, after) if part.size)
        view = inside
