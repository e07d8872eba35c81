"""Smaller tasks for many threads, if all tasks then end earlier. These cuts do not affect the result's bits.

A *cut* is a choice of the sizes of boxes and blocks. Smaller tasks cost time: they copy more halo, and each reads the
filter again. A family has several cuts, each with its tasks and a model of their time. ``best_cut`` chooses one.
"""

from typing import NamedTuple


class Tasks(NamedTuple):
    """Equal tasks: their number, and the modelled time of each in cycles of the register tile."""

    count: int
    cycles: float


def work_of(loop):
    """Cycles of all tasks of a loop, a list of ``Tasks``."""
    return sum(kind.count * kind.cycles for kind in loop)


def cycles_until_end(loop, threads, late_part):
    """Modelled cycles until the last task of a loop ends, if the threads take tasks one by one.

    Tasks are taken as equally long. But cores are not equally fast, so one thread is assumed to end later than the
    others, by ``late_part`` of a task.
    """
    count = sum(kind.count for kind in loop)
    each, longest = work_of(loop) / count, max(kind.cycles for kind in loop)
    return max(-(-count // threads) * each, longest) + late_part * each


def best_cut(first, others, loops_of, threads, tuning):
    """The cut ``first``, or one of ``others`` that ends much earlier. ``loops_of(cut)``: its loops, in order."""
    least_gain, loops = tuning.cut_gain, loops_of(first)
    late_part = tuning.late_part if threads > tuning.tuned_threads else 0  # two threads need only two equal tasks
    best, time = first, sum(cycles_until_end(loop, threads, late_part) for loop in loops)
    whole = sum(map(work_of, loops)) / threads
    for other in others:
        if whole >= least_gain * time:  # even perfectly balanced tasks would gain too little
            break
        ends = sum(cycles_until_end(loop, threads, late_part) for loop in loops_of(other))
        if ends <= least_gain * time:
            best, time = other, ends
    return best


def shrinking(whole, tuning, least):
    """Sizes of a box, from ``whole`` down to ``least``, each about 0.7 times the previous one."""
    return [size for size in (int(whole * 2 ** (-i / 2)) for i in range(tuning.cut_sizes)) if size >= least]


def halves(block, least):
    """Sizes from ``block`` down by repeated halving, each rounded up to a multiple of ``least``."""
    found = [block]
    while block > least:
        block = -(-(block // 2) // least) * least
        if block == found[-1]:
            break
        found.append(block)
    return found
