"""Winograd's algorithm: fewer products, for the price of transforms (``pyx/winograd/``)."""

from ...problem import DGRAD, WGRAD
from .. import small_groups
from ..plan import scratch
from ..plan.job import Job
from ..plan.reasons import Reason
from ..rewrites.copies import Reordered
from .layout import gathered, reorders
from .plan import choose
from .plan import plan as make_plan
from .tilings import decide
from .tilings import refusal as cannot


def decide_for(task):
    """What the model says of a task, whatever its threads."""
    operation, problem, dtype, algorithm, _, _, here = task
    return decide(operation, problem, dtype, algorithm == "winograd", here.tile)


def refusal(task):
    """Why another family computes a task, or None."""
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
    """Why a call that asks for this algorithm is refused, or None."""
    reason = cannot(operation, problem, dtype)
    if reason is not None or tile.scratch_bytes is None:
        return reason
    return _excess(operation, problem, decide(operation, problem, dtype, True, tile).tiling, dtype, "winograd", tile)


def _excess(operation, problem, tiling, dtype, algorithm, tile):
    """A part of a reason: the memory of a tiling whose arrays are all to be reordered, if that is too much, or None.

    A call that asks for the algorithm has no other limit than the one that is set.
    """
    if algorithm == "winograd" and tile.scratch_bytes is None:
        return None
    size = choose(operation, problem, tiling, tile).memory + _copied(operation, problem, dtype)
    return scratch.excess(size, problem, dtype.itemsize, tile)


def _copied(operation, problem, dtype):
    """Bytes at most of arrays in another order."""
    each = zip(reorders(operation, problem), scratch.array_bytes(problem, dtype.itemsize), strict=True)
    return sum([is_copied * size for is_copied, size in each])


def _room(task):
    """Bytes at most of what tasks share, or None where there is no limit."""
    operation, problem, dtype, algorithm, _, _, here = task
    if algorithm == "winograd" and here.scratch_bytes is None:
        return None
    return scratch.most_scratch(problem, dtype.itemsize, here.tile) - _copied(operation, problem, dtype)


def job(task, rest):
    """The job, with the sum itself for values that leave the algorithm's range; its arrays in an order that fits."""
    operation, problem, *_ = task
    tiling, here = decide_for(task).tiling, task.machine
    steps = make_plan(operation, problem, tiling, here, _room(task))
    most_reads = task.machine.tuning.most_filter_reads
    wanted = gathered(operation, problem, task.tensors, steps.chosen.filters_kept > 0, most_reads)
    ordered = task._replace(tensors=wanted)
    # Both may have their memory at a time.
    if here.scratch_bytes is not None:
        taken = choose(operation, problem, tiling, here.tile).memory + _copied(operation, problem, task.dtype)
        here = scratch.left_by(task, taken)
    # Where values are out of range, as by "direct": no pairs of bfloat16, which take subnormal numbers for zero.
    here = here._replace(multiplies_pairs=False)
    instead = rest(ordered._replace(algorithm="direct", machine=here))
    kernel = "winograd_wgrad" if operation == WGRAD else "winograd_correlate"
    made = Job(kernel, steps, ordered.turned() if operation == DGRAD else ordered, instead)
    if all(one is other for one, other in zip(task.tensors, wanted, strict=True)):
        return made
    return Reordered.to(wanted, made, task)
