"""Predict a call's time on many cores from the times of its tasks on one: a simulation that names the bottleneck."""

from heapq import heapify, heappop, heappush
from math import prod
from typing import NamedTuple

from .summary import geometric_mean


class Cores(NamedTuple):
    """A machine as the simulation sees it.

    Attributes
    ----------
    title : str
    cores : int
    sharing : int
        Cores that share one last cache.
    cache : float
        Bytes of one last cache.
    core_rate, memory_rate : float
        Bytes per second from memory, of one core alone and of all together.
    team : float
        Seconds to start and end a team of two threads.
    member : float
        Seconds that each further thread adds.
    """

    title: str
    cores: int
    sharing: int
    cache: float
    core_rate: float
    memory_rate: float
    team: float = 2e-6
    member: float = 1e-7

    def team_seconds(self, threads):
        return 0.0 if threads == 1 else self.team + (threads - 2) * self.member

    def rate(self, threads):
        return min(threads * self.core_rate, self.memory_rate)

    def caches(self, threads):
        """Number of last caches of ``threads`` threads that are as close to each other as possible."""
        return -(-threads // self.sharing)


#: Machines with one socket. Channels and the rate of their memory are the makers' figures; programs reach 0.8 of it.
#: One core alone reaches some 25 GB/s. The cost of a team depends on OpenMP's runtime: ``--team``, ``--member``.
REACHED, ONE_CORE = 0.8, 25e9
MACHINES = {
    "epyc": Cores("AMD EPYC 9654, 12 channels of DDR5-4800", 96, 8, 32 << 20, ONE_CORE, REACHED * 460.8e9),
    "xeon": Cores("Intel Xeon Platinum 8480+, 8 channels of DDR5-4800", 56, 56, 105 << 20, ONE_CORE, REACHED * 307.2e9),
    "graviton": Cores("AWS Graviton4, 12 channels of DDR5-5600", 96, 96, 36 << 20, ONE_CORE, REACHED * 537.6e9),
}


class Timed(NamedTuple):
    """A call, timed on one thread.

    Attributes
    ----------
    loops : list of list of float
        Seconds of each loop's tasks, in their order.
    serial : float
        Seconds of the call outside of tasks.
    read_once : int
        Bytes of the two activations: each core reads or writes its own part.
    read_by_all : int
        Bytes of the filter and of the data that tasks share (packed filters, kept tiles, sums of slices). Each last
        cache loads all of them.
    alone : bool
        Whether the call uses one thread, however many there are.
    """

    loops: list
    serial: float
    read_once: int
    read_by_all: int
    alone: bool = False

    @property
    def tasks(self):
        """Seconds of all tasks."""
        return sum(map(sum, self.loops))

    @property
    def seconds(self):
        return self.tasks + self.serial

    def bytes(self, cores, threads):
        """Bytes from memory. The result is zero if all data stay in the last caches from call to call."""
        caches = cores.caches(threads)
        total = self.read_once + self.read_by_all * caches
        return 0 if total <= caches * cores.cache else total


def loop_seconds(tasks, threads):
    """Time at which the last task of a loop ends. Each thread takes the tasks of its own range, then helps the others.

    ``share_tasks`` and ``take_task`` of pyx/parallel/tasks.h do the same.
    """
    count = len(tasks)
    workers = min(threads, count)
    if workers == 1:
        return sum(tasks)
    following = [count * i // workers for i in range(workers)]
    ends = [*following[1:], count]
    free = [(0.0, worker) for worker in range(workers)]
    heapify(free)
    last = 0.0
    while free:
        now, worker = heappop(free)
        last = max(last, now)
        for i in range(worker, worker + workers):
            other = i % workers
            if following[other] < ends[other]:
                heappush(free, (now + tasks[following[other]], worker))
                following[other] += 1
                break
    return last


class Prediction(NamedTuple):
    """A call on several threads: its seconds, and the seconds that are lost to each cause, by name."""

    seconds: float
    lost: dict

    @property
    def binds(self):
        """The cause that loses most seconds."""
        return max(self.lost, key=self.lost.get)


def predict(timed, alone, cores, threads):
    """Predict a call on ``threads`` threads.

    ``timed`` is the call with the plan for this number of threads. ``alone`` is the seconds of its tasks with the plan
    for one thread. Time above ``alone / threads`` is lost. The causes are tasks that are too few, uneven in number or
    unequal in size, values that more threads compute more often, the serial part, teams, memory, and calls with one
    thread.
    """
    rounds = uneven = 0.0
    used = 1 if timed.alone else threads
    for tasks in timed.loops:
        equal = -(-len(tasks) // used) * sum(tasks) / len(tasks)
        rounds += equal - sum(tasks) / used
        uneven += loop_seconds(tasks, used) - equal
    work = timed.tasks / threads
    idle = timed.tasks / used - work
    teams = sum([cores.team_seconds(used) for tasks in timed.loops if len(tasks) > 1])
    computed = work + idle + rounds + uneven
    # On one thread, the measured times already include the wait for memory.
    waiting = max(0.0, timed.bytes(cores, used) / cores.rate(used) - computed) if used > 1 else 0.0
    lost = {
        "one thread": idle,
        "tasks": rounds + min(0.0, uneven),
        "imbalance": max(0.0, uneven),
        "more work": work - alone / threads,
        "serial part": timed.serial * (1 - 1 / threads),
        "teams": teams,
        "bandwidth": waiting,
    }
    return Prediction(computed + waiting + timed.serial + teams, lost)


def efficiency(prediction, alone, threads):
    """The part of ``threads`` cores that does useful work: the time on one thread over all threads' time together."""
    return alone / (threads * prediction.seconds)


def bytes_of(kernel, case, shared):
    """(read once, read by all) of a ``Case`` of the benchmark. Its tasks share ``shared`` bytes.

    Tasks write shared data and read them again. All tasks read packed filters. Few tasks of wgrad read a given slice
    or the tiles of a given box.
    """
    x, w, y = (prod(shape) * case.itemsize for shape in (case.x, case.w, case.y))
    return (x + y + 2 * shared, w) if kernel == "wgrad" else (x + y, w + 2 * shared)


#: Products for each thread that are enough work. Mean values are those over rows with enough work.
ENOUGH_PRODUCTS = 4_000_000


def has_enough(found, threads):
    return found["products"] >= ENOUGH_PRODUCTS * threads


def mean_efficiency(rows, threads):
    """The geometric mean of rows that have enough work for ``threads`` threads, or None."""
    return geometric_mean(row["threads"][str(threads)]["efficiency"] for row in rows if has_enough(row, threads))
