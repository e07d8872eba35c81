"""The ways to compute a task, in the order in which they are tried."""

from functools import partial

from . import direct, long_sums, small_groups, winograd
from .rewrites import columns, exchanged, overlaps, patches

#: Each has ``refusal(task)``, which is None or the reason why the family does not take the task, and
#: ``job(task, rest)``, which gives an object whose ``ready()`` runs. ``rest(task)`` does so for a part that is left to
#: the families after this one. The last family refuses nothing.
PREFERENCE = (patches, overlaps, columns, long_sums, exchanged, winograd, small_groups, direct)


def name_of(family):
    return family.__name__.rpartition(".")[2]


def chosen(task, families=PREFERENCE):
    """The families that refuse a task, each with its reason; and the one that takes it."""
    reasons = []
    for family in families:
        reason = family.refusal(task)
        if reason is None:
            return reasons, family
        reasons.append((family, reason))
    raise ValueError("no family takes this task")


def job(task, families=PREFERENCE):
    """What the first family makes of a task that does not refuse it."""
    for number, family in enumerate(families, 1):
        if family.refusal(task) is None:
            return family.job(task, partial(job, families=families[number:]))
    raise ValueError("no family takes this task")
