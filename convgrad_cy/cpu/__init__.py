"""The CPU backend: ``prepare`` plans the work of a call.

A ``Task`` (plan/task.py) is one result of one call. The first family that does not refuse it (families.py) makes a
``Job`` of it (plan/job.py): a kernel, a plan as integers, and the operands. ``Job.ready`` gives the work, which runs on
any arrays that lie in memory like the call's.

- ``machine/``: the register tile, the caches, the kernels and the numbers that decide what is faster.
- ``plan/``: the stages of a plan that all families share.
- ``rewrites/``: families that make another problem of a task, with copies around it.
- ``direct/``, ``winograd/``, ``small_groups/``, ``long_sums/``: families that plan a kernel of ``pyx/``.
"""

from ..settings.without_openmp import warn_if_serial
from . import families
from .details import explained as explained_task
from .machine.kernels import available_isas as available_isas
from .machine.kernels import isa as isa
from .machine.kernels import openmp as openmp
from .machine.kernels import run_tiles as run_tiles
from .machine.kernels import this_machine as this_machine
from .machine.kernels import threads as threads
from .plan.task import Task
from .rewrites.reached import Narrowed, reached
from .winograd import problem_refusal as refused_by_winograd
from .zeros import Zeros


def task_of(operation, problem, dtype, algorithm, places, tensors, threads=None):
    """The ``Task`` on this machine; ``threads`` None takes the number of a call here and now."""
    here = this_machine(threads)
    if algorithm == "direct":  # pairs of bfloat16 are multiplied with subnormal numbers taken for zero
        here = here._replace(multiplies_pairs=False)
    return Task(operation, problem, dtype, algorithm, places, tensors, here)


def explained(task, preference=families.PREFERENCE):
    """What ``details.explained`` says of a task; no family and no details where the result is zeros."""
    if not task.problem.has_products:
        return [], None, []
    refusals, family, details = explained_task(reached(task), preference)
    return refusals, family, [("instruction set", isa), *details]


def refusal(operation, problem, dtype):
    """Why Winograd's algorithm cannot be asked for, or None: zeros need no algorithm."""
    if not problem.has_products:
        return None
    return refused_by_winograd(operation, problem, dtype, this_machine().tile)


def prepare(operation, problem, dtype, algorithm, places, tensors, threads=None):
    """How to write x (DGRAD), y (FPROP) or w (WGRAD), which is not empty, for any arrays that lie in memory like these.

    ``tensors`` has the six-dimensional views of x, w and y, and ``places`` says which of a call's arrays they view.
    ``threads``: the number of the call, or None for the one here and now.
    """
    if not problem.has_products:
        return Zeros()
    task = task_of(operation, problem, dtype, algorithm, places, tensors, threads)
    if problem.multiplications >= task.machine.tuning.serial_products:
        warn_if_serial()
    return ready(task)


def ready(task, preference=families.PREFERENCE):
    """The work of a task that has products, by the first family of ``preference`` that suits."""
    narrowed = reached(task)
    work = families.job(narrowed, preference).ready()
    return work if narrowed is task else Narrowed.of(work, task)
