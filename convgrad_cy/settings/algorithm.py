"""The algorithm of calls with ``algorithm=None``: the setting of the process or of its environment."""

import os
from typing import Literal

from ..checks.keywords import choice

#: Not "winograd", which most problems refuse.
DEFAULTS = {name: name for name in ("auto", "direct")}

#: Functions that drop the plans of calls with default settings.
_FORGET = []


def _initial(wanted):
    if wanted not in DEFAULTS:
        raise ImportError(f"CONVGRAD_CY_ALGORITHM must be one of {', '.join(DEFAULTS)}, was {wanted!r}")
    return wanted


_default = _initial(os.environ.get("CONVGRAD_CY_ALGORITHM") or "auto")


def on_change(forget):
    """Call a function whenever this default or the scratch limit has been changed."""
    _FORGET.append(forget)


def changed():
    """Drop all plans that were made with the earlier settings."""
    for forget in _FORGET:
        forget()


def get_default_algorithm() -> Literal["auto", "direct"]:
    """Return the algorithm of calls with ``algorithm=None``.

    Returns
    -------
    str
        The last value of `set_default_algorithm`, or else the environment variable ``CONVGRAD_CY_ALGORITHM``, or else
        "auto".

    See Also
    --------
    set_default_algorithm

    Examples
    --------
    >>> import convgrad_cy as cg
    >>> cg.set_default_algorithm("auto")
    >>> cg.get_default_algorithm()
    'auto'
    """
    return _default


def set_default_algorithm(algorithm: Literal["auto", "direct"]) -> None:
    """Set the algorithm of calls with ``algorithm=None``, for the whole process, from the next call on.

    PyTorch's and JAX's convolutions use it after ``enable()`` without an algorithm.

    Parameters
    ----------
    algorithm : str
        "auto": the algorithm with the lowest predicted time. In float32, float16 and bfloat16 the error of every
        element is at most 2e-5 times the largest element of the result. "direct": each element is the sum of its own
        products, and its error depends on these only.

    Raises
    ------
    TypeError
        An `algorithm` that is no string.
    ValueError
        An `algorithm` that is neither of the two.

    See Also
    --------
    get_default_algorithm

    Examples
    --------
    >>> import convgrad_cy as cg
    >>> cg.set_default_algorithm("direct")
    >>> cg.get_default_algorithm()
    'direct'
    >>> cg.set_default_algorithm("auto")
    """
    global _default
    _default = choice(algorithm, "algorithm", DEFAULTS)
    changed()
