"""Requests to compute a framework's convolutions here, and the algorithm that they ask for."""

from ..checks.keywords import choice
from ..memo.locks import ForkSafeLock
from .algorithm import DEFAULTS


class Wishes:
    """The open calls of a framework's ``enable()`` and of its ``enabled()`` blocks.

    ``change(wanted, algorithm)`` is called after each change, under the lock. ``wanted`` says whether a request is
    open. ``algorithm`` is from the latest open request that names one; None stands for the process's default.
    """

    def __init__(self, change):
        self._change, self._lock = change, ForkSafeLock()
        self._algorithms = {}

    def __bool__(self):
        return bool(self._algorithms)

    def add(self, key, algorithm):
        """Add a request of ``key`` as the latest one. It replaces an earlier request of this key."""
        algorithm = None if algorithm is None else choice(algorithm, "algorithm", DEFAULTS)
        with self._lock.held:
            self._algorithms.pop(key, None)
            self._algorithms[key] = algorithm
            self._changed()

    def drop(self, key):
        """Remove the request of ``key``, if there is one."""
        with self._lock.held:
            self._algorithms.pop(key, None)
            self._changed()

    def clear(self):
        """Remove all requests."""
        with self._lock.held:
            self._algorithms.clear()
            self._changed()

    def _changed(self):
        asked = [algorithm for algorithm in self._algorithms.values() if algorithm is not None]
        self._change(bool(self._algorithms), asked[-1] if asked else None)
