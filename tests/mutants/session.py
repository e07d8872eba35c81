"""Runs tests for one mutant after the other, each in a fork of a process that has collected them all."""

import ctypes
import os
import resource
import traceback
import warnings
from pathlib import Path
from signal import Signals
from typing import NamedTuple
from zlib import crc32

import pytest

#: Exit status of a process that could not run its tests.
BROKEN = 70
#: Processor seconds, and bytes, that the tests of a mutant may take. A mutant that needs more is not worth keeping: a
#: delay for another reason would count as killed.
MOST_SECONDS, MOST_BYTES = 25, 8 << 30


class Outcome(NamedTuple):
    """The verdict of the tests on a mutant. ``test`` is the last one that ran, ``seconds`` are the processor's."""

    killed: bool
    how: str
    test: str
    seconds: float


def chosen(items, parts):
    """The tests that have one of these parts in their names, part by part. The order within a part is irregular."""
    found = {}
    for part in parts.split():
        some = [item for item in items if part in item.nodeid]
        if not some:
            raise SystemExit(f"there is no test {part!r}: update the mutants")
        found.update(dict.fromkeys(sorted(some, key=lambda item: crc32(item.nodeid.encode()))))
    return list(found)


class Session:
    """A plugin of pytest that loops over mutants instead of tests. ``outcomes`` has the outcome of each number.

    At the end, all tests that have seen a mutant run without one.
    """

    def __init__(self, mutants, folder, jobs, tell):
        self.mutants, self.folder, self.jobs, self.tell = mutants, folder, jobs, tell
        self.outcomes, self.items, self.failed = {}, [], None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        self.items = session.items
        wanted = {number: chosen(self.items, mutant.tests) for number, mutant in self.mutants.items()}
        self._run(wanted)
        seen = {outcome.test for outcome in self.outcomes.values() if outcome.killed}
        if seen:
            self._run({0: [item for item in self.items if item.nodeid in seen]})
        return True

    def pytest_runtest_logstart(self, nodeid):
        self._note(nodeid)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed = report
            self._note(f"{report.nodeid}\n{report.longreprtext}")

    def _file(self, number):
        return self.folder / f"{number}.txt"

    def _note(self, text):
        self._file(self.number).write_text(text)

    def _run(self, wanted):
        """Run some mutants at a time."""
        waiting, running = list(reversed(wanted)), {}
        while waiting or running:
            while waiting and len(running) < self.jobs:
                number = waiting.pop()
                running[self._start(number, wanted[number])] = number
            process, status, usage = os.wait4(-1, 0)
            number = running.pop(process)
            self.outcomes[number] = self._outcome(number, os.waitstatus_to_exitcode(status), usage)
            self.tell(number, self.outcomes[number])

    def _outcome(self, number, code, usage):
        test, _, said = self._file(number).read_text().partition("\n")
        if code == BROKEN:
            raise RuntimeError(said)
        how = "failed" if code > 0 else Signals(-code).name if code < 0 else "passed"
        return Outcome(how not in ("passed", "SIGXCPU"), how, test, usage.ru_utime + usage.ru_stime)

    def _start(self, number, items):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of threads that a fork leaves behind: there are none
            process = os.fork()
        if process == 0:
            self.number = number
            try:
                code = int(self._tests_fail(number, items))
            except BaseException:  # an error of this file, not of a test
                self._note(f"\n{traceback.format_exc()}")
                code = BROKEN
            os._exit(code)
        return process

    def _tests_fail(self, number, items):
        """In the child: run tests until one fails, and return whether one has failed."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        seconds = MOST_SECONDS if number else resource.RLIM_INFINITY
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        sink = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(sink, stream)
        choose(number)
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                return True
        return False


def choose(number):
    """Let this mutant run, in a forked process."""
    from convgrad_cy import _mutant, _repeat
    from convgrad_cy.cpu.machine import kernels
    from convgrad_cy.settings import threads

    _mutant.number = number
    for module in (_repeat, kernels.compiled):
        library = ctypes.CDLL(module.__file__)
        if hasattr(library, "convgrad_mutant"):  # other modules have no mutants
            ctypes.c_int.in_dll(library, "convgrad_mutant").value = number
        # After a fork a call has one thread, but this parent had no team of threads.
        if hasattr(library, "convgrad_is_child"):
            ctypes.c_int.in_dll(library, "convgrad_is_child").value = 0
    threads._is_child = False


def run(mutants, tests, folder, jobs, tell):
    """Outcomes of these mutants, by number. The number 0 stands for the correct code.

    ``tell`` is called with each number and outcome as soon as it is known.
    """
    session = Session(mutants, Path(folder), jobs, tell)
    names = sorted({part.partition("::")[0] for mutant in mutants.values() for part in mutant.tests.split()})
    files = [str(path) for name in names for path in tests.rglob(name)]
    options = ["-qq", "-s", "--no-header", "--no-summary", "--hypothesis-seed=0"]
    options += ["--assert=plain"]  # in CI, pytest would compare whole arrays line by line, for minutes
    for plugin in ("cacheprovider", "faulthandler", "xdist", "benchmark"):
        options += ["-p", f"no:{plugin}"]
    status = pytest.main([*options, f"--rootdir={tests.parent}", *files], [session])
    if not session.outcomes.keys() >= mutants.keys():
        raise SystemExit(f"pytest has ended with {status!r} before all mutants were tested")
    return session.outcomes
