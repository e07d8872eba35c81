"""Where source and target of an operation lie, in the last cache or beyond it, and what is done about that."""

from math import prod

#: Parts of the last cache. A target above the first is stored past it, if the source is above the second: it would push
#: out what is still to be read, and be pushed out itself. A smaller one is quicker kept.
STREAM_PART, STREAM_SOURCE_PART = 0.75, 0.125
#: Where source and target are more than this part of it, what positions of a row will see is fetched some positions
#: ahead; from the second part on, when most comes from memory, a row ahead.
FETCH_PART, FETCH_ROW_PART = 0.6, 1.25


def memory_ways(problem, dtype, machine, backward):
    """(streams, fetches) of Blocks: whether the target is too large for the last cache, how far away the source is."""
    elements = (problem.x_channels * prod(problem.x), problem.y_channels * prod(problem.y))
    sizes = [problem.batch * problem.groups * dtype.itemsize * n for n in elements]
    source, target = reversed(sizes) if backward else sizes
    cache = machine.cache_bytes
    streams = target > STREAM_PART * cache and source > STREAM_SOURCE_PART * cache
    return streams, sum(sum(sizes) > part * cache for part in (FETCH_PART, FETCH_ROW_PART))
