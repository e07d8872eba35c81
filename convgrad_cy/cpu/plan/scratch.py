"""What a call may take beside its arrays, and beside what each thread has for itself.

It decides between families and about slices, and so reaches bits: it sees a problem and what the process asks for, but
no layout and no threads. What is compared with it is what a family takes in the layout in which that is most.
"""

from math import prod

from ..machine.caches import operand_bytes
from .reasons import Reason

#: Not for speed: without a limit of the process's own, a call may take so many times the bytes of its arrays, and at
#: least these.
OF_ARRAYS, OF_ANY = 4, 64 << 20


def array_bytes(problem, itemsize):
    """Of x, the filter and y."""
    filter_bytes = problem.groups * problem.x_channels * problem.y_channels * prod(problem.kernel) * itemsize
    x, y = operand_bytes(problem, itemsize)
    return x, filter_bytes, y


def most_scratch(problem, itemsize, tile):
    """The bytes that there are."""
    asked = tile.scratch_bytes
    return max(OF_ARRAYS * sum(array_bytes(problem, itemsize)), OF_ANY) if asked is None else asked


def left_by(task, size):
    """The machine for what is planned as a part of a task, which takes ``size`` bytes itself."""
    most = most_scratch(task.problem, task.dtype.itemsize, task.machine.tile)
    return task.machine._replace(scratch_bytes=max(0, most - size))


def excess(size, problem, itemsize, tile):
    """A part of a reason if ``size`` bytes are more than the limit, or None."""
    most = most_scratch(problem, itemsize, tile)
    return Reason("{} bytes beside the arrays, more than the limit of {}", size, most) if size > most else None


def refusal(*arguments):
    """Why a family refuses a problem, by the ``excess`` of what it takes, or None."""
    found = excess(*arguments)
    return found and Reason("it takes {}", found)
