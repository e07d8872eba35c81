"""The warning of a build by a compiler without OpenMP, where every call has one thread."""

import os
import sys
import warnings

from .._repeat import lacks_openmp
from . import threads

#: The way to a build with OpenMP. setup.py prints a similar hint at the end of a build.
HINT = "to use more, build it again with gcc, or with a clang that has libomp (docs/support.md)"

#: Whether the next call that would have several threads still has to warn. A process warns once.
_is_due = lacks_openmp()


def warn_if_serial():
    """Warn once that a call has one thread, where it would have several with OpenMP.

    There is no warning if the user asks for one thread, if OpenMP would use one, or if the build was configured
    without OpenMP.
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
