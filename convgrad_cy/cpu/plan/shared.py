"""Memory that all tasks of a direct kernel share: a packed filter, or the sums of the slices of wgrad.

Each formula must agree with an allocation in ``pyx/direct/`` or ``pyx/small_groups/``, except tables of offsets.
"""

from ..machine import LINE_BYTES


def whole(count, unit):
    """``count``, rounded up to a multiple of ``unit``."""
    return -(-count // unit) * unit


def packed_outputs(outputs, lanes, strip):
    """Outputs after packing in strips, padding included; ``lanes``, ``strip``: elements of a vector and of a strip."""
    return whole(outputs, min(strip, whole(max(outputs, 1), lanes)))


def slice_bytes(groups, channels, outputs, taps, chunk, block, lanes, itemsize):
    """Bytes of one slice's sums in direct's wgrad, in blocks of ``chunk`` channels and ``block`` outputs."""
    row = whole(block, lanes) + LINE_BYTES // itemsize
    blocks = groups * -(-channels // chunk) * -(-outputs // block)
    return blocks * whole(taps * chunk * row * itemsize, LINE_BYTES)


def side_by_side(total, block, of_vector, lanes):
    """Elements that ``total`` lanes take in memory, in blocks of ``block`` lanes, which consist of whole vectors.

    A vector has room for ``lanes`` elements and uses ``of_vector`` of them.
    """
    return -(-total // block) * -(-block // of_vector) * lanes
