"""What the CPU is asked to do: one result of one call."""

from typing import Any, NamedTuple

from ...problem import ConvProblem
from ..machine import Machine


class Task(NamedTuple):
    """One operation on three tensors, of which the written one has elements.

    ``tensors`` has the six-dimensional views of x, w and y, and ``places`` says which of a call's arrays they view. A
    task holds for any arrays that lie in memory like these.
    """

    operation: str  # FPROP, DGRAD or WGRAD of convgrad_cy.problem
    problem: ConvProblem
    dtype: Any  # of convgrad_cy.dtypes.TABLE
    algorithm: str  # "auto", "direct" or "winograd"
    places: list
    tensors: Any
    machine: Machine

    def turned(self):
        """The same with x and y in each other's place, as dgrad takes them."""
        *what, places, (source, filter, target), machine = self
        return Task(*what, places[::-1], (target, filter.swapaxes(1, 2), source), machine)
