"""The families of algorithms, in their order of preference."""

from functools import partial

from . import direct, long_sums, small_groups, winograd
from .rewrites import columns, exchanged, overlaps, patches

#: A family has two functions. ``refusal(task)`` is None, or the reason why the family does not take the task.
#: ``job(task, rest)`` gives an object whose ``ready()`` is the work. ``rest(task)`` gives such an object for a task
#: that is left to later families. The last family never refuses.
PREFERENCE = (patches, overlaps, columns, long_sums, exchanged, winograd, small_groups, direct)


def name_of(family):
    return family.__name__.rpartition(".")[2]


def chosen(task, families=PREFERENCE):
    """The families that refuse a task, each with its reason, and the family that takes it."""
    reasons = []
    for family in families:
        reason = family.refusal(task)
        if reason is None:
            return reasons, family
        reasons.append((family, reason))
    raise ValueError("no family takes this task")


def job(task, families=PREFERENCE):
    """The job of the first family that does not refuse the task."""
    for number, family in enumerate(families, 1):
        if family.refusal(task) is None:
            return family.job(task, partial(job, families=families[number:]))
    raise ValueError("no family takes this task")
