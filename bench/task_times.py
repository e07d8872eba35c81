"""The tasks of a row's call, timed on one thread with the plan for any number of threads."""

import time
from contextlib import contextmanager

import numpy as np

import convgrad_cy as cg
from convgrad_cy import calls
from convgrad_cy.cpu.machine.kernels import compiled
from convgrad_cy.cpu.plan.job import Job

from .peers.convgrad_cy import Library
from .schedule import Timed, bytes_of

#: Most tasks of a call.
MOST_TASKS = 1 << 18
LEAST_CALLS = 3


@contextmanager
def planned(signatures):
    """Collect the signatures of jobs' plans. All numbers of threads above one have equal signatures."""
    usual = Job.ready

    def ready(job, numbers):
        threads, *blocks = job.plan.blocks.tolist()  # both kinds of blocks begin with the threads
        signatures.append((job.kernel, threads > 1, job.plan.steps.tobytes(), *blocks))
        return usual(job, numbers)

    Job.ready = ready
    try:
        yield
    finally:
        Job.ready = usual


def spans(times):
    """Nanoseconds of each loop, from the begin of its first task to the end of its last one."""
    begins, ends = {}, {}
    for loop, _, begin, end in times:
        begins[loop], ends[loop] = min(begin, begins.get(loop, begin)), max(end, ends.get(loop, end))
    return [ends[loop] - begin for loop, begin in begins.items()]


class RowCall:
    """The call of a ``suites.Row`` on numbers in (-0.5, 0.5)."""

    def __init__(self, row):
        rng = np.random.default_rng(0)
        arrays = [rng.random(shape, np.float32) - np.float32(0.5) for shape in (row.case.x, row.case.w, row.case.y)]
        self.row, self.call = row, Library(1).operation(row.case, row.kernel, *arrays)
        self._timed = {}

    def plan(self, threads):
        """Plan the call for ``threads`` threads and return the signatures of its plans."""
        signatures = []
        with cg.num_threads(threads), planned(signatures):
            calls.forget()
            compiled.time_tasks(self.call, MOST_TASKS)
        return tuple(signatures)

    def tasks(self, threads, seconds):
        """The ``Timed`` of a call: the least time of each task within some seconds, and the rest of the call."""
        key = self.plan(threads)
        if key not in self._timed:
            with cg.num_threads(threads):
                found, end = [], time.perf_counter() + seconds
                while len(found) < LEAST_CALLS or time.perf_counter() < end:
                    found.append(compiled.time_tasks(self.call, MOST_TASKS))
            self._timed[key] = self._of(not key[0][1], found)
        return self._timed[key]

    def _of(self, alone, found):
        """The ``Timed`` from (nanoseconds, bytes shared, tasks) of several calls."""
        taken = [{(loop, task): end - begin for loop, task, begin, end in times} for *_, times in found]
        serial = min(total - sum(spans(times)) for total, _, times in found)
        loops = [[] for _ in range(1 + max((loop for loop, _ in taken[0]), default=-1))]
        for loop, task in sorted(taken[0]):
            loops[loop].append(min(times[loop, task] for times in taken) * 1e-9)
        return Timed(loops, serial * 1e-9, *bytes_of(self.row.kernel, self.row.case, found[0][1]), alone)

    def measured(self, threads, seconds):
        """Seconds of the fastest call on ``threads`` real threads."""
        taken = []
        with cg.num_threads(threads):
            self.call()
            end = time.perf_counter() + seconds
            while len(taken) < LEAST_CALLS or time.perf_counter() < end:
                start = time.perf_counter()
                self.call()
                taken.append(time.perf_counter() - start)
        return min(taken)


def loop_of_nothing(threads, seconds=0.2):
    """Seconds of a call whose one loop has an empty task for each thread: the cost of a team, and a little more."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        compiled.run_tiles(2, 1, 0, threads)
        best = min(best, time.perf_counter() - start)
    return best


def team_seconds():
    """Seconds to start and end a team of two here."""
    alone, two = loop_of_nothing(1), loop_of_nothing(2)
    return max(0.0, two - alone)
