"""Winograd's algorithm: fewer products, for the price of transforms (``pyx/winograd/``)."""

from ...problem import DGRAD, WGRAD
from ..job import Job
from ..layouts import Reordered
from .layout import gathered
from .plan import plan as make_plan
from .tilings import decide


def decide_for(task):
    """What the model says of a task, whatever its threads."""
    operation, problem, dtype, algorithm, _, _, here = task
    return decide(operation, problem, dtype, algorithm == "winograd", here.tile)


def suits(task):
    """Why another family computes a task, or None."""
    if task.algorithm == "direct":
        return "the call asks for the algorithm 'direct'"
    return decide_for(task).reason


def job(task, rest):
    """The job, with the sum itself for values that leave the algorithm's range; its arrays in an order that suits."""
    operation, problem, *_ = task
    steps = make_plan(operation, problem, decide_for(task).tiling, task.machine)
    most_reads = task.machine.tuning.most_filter_reads
    wanted = gathered(operation, problem, task.tensors, steps.chosen.group > 0, most_reads)
    ordered = task._replace(tensors=wanted)
    # Where values are out of range, no pairs of bfloat16: they take subnormal numbers for zero.
    instead = rest(ordered._replace(machine=ordered.machine._replace(multiplies_pairs=False)))
    kernel = "winograd_wgrad" if operation == WGRAD else "winograd_correlate"
    made = Job(kernel, steps, ordered.turned() if operation == DGRAD else ordered, instead)
    if all(one is other for one, other in zip(task.tensors, wanted, strict=True)):
        return made
    return Reordered.to(wanted, made, task.machine.threads, task.places, task.tensors)
