"""Views of a task's tensors for the kernels of direct and of small groups."""

from math import prod

from ...problem import is_one_axis


def merged(problem, source, target):
    """(problem, source, target), with the spatial axes merged into one if pointwise and if strides allow it."""
    if problem.is_pointwise() and is_one_axis(source) and is_one_axis(target):
        row = (*source.shape[:3], 1, 1, prod(source.shape[3:]))
        return problem.merged(), source.reshape(row), target.reshape((*target.shape[:3], *row[3:]))
    return problem, source, target


def are_positions_adjacent(source):
    """Whether positions, not channels, are adjacent in a source's memory."""
    channel = 1 if source.shape[2] == 1 < source.shape[1] else 2  # groups of one channel: groups are the channels
    return abs(source.strides[5]) < abs(source.strides[channel])
