"""One tuned number."""

from typing import NamedTuple


class Number(NamedTuple):
    """A number: its values for vectors of a whole cache line (``wide``) and for narrower vectors (``narrow``).

    ``balances``: its trade-off. ``python -m bench.tune --list`` computes which rows of the benchmark depend on it.
    """

    name: str
    wide: float
    narrow: float
    unit: str
    balances: str


def same(name, value, *described):
    """A number with one value for all vectors."""
    return Number(name, value, value, *described)
