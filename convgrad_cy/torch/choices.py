"""The choices of ``enable(benchmark=...)``: the kernel of each shape that was measured, and the summary of `status`."""

import logging
import os
from collections import Counter
from typing import NamedTuple

from .. import atomic_file
from ..memo.locks import ForkSafeLock
from . import choices_file
from .call_texts import operations_of
from .choices_file import OURS, THEIRS

logger = logging.getLogger("convgrad_cy.torch")

#: Shapes of a process that are measured. The limit is for programs that never stop to have new shapes.
MOST = 20_000


class Benchmark(NamedTuple):
    """The choices that this process has made or found in a file, as `status` reports them.

    Attributes
    ----------
    file : str or None
        The file that keeps the choices.
    shapes : dict
        (operation, owner) -> number of shapes. Operations are "forward", "data gradient" and "filter gradient".
        Owners are "convgrad_cy" and "pytorch".
    measuring : int
        Number of calls of different shapes that are not decided yet.
    microseconds : dict
        "chosen", "convgrad_cy" or "pytorch" -> time of one call of each decided shape, if these kernels compute it.
    """

    file: str | None
    shapes: dict[tuple[str, str], int]
    measuring: int
    microseconds: dict[str, float]


class Choices:
    """(environment, call) -> the choice of a call. A file keeps them if there is a ``path``.

    The two keys are texts. Choices survive a fork. The lock is held while a choice is added.
    """

    def __init__(self, path=None):
        self.path, self._writes = path, path is not None
        self._made, self._used, self._open = {}, {}, set()
        self._lock = ForkSafeLock()
        self.refresh()

    def refresh(self):
        """Read the file again. Choices that this process has made stay."""
        if self.path is not None:
            there = choices_file.read(self.path)
            if not there and not os.path.exists(self.path):
                atomic_file.check(self.path)
            with self._lock.held:
                self._made, self._writes = {**there, **self._made}, True

    def accepts(self, key):
        """Whether there is a choice of a call, or may be one later."""
        return key in self._made or len(self._made) + len(self._open) < MOST

    def get(self, key):
        """The choice of a call, or None."""
        choice = self._made.get(key)
        if choice is None:
            self._open.add(key)
        else:
            self._open.discard(key)
            self._used[key] = choice
        return choice

    def decide(self, key, choice):
        """Add the choice of a call. Returns the one that holds: another thread or process may have been faster."""
        with self._lock.held:
            if self._writes and key not in self._made:
                try:
                    self._made = choices_file.merged(self.path, self._made, key, choice)
                except (OSError, ValueError) as error:
                    self._writes = False
                    logger.warning("choices are no longer kept in %s: %s", self.path, error)
            self._made.setdefault(key, choice)
            return self.get(key)

    def summary(self):
        """The choices that this process has used."""
        shapes, times = Counter(), dict.fromkeys(("chosen", OURS, THEIRS), 0.0)
        for (_, call), (candidate, microseconds) in tuple(self._used.items()):
            operations, owners = operations_of(call), candidate.split("+")
            shapes.update(zip(operations, owners * (1 if len(owners) > 1 else len(operations)), strict=True))
            for name, label in (("chosen", candidate), (OURS, OURS), (THEIRS, THEIRS)):
                times[name] += microseconds[label]
        return Benchmark(self.path, dict(shapes), len(self._open), times)


#: Path or None -> its choices in this process.
_opened = {}


def opened(benchmark):
    """The `Choices` of an argument ``benchmark``, False if it switches measuring off, or None if it says nothing."""
    if benchmark is None or benchmark is False:
        return benchmark
    if benchmark is True:
        path = None
    elif isinstance(benchmark, (str, os.PathLike)):
        path = os.path.realpath(os.fsdecode(benchmark))
    else:
        raise TypeError(f"benchmark must be a bool or the path of a file, not {benchmark!r}")
    if path not in _opened:
        return _opened.setdefault(path, Choices(path))
    _opened[path].refresh()
    return _opened[path]
