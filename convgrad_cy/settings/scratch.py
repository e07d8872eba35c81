"""How much memory a call on a CPU may take beside its arrays: as the process or its environment asks for."""

import os

from ..checks import keywords
from ..problem import INDEX_LIMIT
from .algorithm import changed


def _initial(wanted):
    if not wanted:
        return None
    if not wanted.isascii() or not wanted.isdecimal() or int(wanted) >= INDEX_LIMIT:
        raise ImportError(f"CONVGRAD_CY_SCRATCH_LIMIT must be a number of bytes below 2**62, was {wanted!r}")
    return int(wanted)


_limit = _initial(os.environ.get("CONVGRAD_CY_SCRATCH_LIMIT"))


def get_scratch_limit():
    """The bytes that a call on a CPU may take beside its arrays.

    Returns
    -------
    int or None
        What `set_scratch_limit` was told last, or else the environment variable ``CONVGRAD_CY_SCRATCH_LIMIT``, or else
        None: four times the bytes of a call's own arrays, and at least 64 MiB.

    See Also
    --------
    set_scratch_limit

    Examples
    --------
    >>> import convgrad_cy as cg
    >>> cg.set_scratch_limit(None)
    >>> cg.get_scratch_limit() is None
    True
    """
    return _limit


def set_scratch_limit(limit):
    """Set the bytes that a call on a CPU may take beside its arrays, for the whole process, from the next call on.

    Ways to compute a call that would take more are left out, and sums are cut into fewer slices. So results may have
    other bits with another limit. With one limit they have the same bits, for any threads and layout. The limit holds
    for each result of a call: `conv_backward` has two. It does not count:

    - what each thread has for itself, up to 3 MiB, and small tables of offsets;
    - the filter packed once by the direct algorithm, or the sums of its gradient, each filled up to whole vectors;
    - copies of arrays that kernels cannot read where they are: of another byte order, or not aligned.

    A call that asks for ``algorithm="winograd"`` is refused with a ValueError where that would take more than the
    limit. Without a limit, it may take more than the default.

    Parameters
    ----------
    limit : int or None
        At least 0. None: four times the bytes of a call's own arrays, and at least 64 MiB.

    Raises
    ------
    TypeError
        A `limit` that is neither an integer nor None.
    ValueError
        A `limit` that is less than 0, or 2**62 or more.

    See Also
    --------
    get_scratch_limit, explain

    Examples
    --------
    >>> import convgrad_cy as cg
    >>> cg.set_scratch_limit(16 << 20)
    >>> cg.get_scratch_limit()
    16777216
    >>> cg.set_scratch_limit(None)
    """
    global _limit
    _limit = None if limit is None else keywords.integer(limit, "limit", 0, "an integer or None")
    changed()
