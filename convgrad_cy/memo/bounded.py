"""Caches with a limit in bytes: the oldest entry is dropped first.

The code that makes a plan knows its bytes; the code that remembers a call is far above it. So code that makes arrays
for a cache *counts* their bytes, and the code that remembers a call asks how much its thread has counted.

A value that depends on a setting, such as the default algorithm or the scratch limit, must not outlive the setting. A
setter first changes the setting and then clears the caches. This alone is not enough: another thread may have read the
old setting before, and keeps its plan after. So each cache has a ``generation``, the number of its clears. Code that
plans reads the generation before the first setting, and hands it to ``keep`` with the plan. If the cache was cleared in
between, ``keep`` drops the plan; the call that made it still runs with it. Everything else that a plan depends on,
the number of threads included, is in its key. ``bounded`` needs no generation: the arguments of a function are the key,
and such functions read no settings.

A forked child begins with empty caches, because another thread of the parent may have been changing one.
"""

import os
import threading
from collections import OrderedDict
from functools import wraps
from weakref import WeakSet

from .locks import ForkSafeLock

#: Default limit of a cache, and the size of an entry without the arrays that were counted.
MOST_BYTES, ENTRY_BYTES = 64 << 20, 4 << 10

_counts = threading.local()


def count(size):
    """Count ``size`` bytes that this thread has made for a cache."""
    _counts.bytes = getattr(_counts, "bytes", 0) + size


def counted():
    """The bytes that this thread has counted since its last call of this function."""
    size = getattr(_counts, "bytes", 0)
    _counts.bytes = 0
    return size


#: Held while any cache is changed.
_lock = ForkSafeLock()

_caches = WeakSet()


def _clear_in_child():
    for cache in list(_caches):
        cache.clear()


if hasattr(os, "register_at_fork"):  # registered after the lock, so the lock is renewed first
    os.register_at_fork(after_in_child=_clear_in_child)


class Bounded:
    """A cache of at most ``most`` bytes.

    ``entries`` is a plain dict, and ``get`` is its method. So a lookup takes no lock and costs as much as in a dict.
    ``generation`` counts the calls of ``clear``.
    """

    def __init__(self, most=MOST_BYTES):
        self.entries, self.most, self.bytes = {}, most, 0
        self.generation = 0
        self.get = self.entries.get
        self._sizes = OrderedDict()
        _caches.add(self)

    def __len__(self):
        return len(self.entries)

    def keep(self, key, value, size, generation=None):
        """Keep a value of ``size`` bytes, unless it alone is too large or its ``generation`` is over."""
        size += ENTRY_BYTES
        with _lock.held:
            if self._is_over(generation):
                return
            self._drop(key, self._sizes.pop(key, 0))
            if size > self.most:
                return
            self.entries[key], self._sizes[key] = value, size
            self.bytes += size
            while self.bytes > self.most and self._sizes:
                self._drop(*self._sizes.popitem(last=False))
            if self._is_over(generation):  # a signal handler of this thread, which holds the lock, cleared the cache
                self._drop(key, self._sizes.pop(key, 0))

    def _is_over(self, generation):
        return generation is not None and generation != self.generation

    def _drop(self, key, size):
        self.entries.pop(key, None)
        self.bytes -= size

    def clear(self):
        """Forget everything."""
        with _lock.held:
            self.generation += 1
            self.entries.clear()
            self._sizes.clear()
            self.bytes = 0


def bounded(most):
    """Remember the results of a function and count the bytes of their ``steps``, their largest part, for each call."""

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
