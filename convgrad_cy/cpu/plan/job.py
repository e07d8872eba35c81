"""A job: a kernel, its plan and its operands, as data. ``ready`` turns it into work that can run."""

from typing import Any, NamedTuple

from ..._repeat import View, Work
from ..machine.kernels import compiled
from .checks import check
from .task import Task


class Job(NamedTuple):
    """A step of a pipeline: a kernel, its plan, and a task whose operands are source, filter and target."""

    kernel: str  # the name of a function of pyx/kernels.pyx
    plan: Any  # a ``Plan`` or another NamedTuple that begins with steps and blocks
    task: Task
    describe: Any  # a function that takes the job and returns pairs (name, value) for ``explain``
    fallback: Any = None  # the job that computes the result if values leave the range of this job's algorithm

    allocates = True  # its kernel does

    @property
    def operands(self):
        return self.task.operands

    def jobs(self):
        return [self]

    def details(self):
        """Names and values for ``explain``."""
        return dict(self.describe(self))

    def ready(self, indices):
        """The work, for any arrays with the memory layout of the task's operands.

        Raises a RuntimeError if the plan would access memory outside its tensors. ``indices``: buffer -> its index in
        the addresses of a pipeline.
        """
        check(self)
        dtype = self.task.dtype
        views = [
            View(indices.get(memory, memory), offset, view.view(dtype.view)) for memory, offset, view in self.operands
        ]
        program = self.plan[:2] if self.kernel == "sum_long" else compiled.Program(*self.plan[:2])
        fallback = self.fallback and self.fallback.ready(indices)
        return Work(getattr(compiled, self.kernel), dtype.code, program, *views, fallback)
