"""The ways to compute a task, in the order in which they are tried."""

from functools import partial

from . import direct, long_sums, small_groups, winograd
from .rewrites import columns, exchanged, overlaps, patches

#: Each has ``suits(task)``, which is None or the reason why it declines, and ``job(task, rest)``, which gives what is
#: made ``ready()`` to run; ``rest(task)`` does so for what it leaves to those after it. The last declines nothing.
PREFERENCE = (patches, overlaps, columns, long_sums, exchanged, winograd, small_groups, direct)


def name_of(family):
    return family.__name__.rpartition(".")[2]


def declined(task, families=PREFERENCE):
    """The families before the one that takes a task, each with its reason; and that one."""
    reasons = []
    for family in families:
        reason = family.suits(task)
        if reason is None:
            return reasons, family
        reasons.append((family, reason))
    raise ValueError("no family takes this task")


def job(task, families=PREFERENCE):
    """What the first family that suits makes of a task."""
    for number, family in enumerate(families, 1):
        if family.suits(task) is None:
            return family.job(task, partial(job, families=families[number:]))
    raise ValueError("no family takes this task")
