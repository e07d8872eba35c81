"""The algorithm of calls that name none: as the process or its environment asks for."""

import os

from ..checks.keywords import choice

#: Not "winograd", which most problems refuse.
DEFAULTS = {name: name for name in ("auto", "direct")}

#: Functions that forget what was planned for calls by the defaults.
_FORGET = []


def _initial(wanted):
    if wanted not in DEFAULTS:
        raise ImportError(f"CONVGRAD_CY_ALGORITHM must be one of {', '.join(DEFAULTS)}, was {wanted!r}")
    return wanted


_default = _initial(os.environ.get("CONVGRAD_CY_ALGORITHM") or "auto")


def on_change(forget):
    """Call a function whenever a default has been changed: this one, or that of ``scratch.py``."""
    _FORGET.append(forget)


def changed():
    """Let all be forgotten that was planned before."""
    for forget in _FORGET:
        forget()


def get_default_algorithm():
    """The algorithm of calls that name none.

    Returns
    -------
    str
        What `set_default_algorithm` was told last, or else the environment variable ``CONVGRAD_CY_ALGORITHM``, or else
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


def set_default_algorithm(algorithm):
    """Set the algorithm of calls that name none, for the whole process, from the next call on.

    Of calls with ``algorithm=None``, and of PyTorch's after ``convgrad_cy.torch.enable()`` without an algorithm.

    Parameters
    ----------
    algorithm : str
        "auto": the faster one, with an error of at most 2e-5 of the greatest element of a float32 result, whichever
        element of the result it is; "direct": the sums of the definition, in which each element has an error of its
        own terms alone.

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
