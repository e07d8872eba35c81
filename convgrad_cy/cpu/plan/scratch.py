"""The scratch limit: bytes that a call may allocate in addition to its arrays. Memory of each thread is not counted.

The limit affects the choice of a family and the number of slices, and so the result's bits. Therefore it depends only
on the problem and on ``set_scratch_limit``, never on the layout or on threads. It is compared with the bytes that a
family needs in its worst layout.
"""

from math import prod

from ..machine.caches import operand_bytes
from .reasons import Reason

#: The name of a plan's scratch memory in ``explain``.
SCRATCH = "scratch bytes"
#: Without ``set_scratch_limit``, the limit is the larger of OF_ARRAYS times the bytes of the call's arrays, and OF_ANY
#: bytes.
OF_ARRAYS, OF_ANY = 4, 64 << 20


def array_bytes(problem, itemsize):
    """Bytes of x, of the filter and of y."""
    filter_bytes = problem.groups * problem.x_channels * problem.y_channels * prod(problem.kernel) * itemsize
    x, y = operand_bytes(problem, itemsize)
    return x, filter_bytes, y


def most_scratch(problem, itemsize, tile):
    """The scratch limit of a call, in bytes."""
    asked = tile.scratch_bytes
    return max(OF_ARRAYS * sum(array_bytes(problem, itemsize)), OF_ANY) if asked is None else asked


def left_by(task, size):
    """The task's machine with ``size`` bytes less scratch, for a plan that is nested in the task's plan."""
    most = most_scratch(task.problem, task.dtype.itemsize, task.machine.tile)
    return task.machine._replace(scratch_bytes=max(0, most - size))


def excess(size, problem, itemsize, tile):
    """The phrase "... bytes of scratch, more than ..." if ``size`` bytes exceed the limit, otherwise None."""
    most = most_scratch(problem, itemsize, tile)
    return Reason("{} bytes of scratch, more than the limit of {}", size, most) if size > most else None


def refusal(*arguments):
    """The reason to refuse a problem whose scratch exceeds the limit, or None; takes the arguments of ``excess``."""
    found = excess(*arguments)
    return found and Reason("it takes {}", found)
