"""Which plans a tuned number moves: computed by planning rows with another value of it. Nothing is run or timed."""

from typing import NamedTuple

import numpy as np

from convgrad_cy.cpu import families
from convgrad_cy.cpu.job import Job
from convgrad_cy.cpu.machines import Machine
from convgrad_cy.cpu.reached import reached
from convgrad_cy.cpu.tuning import TABLE, Tuning

NAMES = tuple(number.name for number in TABLE)
_NAMES = frozenset(NAMES)
#: How many times as large the other values of a number are.
FACTORS = (0.7, 1.4)


def varied(value, factor):
    """A value times a factor; a whole number is rounded, to another whole number, and stays positive."""
    if not isinstance(value, int):
        return value * factor
    rounded = max(1, round(value * factor))
    return rounded if rounded != value else value + (1 if factor > 1 or value == 1 else -1)


class Noting(Tuning):
    """A ``Tuning`` that notes the numbers a plan asks for. It equals only itself, so no cached plan serves it."""

    __hash__, __eq__ = object.__hash__, object.__eq__

    def __getattribute__(self, name):
        if name in _NAMES:
            object.__getattribute__(self, "__dict__").setdefault("noted", set()).add(name)
        return super().__getattribute__(name)

    @property
    def asked(self):
        return self.__dict__.get("noted", set())


def signature(made):
    """What a planned task would run: kernels, steps and blocks, with the copies around them; equal if nothing moved."""
    if isinstance(made, Job):
        return made.kernel, made.plan.steps.tobytes(), made.plan.blocks.tobytes(), signature(made.instead)
    if isinstance(made, Machine):
        return made.threads
    if isinstance(made, np.ndarray):
        return made.shape, made.strides
    if isinstance(made, slice):
        return made.start, made.stop, made.step
    if isinstance(made, dict):
        return tuple((signature(key), signature(value)) for key, value in made.items())
    if isinstance(made, (tuple, list)):
        return (type(made).__name__, *map(signature, made))
    return made


def planned(task):
    """The ``signature`` of a task's plan; of a plan that fails, its error."""
    try:
        return signature(families.job(reached(task)))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def with_tuning(task, tuning):
    return task._replace(machine=task.machine._replace(own_tuning=tuning))


def with_number(task, name, factor):
    """The task on a machine that has another value of a number."""
    tuning = task.machine.tuning
    return with_tuning(task, tuning._replace(**{name: varied(getattr(tuning, name), factor)}))


class Planned(NamedTuple):
    """A task, the signature of its plan, and the numbers that the planner asked for."""

    task: object
    signature: object
    asked: frozenset

    @classmethod
    def of(cls, task):
        noting = Noting(*task.machine.tuning)
        return cls(task, planned(with_tuning(task, noting)), frozenset(noting.asked))

    def moved(self, name, factor):
        """The signature of the plan with another value of a number; None if it stays."""
        if name not in self.asked:
            return None
        other = planned(with_number(self.task, name, factor))
        return None if other == self.signature else other
