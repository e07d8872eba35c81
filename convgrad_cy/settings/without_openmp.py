"""A build by a compiler without OpenMP: every call has one thread, and this is said where it costs time."""

import os
import sys
import warnings

from .._repeat import lacks_openmp
from . import threads

#: How to get a build with OpenMP. setup.py says the same at the end of a build.
HINT = "to use more, build it again with gcc, or with a clang that has libomp (docs/support.md)"

#: Whether a call that would have had several threads is still to warn, once in a process.
_is_due = lacks_openmp()


def warn_if_serial():
    """Warn once that a call has one thread, where it would have several with OpenMP.

    A process whose user asks for one thread is not warned, nor one where OpenMP would use one; nor one with a build
    that was told to leave OpenMP out.
    """
    global _is_due
    if not _is_due or threads.wanted() == 1:
        return
    _is_due = False  # before the warning, which may be an exception
    warnings.warn(
        f"convgrad_cy was built without OpenMP and computes with 1 thread, not {threads.wanted()}: {HINT}; "
        "set_num_threads(1) or OMP_NUM_THREADS=1 accepts one thread",
        RuntimeWarning,
        stacklevel=_level_of_caller(),
    )


def _level_of_caller():
    """The stack level, for ``warn``, of the first function outside the package."""
    package, level = os.path.dirname(os.path.dirname(__file__)) + os.sep, 1
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    return level
