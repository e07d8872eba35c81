"""Taps that are channels: of patches of x that lie in memory as the filter does, without a copy.

Where kernels are as large as their stride, each position of y sees a patch of x that no other sees. So taps of one axis
and channels may be taken as one axis, in x and in the filter, where they are one in memory.
"""

from dataclasses import replace
from math import prod

import numpy as np

from .copies import Axes

#: Not for speed: up to so many images, and taps of all of them, wgrad has one box, however its taps are counted. So no
#: layout cuts a sum, and its bits are those of all. Of one image there is nothing to cut.
MOST_DENSE_IMAGES, MOST_DENSE_TAPS = 64, 64 * 256


def is_cut(problem, axis):
    """Whether an axis of x is cut into patches, one for each position of y."""
    size, positions, kernel = problem.x[axis], problem.y[axis], problem.kernel[axis]
    return (
        size == positions * kernel
        and problem.pad_begin[axis] == 0
        and problem.dilation[axis] == 1
        and (problem.stride[axis] == kernel or positions == 1)
    )


def is_dense(problem):
    """Whether each image is one patch, as in a dense layer: wgrad sums over images alone, whatever is a channel."""
    taps, images = prod(problem.kernel), problem.batch
    few = images == 1 or (images <= MOST_DENSE_IMAGES and images * taps <= MOST_DENSE_TAPS)
    return problem.y == (1, 1, 1) and few and taps > 1


def is_whole(problem):
    """Whether x is one patch, as in a dense layer."""
    return problem.y == (1, 1, 1) and all(is_cut(problem, axis) for axis in range(3))


def _joined(array, channels, taps, taps_outside):
    """``array`` with the axis ``taps`` made part of the axis ``channels``, or None where they are not one in memory."""
    moved = np.moveaxis(array, taps, channels if taps_outside else channels + 1)
    pair = slice(channels, channels + 2)
    if Axes(moved.shape[pair], moved.strides[pair]).nested() is None:
        return None
    return moved.reshape(*moved.shape[:channels], prod(moved.shape[pair]), *moved.shape[channels + 2 :])


def taps_as_channels(problem, filter, x):
    """The same gradient with fewer taps: those that lie side by side in x and in the filter are channels; no copy.

    ``x`` is viewed as (N, G, C, D, H, W), the filter as (G, C, O, D, H, W). Returns the problem and both of them.
    """
    for axis in (2, 1, 0, 2, 1, 0):  # where a row of a patch has become channels, the rows may follow each other, too
        kernel, positions = problem.kernel[axis], problem.y[axis]
        if kernel == 1 or problem.groups > 1 or not is_cut(problem, axis):
            continue
        cut = x.reshape(*x.shape[: 3 + axis], positions, kernel, *x.shape[4 + axis :])
        for taps_outside in (True, False):
            joined = _joined(cut, 2, 4 + axis, taps_outside), _joined(filter, 1, 3 + axis, taps_outside)
            if joined[0] is not None and joined[1] is not None:
                x, filter = joined[0], np.expand_dims(joined[1], 3 + axis)
                problem = replace(
                    problem,
                    x_channels=problem.x_channels * kernel,
                    x=_with(problem.x, axis, positions),
                    kernel=_with(problem.kernel, axis, 1),
                    stride=_with(problem.stride, axis, 1),
                )
                break
    return problem, filter, x


def _with(triple, axis, value):
    return (*triple[:axis], value, *triple[axis + 1 :])
