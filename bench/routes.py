"""The routes of a row: the planner's choice, and its choice without a family or a form.

A family is left out of the list that a task is offered to. A form is left out by tuned numbers with which it suits no
case. Both are arguments of the planner: nothing of the package is changed.
"""

from typing import Any, NamedTuple

from convgrad_cy import cpu, explanation
from convgrad_cy.cpu import families

from .peers import convgrad_cy as library

FAMILIES = {families.name_of(family): family for family in families.PREFERENCE}
#: The family that takes all tasks that the others leave. No task can do without it.
LAST = families.name_of(families.PREFERENCE[-1])


class Form(NamedTuple):
    """A form of ``convgrad_cy.cpu.direct.forms`` by its name there, and the numbers with which no plan has it."""

    name: str
    numbers: dict


FORMS = {
    "rows": Form(
        "tiles across the positions of a row",
        {"across_cycles": 0.0, "across_cycles_in_place": 0.0, "transposing_cycles": 1e9, "kept_rows_cycles": 0.0},
    ),
    "packed": Form("tasks pack their part of the filter", {"most_packed_taps": 0}),
    "phases": Form("tasks have all stride phases", {"stored_phases": 0}),
}
_FORM_OF = {form.name: name for name, form in FORMS.items()}
#: All that can be left out.
NAMES = (*(name for name in FAMILIES if name != LAST), *FORMS)


class Route(NamedTuple):
    """A way to compute a task, named by ``family`` and ``form`` (None for families without forms)."""

    task: Any
    preference: tuple  # the families that the task is offered to
    family: str | None  # None if no product exists
    form: str | None
    numbers: dict  # the plan as ``explain`` describes it, without the form

    @classmethod
    def of(cls, task, preference=families.PREFERENCE):
        _, family, details = cpu.explained(task, preference)
        numbers = dict(details)
        numbers.pop("not", None)
        form = numbers.pop("form", None)
        return cls(task, preference, family, _FORM_OF.get(form), numbers)

    def __str__(self):
        return f"{self.family}, {self.form}" if self.form else self.family

    def ready(self):
        """The work of the task, for any arrays that lie in memory like its own."""
        return cpu.ready(self.task, self.preference)

    def without(self, name):
        """The route that the planner takes if a family or a form is left out."""
        if name not in FORMS:
            return self.of(self.task, tuple(family for family in self.preference if family is not FAMILIES[name]))
        machine = self.task.machine
        tuning = machine.tuning._replace(**FORMS[name].numbers)
        return self.of(self.task._replace(machine=machine._replace(own_tuning=tuning)), self.preference)

    def others(self, names):
        """Pairs of a name that is left out and the route without it, for each of ``names`` that this route takes.

        A form that makes no difference to the plan is passed over.
        """
        taken = [name for name in (self.family, self.form) if name in names]
        pairs = [(name, self.without(name)) for name in taken]
        return [(name, other) for name, other in pairs if (other.family, other.numbers) != (self.family, self.numbers)]


def task_of(row):
    """The task that a call with the row's arrays plans, with as many threads as a call has now."""
    case, kernel = row.case, row.kernel
    shapes = [case.laid_out(name) for name in library.tensors_of(case, kernel)[:2]]
    (task,) = explanation.tasks(case.function(kernel), shapes, case.dtype, **library.keywords_of(case, kernel))
    return task
