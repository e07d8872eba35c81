"""How a kernel of the sum itself views a task's tensors."""

from math import prod

from ...problem import is_one_axis


def merged(problem, source, target):
    """A pointwise problem in one dimension, where the spatial axes of both tensors are one in memory too."""
    if problem.is_pointwise() and is_one_axis(source) and is_one_axis(target):
        row = (*source.shape[:3], 1, 1, prod(source.shape[3:]))
        return problem.merged(), source.reshape(row), target.reshape((*target.shape[:3], *row[3:]))
    return problem, source, target


def are_positions_adjacent(source):
    """Whether neighbours in a source's memory are positions, not channels."""
    channel = 1 if source.shape[2] == 1 < source.shape[1] else 2  # of groups of one channel, the groups are channels
    return abs(source.strides[5]) < abs(source.strides[channel])
