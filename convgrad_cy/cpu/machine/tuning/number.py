"""One tuned number."""

from typing import NamedTuple


class Number(NamedTuple):
    """What a number is, and its values for vectors of a whole line of the cache and for narrower ones.

    ``suites``: those of ``python -m bench --suite ...`` that it decides, and so those that measure it.
    """

    name: str
    wide: float
    narrow: float
    unit: str
    suites: str
    balances: str


def same(name, value, *described):
    """A number of one value for all vectors."""
    return Number(name, value, value, *described)
