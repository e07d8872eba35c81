"""A task: one result of one call, to be computed by the CPU."""

from typing import Any, NamedTuple

from ...problem import DGRAD, FPROP, WGRAD, ConvProblem
from ..machine import Machine

#: The operations that write x, w and y, in this order.
WRITERS = DGRAD, WGRAD, FPROP


class Task(NamedTuple):
    """One operation on three tensors. The written tensor is not empty.

    ``operands``: x, w and y as six-dimensional views, x and y (N, G, C, D, H, W) and w (G, O, C, D, H, W). A task holds
    for any arrays with the same memory layout. In the task of a ``Job``, the operands are source, filter and target:
    in dgrad and in mirrored wgrad, y is the source and x is the target (``turned``).
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
        """This task with other views; each one shares the memory of its operand."""
        each = zip(self.operands, views, strict=True)
        return self._replace(operands=tuple([own.with_view(view) for own, view in each]))

    def turned(self):
        """This task with y as the source and x as the target, for the kernels of dgrad and mirrored wgrad.

        The problem stays unchanged. x and y change places, and so do the axes O and C of the filter.
        """
        source, filter, target = self.operands
        return self._replace(operands=(target, filter.with_view(filter.view.swapaxes(1, 2)), source))
