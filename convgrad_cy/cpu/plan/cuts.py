"""Plans cut for many threads, where no cut reaches a bit: into more or other tasks, if those then end earlier.

What is cut so costs something: smaller tasks copy more of what their neighbours see, and read filters again. So a
family gives the ways to cut, each with its tasks and a model of their time; here one is chosen.
"""

from typing import NamedTuple


class Tasks(NamedTuple):
    """Tasks of one kind: how many there are, and the time of each by a model, in cycles of the register tile."""

    count: int
    cycles: float


def work_of(loop):
    """Cycles of all tasks of a loop, which is a list of ``Tasks``."""
    return sum(kind.count * kind.cycles for kind in loop)


def seconds_of(loop, threads, late_part):
    """When the last of a loop's tasks ends, in those cycles: threads take them in turn, as if all were equal.

    But one thread is late by a part of a task, since no two cores are equally fast.
    """
    count = sum(kind.count for kind in loop)
    each, longest = work_of(loop) / count, max(kind.cycles for kind in loop)
    return max(-(-count // threads) * each, longest) + late_part * each


def best_cut(first, others, loops_of, threads, tuning):
    """``first``, or one of the others that ends much earlier; ``loops_of`` gives the loops of a cut, in their order."""
    least_gain, loops = tuning.cut_gain, loops_of(first)
    late_part = tuning.late_part if threads > tuning.tuned_threads else 0  # two equal tasks suffice two
    best, time = first, sum(seconds_of(loop, threads, late_part) for loop in loops)
    whole = sum(map(work_of, loops)) / threads
    for other in others:
        if whole >= least_gain * time:  # nothing is left to gain
            break
        ends = sum(seconds_of(loop, threads, late_part) for loop in loops_of(other))
        if ends <= least_gain * time:
            best, time = other, ends
    return best


def shrinking(whole, tuning, least):
    """Sizes of a box of which each is about 0.7 of the one before, from the whole on."""
    return [size for size in (int(whole * 2 ** (-i / 2)) for i in range(tuning.cut_sizes)) if size >= least]


def halves(block, least):
    """A block and what halving it again and again leaves, in whole parts of ``least``."""
    found = [block]
    while block > least:
        block = -(-(block // 2) // least) * least
        if block == found[-1]:
            break
        found.append(block)
    return found
