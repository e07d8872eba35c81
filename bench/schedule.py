"""How long a call takes on many cores, from the times of its tasks on one: a simulation, and what binds."""

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
        Bytes of one of those.
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
        """Last caches of so many threads, as close to each other as can be."""
        return -(-threads // self.sharing)


#: Of one socket. Channels and the rate of their memory are the makers' figures, of which programs reach 0.8; a core
#: alone reaches some 25 GB/s. What a team costs depends on OpenMP's runtime: ``--team``, ``--member``.
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
        Bytes of the two activations: each core reads or writes a part of its own.
    read_by_all : int
        Bytes of the filter, and of what tasks share (packed filters, kept tiles, sums of slices): each last cache gets
        all of it.
    alone : bool
        Whether the call is one for a thread alone, however many there are.
    """

    loops: list
    serial: float
    read_once: int
    read_by_all: int
    alone: bool = False

    @property
    def tasks(self):
        """Seconds of all of them."""
        return sum(map(sum, self.loops))

    @property
    def seconds(self):
        return self.tasks + self.serial

    def bytes(self, cores, threads):
        """Bytes from memory: none where all of it stays in the last caches from call to call."""
        caches = cores.caches(threads)
        total = self.read_once + self.read_by_all * caches
        return 0 if total <= caches * cores.cache else total


def loop_seconds(tasks, threads):
    """When the last task of a loop ends: each thread takes those of its own range, then helps the others.

    As ``share_tasks`` and ``take_task`` of pyx/parallel/tasks.h do it.
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
    """A call on so many threads: its seconds, and by the name of each cause those that are lost."""

    seconds: float
    lost: dict

    @property
    def binds(self):
        """The cause of which most is lost."""
        return max(self.lost, key=self.lost.get)


def predict(timed, alone, cores, threads):
    """``timed``: the call with the plan for so many threads; ``alone``: the seconds of its tasks with that for one.

    Lost is what is more than a part ``1 / threads`` of those: by tasks that are too few or in an uneven number, by
    tasks that are not equal, by what is computed more often where they are more, by the serial part, teams and memory;
    and by a call that has one thread.
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
    # On one thread, waiting for memory is in the times themselves.
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
    """Of the time on one thread, the part that so many threads make use of."""
    return alone / (threads * prediction.seconds)


def bytes_of(kernel, case, shared):
    """(read once, read by all) of a ``Case`` of the benchmark whose tasks share so many bytes.

    Tasks write what they share and read it again: filters all of them, but what tasks of wgrad share, slices and the
    tiles of a box, few of them.
    """
    x, w, y = (prod(shape) * case.itemsize for shape in (case.x, case.w, case.y))
    return (x + y + 2 * shared, w) if kernel == "wgrad" else (x + y, w + 2 * shared)


#: A row has enough work for so many threads if each has so many products; the means are of those.
ENOUGH_PRODUCTS = 4_000_000


def has_enough(found, threads):
    return found["products"] >= ENOUGH_PRODUCTS * threads


def mean_efficiency(rows, threads):
    """The geometric mean of rows that have enough work for so many threads, or None."""
    return geometric_mean(row["threads"][str(threads)]["efficiency"] for row in rows if has_enough(row, threads))
