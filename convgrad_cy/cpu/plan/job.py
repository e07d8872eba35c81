"""A job: a kernel with its plan and its operands, as plain data that can be made ready to run."""

from typing import Any, NamedTuple

from ..._repeat import View, Work
from ..machine.kernels import compiled
from .checks import check
from .task import Task


class Job(NamedTuple):
    """A step of a pipeline: a kernel, its plan, and a task whose operands are source, filter and target."""

    kernel: str  # its name in pyx/kernels.pyx
    plan: Any  # with steps and blocks
    task: Task
    describe: Any  # a function of this job: pairs of a name and a value for ``explain``
    fallback: Any = None  # the job that computes the result if values leave the range of this job's algorithm

    #: Its kernel allocates memory.
    allocates = True

    @property
    def operands(self):
        return self.task.operands

    def kernels(self):
        return [self]

    def ready(self, numbers):
        """The work, for any arrays that lie in memory like the task's. Raises if the plan would leave its tensors.

        ``numbers``: buffer -> its number among the memories of a pipeline.
        """
        check(self)
        dtype = self.task.dtype
        views = [
            View(numbers.get(memory, memory), offset, view.view(dtype.view)) for memory, offset, view in self.operands
        ]
        program = self.plan[:2] if self.kernel == "sum_long" else compiled.Program(*self.plan[:2])
        fallback = self.fallback and self.fallback.ready(numbers)
        return Work(getattr(compiled, self.kernel), dtype.code, program, *views, fallback)
