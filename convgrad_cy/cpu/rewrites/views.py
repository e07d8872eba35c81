"""Views of tensors in which several axes are merged into one."""

from itertools import pairwise
from math import prod

from ...problem import is_one_axis


def nested(shape, strides):
    """The stride of all axes merged into one, or None if their strides do not allow it."""
    axes = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size > 1]
    if any(outer != size * inner for (_, outer), (size, inner) in pairwise(axes)):
        return None
    return axes[-1][1] if axes else 0


def merged(problem, source, target):
    """(problem, source, target). The spatial axes are merged into one if pointwise and if strides allow it."""
    if problem.is_pointwise() and is_one_axis(source) and is_one_axis(target):
        row = (*source.shape[:3], 1, 1, prod(source.shape[3:]))
        return problem.merged(), source.reshape(row), target.reshape((*target.shape[:3], *row[3:]))
    return problem, source, target


def are_positions_adjacent(source, target):
    """Whether positions, not channels, are adjacent in the source, or in the target if the source has one channel."""
    array = target if source.shape[1:3] == (1, 1) else source
    channel = 1 if array.shape[2] == 1 < array.shape[1] else 2  # groups of one channel: groups are the channels
    return abs(array.strides[5]) < abs(array.strides[channel])
