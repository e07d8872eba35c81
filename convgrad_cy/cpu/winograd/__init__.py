"""Winograd's algorithm: fewer products, at the cost of transforms (``pyx/winograd/``)."""

from functools import partial

from ...problem import DGRAD, WGRAD
from .. import small_groups
from ..plan import scratch
from ..plan.job import Job
from ..plan.pipeline import Pipeline
from ..plan.reasons import Reason
from ..rewrites.copies import on_copies
from .details import details
from .layout import gathered, reorders
from .plan import choose
from .plan import plan as make_plan
from .tilings import decide, tiling_refusal


def decide_for(task):
    """The ``Decision`` for a task. It does not depend on threads."""
    operation, problem, dtype, algorithm, _, machine = task
    return decide(operation, problem, dtype, algorithm == "winograd", machine.tile)


def refusal(task):
    """The reason why this family does not take a task, or None."""
    if task.algorithm == "direct":
        return "the call asks for the algorithm 'direct'"
    decision = decide_for(task)
    if decision.reason is not None:
        return decision.reason
    words = _excess(task.operation, task.problem, decision.tiling, task.dtype, task.algorithm, task.machine.tile)
    if words is None and task.algorithm == "auto" and small_groups.refusal(task) is None:
        return "small groups fill their vectors"
    return words and Reason("it takes {}", words)


def problem_refusal(operation, problem, dtype, tile):
    """The reason to refuse a call with ``algorithm="winograd"``, or None."""
    reason = tiling_refusal(operation, problem, dtype)
    if reason is not None or tile.scratch_bytes is None:
        return reason
    return _excess(operation, problem, decide(operation, problem, dtype, True, tile).tiling, dtype, "winograd", tile)


def _excess(operation, problem, tiling, dtype, algorithm, tile):
    """``scratch.excess`` of the memory that a tiling needs in the worst layout, in which all arrays are reordered.

    For a call with ``algorithm="winograd"``, only ``set_scratch_limit`` sets a limit.
    """
    if algorithm == "winograd" and tile.scratch_bytes is None:
        return None
    size = choose(operation, problem, tiling, tile).memory + _copied(operation, problem, dtype)
    return scratch.excess(size, problem, dtype.itemsize, tile)


def _copied(operation, problem, dtype):
    """Maximum bytes, over all layouts, of reordered arrays."""
    each = zip(reorders(operation, problem), scratch.array_bytes(problem, dtype.itemsize), strict=True)
    return sum([is_copied * size for is_copied, size in each])


def _room(task):
    """Maximum bytes of the memory that tasks share, or None if there is no limit."""
    operation, problem, dtype, algorithm, _, machine = task
    if algorithm == "winograd" and machine.scratch_bytes is None:
        return None
    return scratch.most_scratch(problem, dtype.itemsize, machine.tile) - _copied(operation, problem, dtype)


def pipeline(task, rest):
    """The job, on operands in a suitable memory order, with the direct sum as fallback for values out of range."""
    operation, problem, *_ = task
    (tiling, _, seconds), machine = decide_for(task), task.machine
    steps = make_plan(operation, problem, tiling, machine, _room(task))
    wanted = gathered(
        operation, problem, task.operands, steps.chosen.filters_kept > 0, machine.tuning.most_filter_reads
    )
    # This job and its fallback may hold their memory at the same time.
    if machine.scratch_bytes is not None:
        taken = choose(operation, problem, tiling, machine.tile).memory + _copied(operation, problem, task.dtype)
        machine = scratch.left_by(task, taken)
    # The fallback must not use pairs of bfloat16, like "direct": they flush subnormal numbers to zero.
    machine = machine._replace(multiplies_pairs=False)

    def plan(ordered):
        (fallback,) = rest(ordered._replace(algorithm="direct", machine=machine)).steps
        kernel = "winograd_wgrad" if operation == WGRAD else "winograd_correlate"
        seen = ordered.turned() if operation == DGRAD else ordered
        return Pipeline((Job(kernel, steps, seen, partial(details, task, tiling, seconds), fallback),))

    return on_copies(task, wanted, plan)
