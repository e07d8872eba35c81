"""The CPU backend: ``prepare`` plans the work of a call.

A ``Task`` (plan/task.py) is one result of one call. The first family that does not refuse it (families.py) turns it
into a ``Pipeline`` (plan/pipeline.py): copies in, kernels, copies out. Each kernel is a ``Job`` (plan/job.py): the name
of a kernel, a plan of integers, and the operands. ``Pipeline.ready`` returns the work. It runs on any arrays with the
memory layout of the call's arrays.

- ``machine/``: the register tile, the caches, the kernels, and the tuned numbers that predict which choice is faster.
- ``plan/``: the parts of planning that all families share.
- ``rewrites/``: families that turn a task into a task for another problem, with copies around it.
- ``direct/``, ``winograd/``, ``small_groups/``, ``long_sums/``: families that plan a kernel of ``pyx/``.
- ``parts.py``: parts of a problem, planned so that together they are bitwise identical to one call.
"""

from functools import partial

from ..settings.without_openmp import warn_if_serial
from . import families
from .machine.kernels import available_isas as available_isas
from .machine.kernels import isa as isa
from .machine.kernels import openmp as openmp
from .machine.kernels import run_tiles as run_tiles
from .machine.kernels import this_machine as this_machine
from .machine.kernels import threads as threads
from .machine.matrix_units import units_of_frameworks as units_of_frameworks
from .plan.operand import Operand as Operand
from .plan.pipeline import Pipeline
from .plan.task import WRITERS, Task
from .rewrites import reached
from .rewrites.copies import Zeros
from .rewrites.reached import without_unreached_taps as without_unreached_taps
from .winograd import problem_refusal as refused_by_winograd


def task_of(operation, problem, dtype, algorithm, operands, threads=None):
    """The ``Task`` on this machine; ``threads``: of the call, None for the current setting."""
    machine = this_machine(threads)
    if algorithm == "direct":  # the instruction for pairs of bfloat16 flushes subnormal numbers to zero
        machine = machine._replace(multiplies_pairs=False)
    return Task(operation, problem, dtype, algorithm, tuple(operands), machine)


def explained(task, preference=families.PREFERENCE):
    """The result of ``families.explained``; without family and details if the result is zeros."""
    if not task.problem.has_products:
        return [], None, []
    refusals, family, details = families.explained(without_unreached_taps(task), preference)
    return refusals, family, [("instruction set", isa), *details]


def winograd_refusal(operation, problem, dtype):
    """The reason to refuse a call with ``algorithm="winograd"``, or None. A result of zeros needs no algorithm."""
    if not problem.has_products:
        return None
    return refused_by_winograd(operation, problem, dtype, this_machine().tile)


def prepare(operation, problem, dtype, algorithm, operands, threads=None):
    """The work that writes x (DGRAD), y (FPROP) or w (WGRAD), for any arrays with this memory layout.

    ``operands``: x, w and y as six-dimensional views; the written one is not empty. ``threads``: the threads of the
    call, or None for the current setting.
    """
    if not problem.has_products:
        return Pipeline((Zeros(operands[WRITERS.index(operation)]),)).ready()
    task = task_of(operation, problem, dtype, algorithm, operands, threads)
    if problem.multiplications >= task.machine.tuning.serial_products:
        warn_if_serial()
    return ready(task)


def ready(task, preference=families.PREFERENCE):
    """The work of a task that has products, from the first family of ``preference`` that does not refuse it."""
    return reached.pipeline(task, partial(families.pipeline, families=preference)).ready()
