"""The CPU backend: ``prepare`` plans the work of a call.

A ``Task`` (task.py) is one result of one call. The first of the families that suits it (families.py) makes a ``Job`` of
it (job.py): a kernel, a plan as integers, and the operands. What is ``ready`` runs on any arrays like the call's.
"""

from ..without_openmp import warn_if_serial
from . import families
from .details import explained as explained_task
from .kernels import available_isas as available_isas
from .kernels import isa as isa
from .kernels import machine as machine
from .kernels import openmp as openmp
from .kernels import run_tiles as run_tiles
from .kernels import threads as threads
from .reached import Narrowed, reached
from .task import Task
from .winograd import refusal as refused_by_winograd
from .zeros import Zeros


def task_of(operation, problem, dtype, algorithm, places, tensors, threads=None):
    """The ``Task`` on this machine; ``threads`` None takes the number of a call here and now."""
    here = machine(threads)
    if algorithm == "direct":  # pairs of bfloat16 are multiplied with subnormal numbers taken for zero
        here = here._replace(multiplies_pairs=False)
    return Task(operation, problem, dtype, algorithm, places, tensors, here)


def explained(task, preference=families.PREFERENCE):
    """What ``details.explained`` says of a task; no family and no details where the result is zeros."""
    if not task.problem.has_products:
        return [], None, []
    declined, family, details = explained_task(reached(task), preference)
    return declined, family, [("instruction set", isa), *details]


def refusal(operation, problem, dtype):
    """Why Winograd's algorithm cannot be asked for, or None: zeros need no algorithm."""
    if not problem.has_products:
        return None
    return refused_by_winograd(operation, problem, dtype, machine().tile)


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
