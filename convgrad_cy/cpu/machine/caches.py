"""Sizes of the caches, and which operands and targets do not fit in the last one."""

from math import prod
from pathlib import Path

#: Level of a cache -> its bytes in a common machine, used if the system does not report them.
_COMMON = {1: 32 << 10, 2: 1 << 20, 3: 32 << 20}


def cache_sizes(folder="/sys/devices/system/cpu/cpu0/cache"):
    """Bytes of the data caches of levels 1, 2 and 3."""
    found = dict(_COMMON)
    for index in Path(folder).glob("index*"):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
            if kind != "Instruction" and int(level) in found:
                found[int(level)] = int(size.removesuffix("K")) << 10
        except (OSError, ValueError):
            pass
    return tuple(found.values())


def is_streamed(target_bytes, machine):
    """Whether a target is too large for the last-level cache, so that non-temporal stores are faster."""
    return target_bytes > machine.tuning.streamed_part * machine.cache_bytes


def is_far(size, machine):
    """Whether an operand of ``size`` bytes is too large for the last-level cache, so that it comes from memory."""
    return size > machine.tuning.far_part * machine.cache_bytes


def operand_bytes(problem, itemsize):
    """Bytes of x and of y."""
    elements = (problem.x_channels * prod(problem.x), problem.y_channels * prod(problem.y))
    return [problem.batch * problem.groups * itemsize * n for n in elements]


def memory_ways(problem, dtype, machine, backward):
    """(nontemporal, prefetch, target_in_memory) of ``Blocks``, from the sizes of the operands and of the cache."""
    sizes, tuning, cache = operand_bytes(problem, dtype.itemsize), machine.tuning, machine.cache_bytes
    total, target_bytes = sum(sizes), sizes[0 if backward else 1]
    prefetch = 2 if total > tuning.fetched_row_part * cache else 1 if total > tuning.fetched_part * cache else 0
    return is_streamed(target_bytes, machine), prefetch, is_far(target_bytes, machine)
