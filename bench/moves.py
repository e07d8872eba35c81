"""The plans that a tuned number moves, found by planning rows with another value. Nothing is run or timed."""

from typing import NamedTuple

import numpy as np

from convgrad_cy.cpu import families
from convgrad_cy.cpu.machine.tuning import TABLE, Tuning
from convgrad_cy.cpu.plan.job import Job
from convgrad_cy.cpu.plan.operand import Buffer
from convgrad_cy.cpu.rewrites.reached import without_unreached_taps

NAMES = tuple(number.name for number in TABLE)
_NAMES = frozenset(NAMES)
#: The other values of a number, as multiples of its value.
FACTORS = (0.7, 1.4)


def varied(value, factor):
    """``value * factor``; a whole number becomes a different, positive whole number."""
    if not isinstance(value, int):
        return value * factor
    rounded = max(1, round(value * factor))
    return rounded if rounded != value else value + (1 if factor > 1 or value == 1 else -1)


class Noting(Tuning):
    """A ``Tuning`` that notes which numbers a plan asks for. It equals only itself, so no cached plan serves it."""

    __hash__, __eq__ = object.__hash__, object.__eq__

    def __getattribute__(self, name):
        if name in _NAMES:
            object.__getattribute__(self, "__dict__").setdefault("noted", set()).add(name)
        return super().__getattribute__(name)

    @property
    def asked(self):
        return self.__dict__.get("noted", set())


def signature(made):
    """The work of a plan as a comparable value: kernels, steps, blocks, and the copies around them.

    A buffer is known by its size and by the steps that use it.
    """
    if isinstance(made, Job):
        plan = made.plan.steps.tobytes(), made.plan.blocks.tobytes()
        return made.kernel, *plan, signature(made.operands), signature(made.fallback)
    if isinstance(made, Buffer):
        return made.template.nbytes
    if isinstance(made, np.ndarray):
        return made.shape, made.strides
    if isinstance(made, (tuple, list)):
        return (type(made).__name__, *map(signature, made))
    return made


def planned(task):
    """The ``signature`` of a task's plan, or the error of planning as text."""
    try:
        steps = families.pipeline(without_unreached_taps(task)).steps
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return signature(steps)


def with_tuning(task, tuning):
    return task._replace(machine=task.machine._replace(own_tuning=tuning))


def with_number(task, name, factor):
    """The task on a machine whose value of a number is multiplied by ``factor``."""
    tuning = task.machine.tuning
    return with_tuning(task, tuning._replace(**{name: varied(getattr(tuning, name), factor)}))


class Planned(NamedTuple):
    """A task, the signature of its plan, and the numbers that the planner read."""

    task: object
    signature: object
    asked: frozenset

    @classmethod
    def of(cls, task):
        noting = Noting(*task.machine.tuning)
        return cls(task, planned(with_tuning(task, noting)), frozenset(noting.asked))

    def moved(self, name, factor):
        """The signature of the plan with a multiple of a number; None if the plan stays the same."""
        if name not in self.asked:
            return None
        other = planned(with_number(self.task, name, factor))
        return None if other == self.signature else other
