"""The number of threads of a call: set for a block, for the process, or by OpenMP and the control group."""

import os
from contextvars import ContextVar
from typing import SupportsIndex

from .._repeat import has_openmp, max_threads
from ..checks import keywords
from . import processors

#: More threads than any machine has. The limit keeps a typing error from taking all memory.
MOST_THREADS = 4096

#: The open blocks of `num_threads`: (number, blocks around it) of the innermost one, or None.
_asked_here = ContextVar("convgrad_cy.num_threads", default=None)
_number_here = _asked_here.get

#: The number of `set_num_threads`, or None.
_asked_everywhere = None

_has_openmp = has_openmp()

#: Whether this is a forked child. An OpenMP team does not survive a fork, and the runtime would wait for it forever.
_is_child = False

#: OpenMP's own number counts hyperthreads and ignores the quota. A number that the user has set is taken as it is. A
#: user who binds threads to processors has decided which threads share a core.
_is_set, _binds = os.environ.get("OMP_NUM_THREADS"), any(map(os.environ.get, ("OMP_PROC_BIND", "OMP_PLACES")))
_processors = [] if _is_set or _binds else processors.processors()
_cores, _quota = processors.count_cores(_processors), None if _is_set else processors.quota()


def _after_fork_in_child():
    global _is_child
    _is_child = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def is_forked_child() -> bool:
    """Whether another process has made this one by ``fork()``."""
    return _is_child


def _max_threads_without_openmp():
    """The number of threads that OpenMP's runtime would use: the environment's, or all processors."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) > 0 else len(processors.processors()) or os.cpu_count() or 1


def _checked(n, kind):
    n = keywords.integer(n, "n", 1, kind)
    if n > MOST_THREADS:
        raise ValueError(f"n must be at most {MOST_THREADS}, not {keywords.shown(n)}")
    return n


def get_num_threads() -> int:
    """Number of threads that a large call would use here and now; small ones use one.

    Returns
    -------
    int
        The number of the innermost `num_threads`, else the number of `set_num_threads`, else OpenMP's number. OpenMP's
        number is limited to the processors that the control groups of the process may use. If `OMP_NUM_THREADS` is not
        set, it counts cores, not hyperthreads. The result is 1 in a forked child, and in a build without OpenMP.

    See Also
    --------
    num_threads, set_num_threads

    Examples
    --------
    >>> import convgrad_cy as cg
    >>> cg.get_num_threads() >= 1
    True
    >>> with cg.num_threads(1):
    ...     cg.get_num_threads()
    1
    """
    return wanted() if _has_openmp else 1


def wanted():
    """``get_num_threads`` as if the compiler had OpenMP."""
    if _is_child:
        return 1
    here = _number_here()
    asked = _asked_everywhere if here is None else here[0]
    if asked is not None:
        return asked
    available = max_threads() if _has_openmp else _max_threads_without_openmp()
    if available == len(_processors):  # otherwise the program has set the number, for example by threadpoolctl
        available = _cores
    return available if _quota is None or available < _quota else _quota


def set_num_threads(n: SupportsIndex | None) -> None:
    """Set the number of threads for the whole process, from the next call on.

    The quota of the control group does not limit this number. Results have the same bits with any number.

    Parameters
    ----------
    n : int or None
        At least 1. None restores the default: `OMP_NUM_THREADS` or the setting of `threadpoolctl`, or else all cores
        that the process may use.

    Raises
    ------
    TypeError
        An `n` that is neither an integer nor None.
    ValueError
        An `n` that is less than 1 or more than 4096.

    See Also
    --------
    get_num_threads, num_threads

    Examples
    --------
    >>> import convgrad_cy as cg
    >>> cg.set_num_threads(1)
    >>> cg.get_num_threads()
    1
    >>> cg.set_num_threads(None)
    """
    global _asked_everywhere
    _asked_everywhere = None if n is None else _checked(n, "an integer or None")


class num_threads:
    """Context manager that sets the number of threads for the calls in its block.

    It holds for the Python thread or asyncio task that is in the block, and for the tasks that are created there.
    Other threads and tasks keep their own number. Blocks may be nested. One object may be used several times, also by
    several threads at once.

    Parameters
    ----------
    n : int
        At least 1. It overrides `set_num_threads` and the quota of the control group.

    Raises
    ------
    TypeError
        An `n` that is no integer.
    ValueError
        An `n` that is less than 1 or more than 4096.

    See Also
    --------
    get_num_threads, set_num_threads

    Examples
    --------
    >>> import convgrad_cy as cg
    >>> with cg.num_threads(1):
    ...     cg.get_num_threads()
    1
    >>> one = cg.num_threads(1)
    >>> with cg.num_threads(2), one:
    ...     cg.get_num_threads()
    1
    """

    def __init__(self, n: SupportsIndex) -> None:
        self._n = _checked(n, "an integer")

    def __enter__(self) -> None:
        # The outer numbers are kept in the context, not in this object, which may serve several contexts at a time.
        _asked_here.set((self._n, _number_here()))

    def __exit__(self, *error: object) -> None:
        _asked_here.set(_number_here()[1])
