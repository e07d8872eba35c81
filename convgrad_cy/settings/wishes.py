"""Who wants a framework's convolutions computed here, and by which algorithm."""

from ..checks.keywords import choice
from ..memo.locks import ForkSafeLock
from .algorithm import DEFAULTS


class Wishes:
    """The open calls of a framework's ``enable()`` and of its ``enabled()`` blocks.

    ``change`` is called after each change, under the lock, with whether anybody wants it and with the algorithm that
    was asked for last and still is, or None for the process's default.
    """

    def __init__(self, change):
        self._change, self._lock = change, ForkSafeLock()
        self._algorithms = {}

    def __bool__(self):
        return bool(self._algorithms)

    def add(self, key, algorithm):
        """Let ``key`` want it, as the last one. A wish that it had before is replaced."""
        algorithm = None if algorithm is None else choice(algorithm, "algorithm", DEFAULTS)
        with self._lock.held:
            self._algorithms.pop(key, None)
            self._algorithms[key] = algorithm
            self._changed()

    def drop(self, key):
        """Let ``key`` want it no longer."""
        with self._lock.held:
            self._algorithms.pop(key, None)
            self._changed()

    def clear(self):
        """Let nobody want it."""
        with self._lock.held:
            self._algorithms.clear()
            self._changed()

    def _changed(self):
        asked = [algorithm for algorithm in self._algorithms.values() if algorithm is not None]
        self._change(bool(self._algorithms), asked[-1] if asked else None)
