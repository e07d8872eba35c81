"""The tuned numbers. The planner uses them to predict which choice is faster. Each family has a table.

``machine.py`` has the table for all families. ``winograd/costs.py`` has the costs of Winograd's algorithm and of
direct, which were fitted together. Other constants, such as limits of legal problems, facts about memory order, and
bounds of caches of plans, are next to the code that uses them.
"""

from collections import namedtuple

from . import (
    by_processor,
    columns,
    cuts,
    dgrad_costs,
    direct,
    exchanged,
    long_sums,
    machine,
    overlaps,
    small_groups,
    winograd,
)

TABLE = (
    *machine.TABLE,
    *overlaps.TABLE,
    *dgrad_costs.TABLE,
    *columns.TABLE,
    *long_sums.TABLE,
    *exchanged.TABLE,
    *winograd.TABLE,
    *small_groups.TABLE,
    *direct.TABLE,
    *cuts.TABLE,
)


class Tuning(namedtuple("Tuning", [number.name for number in TABLE])):
    """The values of ``TABLE`` for one width of vectors."""

    __slots__ = ()

    def __hash__(self):
        """A fast hash, because caches of plans compute it often. This value differs between ``WIDE`` and ``NARROW``."""
        return hash(self.row_bytes)


WIDE, NARROW = (Tuning(*(getattr(number, width) for number in TABLE)) for width in ("wide", "narrow"))


def tuning_of(vector_bytes):
    """The ``Tuning`` of a machine's vectors."""
    return WIDE if vector_bytes >= 64 else NARROW


def tuning_of_processor(processor, vector_bytes):
    """The ``Tuning`` of a (vendor, family, model) with an entry in ``by_processor.py``, else None."""
    own = by_processor.VALUES.get((*processor, vector_bytes)) if processor else None
    return tuning_of(vector_bytes)._replace(**own) if own else None
