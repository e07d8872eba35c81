"""The families of algorithms, in their order of preference: the first one that does not refuse a task takes it.

Some families refuse a task because a later one is faster: ``columns`` refuses tasks that ``winograd`` takes, and
``columns``, ``exchanged`` and ``winograd`` refuse tasks that ``small_groups`` takes.
"""

from functools import partial

from . import direct, long_sums, small_groups, winograd
from .rewrites import columns, exchanged, overlaps

#: A family is a module with two functions. ``refusal(task)`` returns None, or the reason why the family does not take
#: the task. ``pipeline(task, rest)`` returns the ``Pipeline`` that computes the task. A family may have an inner task,
#: or a fallback. It calls ``rest(other)`` for the pipeline of this other task by the families after it. The last family
#: never refuses.
PREFERENCE = (columns, overlaps, long_sums, exchanged, winograd, small_groups, direct)


def name_of(family):
    """The name of the family's module, for ``explain``."""
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
