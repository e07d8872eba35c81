"""Layouts in which equal values can lie in memory."""

import numpy as np


def _fill(view, array):
    view[...] = array
    return view


def contiguous(array):
    return np.ascontiguousarray(array)


def fortran(array):
    return np.asfortranarray(array)


def negative(array):
    """An array with negative strides along all axes."""
    flip = (slice(None, None, -1),) * array.ndim
    return np.ascontiguousarray(array[flip])[flip]


def every_second(array):
    """An array with gaps along all axes, also at the start of its memory. The gaps hold values that nobody may read."""
    base = np.full([2 * size + 1 for size in array.shape], 77, array.dtype)
    return _fill(base[(slice(1, None, 2),) * array.ndim], array)


def read_only(array):
    array = np.array(array)
    array.setflags(write=False)
    return array


def channels_reversed_in_memory(array):
    """An array with axes in an order that is neither C's nor Fortran's."""
    order = [*range(1, array.ndim), 0]
    return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))


def record_field(array):
    """An unaligned array whose strides are no multiple of the item size."""
    return _fill(np.zeros(array.shape, [("before", np.int8), ("value", array.dtype)])["value"], array)


INPUTS = (contiguous, fortran, negative, every_second, read_only, channels_reversed_in_memory, record_field)
#: The layouts that a result can be written to.
OUTPUTS = tuple(layout for layout in INPUTS if layout not in (read_only, record_field))


def repeated(array, axis):
    """The first slice along an axis, repeated with stride zero."""
    first = array[(slice(None),) * axis + (slice(0, 1),)]
    return np.broadcast_to(first, array.shape)
