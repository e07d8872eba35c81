"""A task: one result of one call, which the CPU is to compute."""

from typing import Any, NamedTuple

from ...problem import DGRAD, FPROP, WGRAD, ConvProblem
from ..machine import Machine

#: The operations that write x, w and y.
WRITERS = DGRAD, WGRAD, FPROP


class Task(NamedTuple):
    """One operation on three tensors. The written tensor is not empty.

    ``operands``: x, w and y as six-dimensional views, x and y (N, G, C, D, H, W) and w (G, O, C, D, H, W). A task holds
    for any arrays that lie in memory like these. The task of a ``Job`` has them as source, filter and target, which
    differs in dgrad and in mirrored wgrad (``turned``).
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
        """This task with its operands as source y, filter and target x, as kernels take dgrad and mirrored wgrad.

        The problem stays as it is: only the operands change places, and the axes O and C of the filter.
        """
        source, filter, target = self.operands
        return self._replace(operands=(target, filter.seen(filter.view.swapaxes(1, 2)), source))
