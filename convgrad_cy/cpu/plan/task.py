"""A task: one result of one call, which the CPU is to compute."""

from typing import Any, NamedTuple

from ...problem import ConvProblem
from ..machine import Machine


class Task(NamedTuple):
    """One operation on three tensors. The written tensor is not empty.

    ``tensors``: the six-dimensional views of x, w and y. ``places``: for each, the index of the call's array that it
    views. A task holds for any arrays that lie in memory like these.
    """

    operation: str  # FPROP, DGRAD or WGRAD of convgrad_cy.problem
    problem: ConvProblem
    dtype: Any  # of convgrad_cy.dtypes.TABLE
    algorithm: str  # "auto", "direct" or "winograd"
    places: list
    tensors: Any
    machine: Machine

    def turned(self):
        """This task with x and y exchanged, as dgrad takes them: y is the source, x the target."""
        *what, places, (source, filter, target), machine = self
        return Task(*what, places[::-1], (target, filter.swapaxes(1, 2), source), machine)
