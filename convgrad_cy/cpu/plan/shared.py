"""Bytes that the tasks of a kernel of the sum itself share: a packed filter, or sums of wgrad whose slices are added.

Each formula is that of an allocation in ``pyx/direct/`` or ``pyx/small_groups/``, but for tables of offsets.
"""

from ..machine import LINE_BYTES


def whole(count, unit):
    """``count``, rounded up to a multiple of ``unit``."""
    return -(-count // unit) * unit


def packed_outputs(outputs, lanes, strip):
    """Outputs of a filter that is packed in strips; ``lanes`` and ``strip``: elements of a vector and of a strip."""
    return whole(outputs, min(strip, whole(max(outputs, 1), lanes)))


def slice_bytes(groups, channels, outputs, taps, chunk, block, lanes, itemsize):
    """Bytes of one slice's sums in direct's wgrad, in blocks of ``chunk`` channels and ``block`` outputs."""
    row = whole(block, lanes) + LINE_BYTES // itemsize
    blocks = groups * -(-channels // chunk) * -(-outputs // block)
    return blocks * whole(taps * chunk * row * itemsize, LINE_BYTES)


def side_by_side(total, block, of_vector, lanes):
    """Elements that ``total`` lanes take in blocks of whole vectors, each of which holds ``of_vector`` lanes."""
    return -(-total // block) * -(-block // of_vector) * lanes
