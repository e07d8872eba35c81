"""The limit of the memory that a call on a CPU may use in addition to its arrays."""

import os
from typing import SupportsIndex

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


def get_scratch_limit() -> int | None:
    """Return the bytes that a call on a CPU may use in addition to its arrays.

    Returns
    -------
    int or None
        The last value of `set_scratch_limit`, or else the environment variable ``CONVGRAD_CY_SCRATCH_LIMIT``, or else
        None, which stands for four times the bytes of the call's own arrays, and at least 64 MiB.

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


def set_scratch_limit(limit: SupportsIndex | None) -> None:
    """Set the bytes that a call on a CPU may use in addition to its arrays, for the process, from the next call on.

    Algorithms that need more are skipped, and sums are cut into fewer slices. So results may have other bits with
    another limit. With one limit they have the same bits, for any number of threads and any layout. The limit holds for
    each result of a call: `conv_backward` has two. It does not count:

    - the memory of each thread, up to 3 MiB, and small tables of offsets;
    - the filter packed once by the direct algorithm, or the sums of its gradient, each padded to whole vectors;
    - copies of arrays that kernels cannot read in place: of another byte order, or not aligned.

    A call with ``algorithm="winograd"`` raises a ValueError if it needs more than the limit. Without a limit, it may
    use more than the default.

    Parameters
    ----------
    limit : int or None
        At least 0. None restores the default: four times the bytes of the call's own arrays, and at least 64 MiB.

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
