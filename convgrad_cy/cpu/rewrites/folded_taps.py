"""Taps folded into channels, without a copy, for patches of x that have the same memory order as the filter.

If the kernel is as large as its stride, each position of y reads a patch of x that no other position reads. The taps of
one axis and the channels can then be merged into one axis of x and of the filter, if the strides of both allow it.
"""

from dataclasses import replace
from math import prod

import numpy as np

from .views import nested

#: Up to these numbers of images, and of images * taps, wgrad has one box, with or without folded taps. So folding,
#: which only some layouts allow, does not affect the result's bits. A batch of one image is never cut.
MOST_DENSE_IMAGES, MOST_DENSE_TAPS = 64, 64 * 256


def has_patches_on(problem, axis):
    """Whether an axis of x consists exactly of patches, one for each position of y, without padding."""
    size, positions, kernel = problem.x[axis], problem.y[axis], problem.kernel[axis]
    return (
        size == positions * kernel
        and problem.pad_begin[axis] == 0
        and problem.dilation[axis] == 1
        and (problem.stride[axis] == kernel or positions == 1)
    )


def folds_in_wgrad(problem):
    """Whether wgrad may fold taps: y has one position, and wgrad has one box, so each sum runs only over images."""
    taps, images = prod(problem.kernel), problem.batch
    few = images == 1 or (images <= MOST_DENSE_IMAGES and images * taps <= MOST_DENSE_TAPS)
    return problem.y == (1, 1, 1) and few and taps > 1


def is_dense(problem):
    """Whether the filter covers x exactly and y has one position: a dense layer, whose image is one patch."""
    return problem.y == (1, 1, 1) and all(has_patches_on(problem, axis) for axis in range(3))


def _joined(array, channels, taps, taps_outside):
    """``array`` with the axis ``taps`` merged into the axis ``channels``, or None if its strides do not allow it."""
    moved = np.moveaxis(array, taps, channels if taps_outside else channels + 1)
    pair = slice(channels, channels + 2)
    if nested(moved.shape[pair], moved.strides[pair]) is None:
        return None
    return moved.reshape(*moved.shape[:channels], prod(moved.shape[pair]), *moved.shape[channels + 2 :])


def taps_as_channels(problem, filter, x):
    """(problem, filter, x) of the same gradient, with taps folded into channels where both views allow it.

    ``x`` is viewed as (N, G, C, D, H, W), the filter as (G, C, O, D, H, W). Nothing is copied.
    """
    for axis in (2, 1, 0, 2, 1, 0):  # twice: an axis may merge only after another one has become channels
        kernel, positions = problem.kernel[axis], problem.y[axis]
        if kernel == 1 or problem.groups > 1 or not has_patches_on(problem, axis):
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
