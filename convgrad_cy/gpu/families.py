"""The families of kernels in the order in which they are tried."""

import os

from . import depthwise, gather, mma, simt

#: Each has ``suits(task) -> bool`` and ``launches(task) -> Plan``. The first that suits is taken; the last always does.
PREFERENCE = (depthwise, mma, simt, gather)


def _name_of(module):
    return module.__name__.rpartition(".")[2]


NAMES = tuple(map(_name_of, PREFERENCE))


def _allowed(wanted):
    """The families that the environment allows, for tests and measurements. The last one is always allowed."""
    names = [name for name in wanted.split(",") if name]
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        raise ImportError(f"CONVGRAD_CY_GPU must be names among {', '.join(NAMES)}, was {wanted!r}")
    return tuple(f for name, f in zip(NAMES, PREFERENCE, strict=True) if not names or name in (*names, NAMES[-1]))


_FAMILIES = _allowed(os.environ.get("CONVGRAD_CY_GPU", ""))


def family(task, families=_FAMILIES):
    """The module that plans this task. The last family takes sums without terms."""
    if task.is_empty:
        return families[-1]
    return next(module for module in families if module.suits(task))


def family_of(task):
    """The name of the family that plans this task."""
    return _name_of(family(task))


def plan(task, families=_FAMILIES):
    """The launches of the first family that suits."""
    return family(task, families).launches(task)
