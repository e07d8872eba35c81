"""Requests to compute a framework's convolutions here, and the settings that they ask for."""

from ..checks.keywords import choice
from ..memo.locks import ForkSafeLock
from .algorithm import DEFAULTS


class Wishes:
    """The open calls of a framework's ``enable()`` and of its ``enabled()`` blocks.

    ``change(wanted, **settings)`` is called after each change, under the lock. ``wanted`` says whether a request is
    open. Each setting, such as ``algorithm``, is from the latest open request that names it. A setting that none names
    is missing. A missing algorithm is the process's default.
    """

    def __init__(self, change):
        self._change, self._lock = change, ForkSafeLock()
        self._requests = {}

    def __bool__(self):
        return bool(self._requests)

    def add(self, key, algorithm, **settings):
        """Add a request of ``key`` as the latest one. It replaces an earlier request of this key.

        A request does not name a setting that is None.
        """
        algorithm = None if algorithm is None else choice(algorithm, "algorithm", DEFAULTS)
        settings = {"algorithm": algorithm, **settings}
        with self._lock.held:
            self._requests.pop(key, None)
            self._requests[key] = {name: value for name, value in settings.items() if value is not None}
            self._changed()

    def drop(self, key):
        """Remove the request of ``key``, if there is one."""
        with self._lock.held:
            self._requests.pop(key, None)
            self._changed()

    def clear(self):
        """Remove all requests."""
        with self._lock.held:
            self._requests.clear()
            self._changed()

    def _changed(self):
        settings = {}
        for asked in self._requests.values():
            settings |= asked
        self._change(bool(self._requests), **settings)
