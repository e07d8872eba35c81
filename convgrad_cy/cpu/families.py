"""The families of algorithms, in their order of preference: the first one that does not refuse a task takes it.

Some families refuse a task because a later one is faster. Columns yield to Winograd's algorithm, Winograd's algorithm
to small groups, and exchanged to small groups: their refusals ask the other family.
"""

from functools import partial

from . import direct, long_sums, small_groups, winograd
from .rewrites import columns, exchanged, overlaps

#: A family has two functions. ``refusal(task)`` is None, or the reason why the family does not take the task.
#: ``pipeline(task, rest)`` gives the ``Pipeline`` that computes the task. With ``rest(other)`` a family has an
#: inner task or a fallback planned by the families after it; a family without these needs no ``rest``. The last
#: family never refuses.
PREFERENCE = (columns, overlaps, long_sums, exchanged, winograd, small_groups, direct)


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


def pipeline(task, families=PREFERENCE):
    """The pipeline of the first family that does not refuse the task."""
    for number, family in enumerate(families, 1):
        if family.refusal(task) is None:
            return family.pipeline(task, partial(pipeline, families=families[number:]))
    raise ValueError("no family takes this task")


def explained(task, families=PREFERENCE):
    """([(refusing family, reason)], name of the family that takes the task, [(name, value)] about its plan)."""
    reasons, family = chosen(task, families)
    named = [(name_of(other), str(reason)) for other, reason in reasons]
    names = {operand.memory: name for operand, name in zip(task.operands, "xwy", strict=True)}
    return named, name_of(family), pipeline(task, families).details(names)
