"""A task: one result of one call, which the CPU is to compute."""

from typing import Any, NamedTuple

from ...problem import DGRAD, FPROP, WGRAD, ConvProblem
from ..machine import Machine

#: The operations that write x, w and y.
WRITERS = DGRAD, WGRAD, FPROP


class Task(NamedTuple):
    """One operation on three tensors. The written tensor is not empty.

    ``operands``: x, w and y as six-dimensional views, x and y (N, G, C, D, H, W) and w (G, O, C, D, H, W). A task holds
    for any arrays that lie in memory like these.
    """

    operation: str  # FPROP, DGRAD or WGRAD of convgrad_cy.problem
    problem: ConvProblem
    dtype: Any  # of convgrad_cy.dtypes.TABLE
    algorithm: str  # "auto", "direct" or "winograd"
    operands: tuple  # each an ``Operand``
    machine: Machine

    @property
    def tensors(self):
        """The views of the operands."""
        return tuple([operand.view for operand in self.operands])

    def viewing(self, *views):
        """This task with other views of the memory of each operand."""
        each = zip(self.operands, views, strict=True)
        return self._replace(operands=tuple([own.seen(view) for own, view in each]))

    def turned(self):
        """This task with x and y exchanged, as dgrad takes them: y is the source, x the target."""
        source, filter, target = self.operands
        return self._replace(operands=(target, filter.seen(filter.view.swapaxes(1, 2)), source))
