"""The memory of arrays: whether two arrays share elements, and whether kernels can address each element."""

from functools import reduce

import numpy as np

#: Limit of steps of the exact search for overlap. A pair that it cannot decide counts as overlapping.
_OVERLAP_WORK = 10_000


def reach(array):
    """(before, behind) in bytes: an array's memory begins ``before`` its first element and ends ``behind`` it."""
    steps = [stride * (size - 1) for stride, size in zip(array.strides, array.shape, strict=True)]
    return -sum(step for step in steps if step < 0), sum(step for step in steps if step > 0) + array.itemsize


def overlap(one, other):
    """Whether two NumPy arrays share an element in memory."""
    if not np.may_share_memory(one, other):
        return False
    try:
        return np.shares_memory(one, other, max_work=_OVERLAP_WORK)
    except RuntimeError:  # TooHardError, which has no public name before NumPy 1.25
        return True


def overlaps_itself(array):
    """Whether two elements of a NumPy array share memory."""
    if array.flags.c_contiguous or array.size == 0:
        return False
    axes = sorted((abs(stride), size) for stride, size in zip(array.strides, array.shape, strict=True) if size > 1)
    extent, nested = array.itemsize, True
    for stride, size in axes:
        nested = nested and stride >= extent
        extent += stride * (size - 1)
    if nested:
        return False
    if array.nbytes > extent:
        return True
    # Interleaved strides may still give each element its own address. There are at most as many addresses as elements.
    addresses = reduce(np.add.outer, (stride * np.arange(size) for stride, size in axes))
    return np.unique(addresses).size < array.size


def is_addressable(array):
    """Whether kernels can read an array without a copy.

    Its elements must have the machine's byte order, be aligned, and be multiples of the itemsize apart.
    """
    flags = array.flags
    if not (flags.aligned and array.dtype.isnative):
        return False
    if flags.c_contiguous:
        return True
    itemsize = array.itemsize
    return not any(stride % itemsize for stride, size in zip(array.strides, array.shape, strict=True) if size > 1)
