"""A job: a kernel with its plan and its operands, as plain data that can be made ready to run."""

from typing import Any, NamedTuple

from ..._repeat import View, Work
from ..machine.kernels import compiled
from .checks import check
from .task import Task


class Job(NamedTuple):
    """A kernel, its plan and its operands: source, filter and target of a task."""

    kernel: str  # its name in pyx/kernels.pyx
    plan: Any  # with steps and blocks
    task: Task
    instead: Any = None  # the Job for values that leave the range of this one's algorithm

    def ready(self):
        """The work, for any arrays that lie in memory like the task's. Raises if the plan would leave its tensors."""
        check(self)
        _, _, dtype, _, places, tensors, _ = self.task
        views = [View(place, tensor.view(dtype.view)) for place, tensor in zip(places, tensors, strict=True)]
        program = compiled.Program(self.plan.steps, self.plan.blocks)
        instead = self.instead and self.instead.ready()
        return Work(getattr(compiled, self.kernel), dtype.code, program, *views, instead)
