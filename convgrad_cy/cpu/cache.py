"""Where source and target of an operation lie, in the last cache or beyond it, and what is done about that."""

from math import prod

#: A target above this part of the last cache is stored past it: it would push out what is still to be read, and be
#: pushed out itself. A smaller one is quicker kept.
STREAM_PART = 0.75
#: Where source and target are more than this part of it, what positions of a row will see is fetched some positions
#: ahead; from the second part on, when most comes from memory, a row ahead.
FETCH_PART, FETCH_ROW_PART = 0.6, 1.25
#: An operand above this part comes from memory. (Groups of eight with a stride: 12.8 of 32 MB do not, 19 do; the
#: target of wgrad: 14 do not, 26 do.)
FAR_PART = 0.5


def is_streamed(target_bytes, machine):
    """Whether a target is too large for the last cache."""
    return target_bytes > STREAM_PART * machine.cache_bytes


def is_far(size, machine):
    """Whether an operand of so many bytes is too large to be found in the last cache."""
    return size > FAR_PART * machine.cache_bytes


def operand_bytes(problem, itemsize):
    """Of x and of y."""
    elements = (problem.x_channels * prod(problem.x), problem.y_channels * prod(problem.y))
    return [problem.batch * problem.groups * itemsize * n for n in elements]


def memory_ways(problem, dtype, machine, backward):
    """(streams, fetches, far) of Blocks: whether the target is stored past the cache, and how far the operands are."""
    sizes = operand_bytes(problem, dtype.itemsize)
    fetches = sum(sum(sizes) > part * machine.cache_bytes for part in (FETCH_PART, FETCH_ROW_PART))
    target_bytes = sizes[0 if backward else 1]
    return is_streamed(target_bytes, machine), fetches, is_far(target_bytes, machine)
