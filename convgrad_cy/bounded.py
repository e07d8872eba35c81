"""Caches that are bounded in bytes: what is kept longest goes first.

How many bytes a plan takes is known where it is made, deep below where a call is remembered. So whatever makes arrays
that a cache will hold *counts* them, and who remembers a call asks how much its thread has counted.
"""

import threading
from functools import wraps

from .locks import ForkSafeLock

#: What one cache may hold, unless it says otherwise; and what an entry takes beside the arrays that were counted.
MOST_BYTES, ENTRY_BYTES = 64 << 20, 4 << 10

_counts = threading.local()


def count(size):
    """So many bytes more have been made by this thread, for a cache to hold."""
    _counts.bytes = getattr(_counts, "bytes", 0) + size


def counted():
    """The bytes that this thread has counted since it asked last."""
    size = getattr(_counts, "bytes", 0)
    _counts.bytes = 0
    return size


#: Held while any cache is changed.
_lock = ForkSafeLock()


class Bounded:
    """A cache of at most ``most`` bytes.

    ``entries`` is a plain dict, and ``get`` its own: to find a value takes no lock, and no longer than there.
    ``generation`` counts the calls of ``clear``. A value that depends on a setting is kept with the generation that was
    read *before* the setting was: if the setting has changed since, the value is out of date, and ``keep`` drops it.
    """

    def __init__(self, most=MOST_BYTES):
        self.entries, self.most, self.bytes = {}, most, 0
        self.generation = 0
        self.get = self.entries.get
        self._sizes = {}

    def __len__(self):
        return len(self.entries)

    def keep(self, key, value, size, generation=None):
        """Keep a value of ``size`` bytes, unless it alone is too large or its ``generation`` is over."""
        size += ENTRY_BYTES
        with _lock.held:
            if generation is not None and generation != self.generation:
                return
            self._drop(key)
            if size > self.most:
                return
            self.entries[key], self._sizes[key] = value, size
            self.bytes += size
            while self.bytes > self.most:
                self._drop(next(iter(self._sizes)))

    def _drop(self, key):
        self.bytes -= self._sizes.pop(key, 0)
        self.entries.pop(key, None)

    def clear(self):
        """Forget everything."""
        with _lock.held:
            self.entries.clear()
            self._sizes.clear()
            self.bytes = 0
            self.generation += 1


def bounded(most):
    """Remember the results of a function, of which ``steps`` are most of the bytes, and count these for each call."""

    def remembering(function):
        known = Bounded(most)

        @wraps(function)
        def found(*arguments):
            result = known.get(arguments)
            if result is None:
                result = function(*arguments)
                known.keep(arguments, result, result.steps.nbytes)
            count(result.steps.nbytes)
            return result

        found.known, found.cache_clear = known, known.clear
        return found

    return remembering
