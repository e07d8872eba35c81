"""The launch that caused an error: each launch is noted before it is made, and waited for."""

from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from convgrad_cy import calls
from convgrad_cy.gpu import work

#: The beginning of each line of ``log``.
PREFIX = "launch: "


class Launches:
    """The last launch that was made or begun. If a process may die, each launch is a line of a log."""

    def __init__(self):
        self.last, self.log = None, None

    def note(self, text):
        self.last = text
        if self.log is not None:
            print(PREFIX + text, file=self.log, flush=True)

    def forget(self):
        self.last = None


noted = Launches()


class _Watched:
    """A compiled kernel with the attributes of CuPy's function."""

    def __init__(self, function, what, made):
        what += f"; static shared memory {getattr(function, 'shared_size_bytes', 'unknown')}"
        object.__setattr__(self, "_all", (function, what, made))  # later attributes are set on CuPy's function

    def __getattr__(self, name):
        return getattr(self._all[0], name)

    def __setattr__(self, name, value):
        setattr(self._all[0], name, value)

    def __call__(self, grid, block, args, *, shared_mem=0, **others):
        function, what, made = self._all
        numbers = np.frombuffer(args[-1].tobytes(), np.int64).tolist()
        noted.note(f"{what}, dynamic {shared_mem}, grid {grid}, block {block}, arguments {numbers}")
        function(grid, block, args, shared_mem=shared_mem, **others)
        made()


def name_of(source, kernel, macros):
    """A variant of a kernel as one line."""
    return " ".join([source, kernel, *map("=".join, macros)])


@contextmanager
def watched():
    """Note launches and wait for them; yields a list that gets (source, kernel, macros) of each."""
    import cupy

    launched, make, text_of = [], work._function, work.text

    def text(source, macros=()):
        noted.note(f"{' '.join([source, *map('='.join, macros)])}; is compiled")
        return text_of(source, macros)

    def function(source, macros, kernel, *others):
        def made():
            cupy.cuda.get_current_stream().synchronize()
            launched.append((source, kernel, macros))

        return _Watched(make(source, macros, kernel, *others), name_of(source, kernel, macros), made)

    calls.forget()
    try:
        with patch.multiple(work, _function=function, text=text):
            yield launched
    finally:
        calls.forget()


def is_sticky():
    """Whether the GPU refuses a harmless call: an earlier error has taken its context from this process."""
    try:
        import cupy

        cupy.zeros(1, np.uint8).get()
    except Exception:
        return True
    return False
