"""What the GPU is asked to do, and what it then does: plain data, made and read without CuPy.

A ``Task`` is one kernel of one call. A *family* of kernels (``families.py`` has their order) turns it into a ``Plan``,
which an executor carries out: CuPy on a GPU (``module.py``), or the simulator on the CPU (``tests/gpu/sim``).
"""

from typing import Any, NamedTuple

from ..dtypes import DType
from ..problem import DGRAD, WGRAD, ConvProblem

#: The operands of a task by number, as in ``Launch.pointers``. Workspace ``i`` is ``WORKSPACE + i``.
SOURCE, FILTER, TARGET, WORKSPACE = range(4)

#: Bytes to whose multiples workspaces are aligned, and operands that say ``aligned``.
ALIGNMENT = 16


class Device(NamedTuple):
    """What a plan depends on of a GPU."""

    arch: int  # compute capability, 90 for 9.0
    processors: int  # multiprocessors
    shared_bytes: int  # the most shared memory that a block may ask for
    memory_bytes: float | None = None  # moved by a multiprocessor's share of the memory in a clock; None: unknown
    engine: bool = False  # whether its copy engine can be used


class Operand(NamedTuple):
    """One of the three tensors, as six axes.

    Axes are (N, G, C, D, H, W) for data and (G, out, in, D, H, W) for the filter, with ``out`` the channels of the
    operand numbered TARGET and ``in`` those of SOURCE.
    """

    shape: tuple
    strides: tuple  # in elements; negative and zero ones too
    aligned: bool  # the first element's address is a multiple of ALIGNMENT

    @property
    def has_even_channels(self):
        """Whether channels lie evenly through all groups, so that those of several can be counted as one's."""
        (groups, channels), (by_group, by_channel) = self.shape[1:3], self.strides[1:3]
        return groups == 1 or channels == 1 or by_group == channels * by_channel

    @property
    def reach(self):
        """The greatest distance of an element from the first, in elements."""
        steps = [stride * (size - 1) for stride, size in zip(self.strides, self.shape, strict=True) if size]
        return max(sum(step for step in steps if step > 0), -sum(step for step in steps if step < 0))


class Task(NamedTuple):
    """One kernel of one call. The tensor that is written has elements.

    ========= ====== ====== ======
    operation source filter target
    ========= ====== ====== ======
    FPROP     x      w      y, written
    DGRAD     y      w      x, written
    WGRAD     x      w, written  y
    ========= ====== ====== ======
    """

    operation: str  # FPROP, DGRAD or WGRAD of convgrad_cy.problem
    problem: ConvProblem
    dtype: DType
    precision: str  # "ieee", "high" or "medium"; of float32 only
    source: Operand
    filter: Operand
    target: Operand
    device: Device

    @property
    def walks(self):
        """Triples of ``AxisWalk``, to be done in this order: one for FPROP and WGRAD, the stride phases for DGRAD."""
        return self.problem.backward_walks() if self.operation == DGRAD else [self.problem.forward_walk()]

    @property
    def is_empty(self):
        """Whether there is nothing to sum, so that the result is zero."""
        return any(0 in operand.shape for operand in (self.source, self.filter, self.target))

    @property
    def written(self):
        """The number of the operand that is written."""
        return FILTER if self.operation == WGRAD else TARGET


def task_of(operation, problem, dtype, precision, views, device):
    """The task for six-dimensional views of x, w and y, each given as shape, strides in bytes, address."""
    x, w, y = (
        Operand(shape, tuple(stride // dtype.itemsize for stride in strides), address % ALIGNMENT == 0)
        for shape, strides, address in views
    )
    if operation == DGRAD:
        # The channels of y are the input here, and those of x the output.
        x, y = y, x
        w = w._replace(shape=_swapped(w.shape), strides=_swapped(w.strides))
    return Task(operation, problem, dtype, precision, x, w, y, device)


def _swapped(axes):
    groups, out, ins, *taps = axes
    return (groups, ins, out, *taps)


class Launch(NamedTuple):
    """One kernel launch.

    The kernel receives one pointer for each of ``pointers``; where there are ``maps``, these, by value, as one struct;
    and then ``arguments``, by value, as one struct of ``int64_t`` alone.
    """

    source: str  # a file beside this one
    macros: tuple  # pairs of strings, sorted
    kernel: str  # an extern "C" __global__ function
    grid: tuple
    block: tuple
    shared: int  # dynamic shared memory in bytes
    pointers: tuple  # numbers of operands and workspaces
    arguments: tuple  # integers
    maps: tuple = ()  # of tensor_map.py


class Plan(NamedTuple):
    """Launches in their order on one stream.

    A launch that reads one operand and writes one workspace, ``pointers == (operand, workspace)``, packs: it is done
    once where two plans have it in common, so nothing else may write to its workspace.
    """

    launches: tuple
    workspaces: tuple = ()  # the size of each, in bytes


def integers(*values: Any):
    """The numbers in nested tuples, flat: what ``Launch.arguments`` wants of walks, strides and sizes."""
    flat = []
    for value in values:
        flat += integers(*value) if isinstance(value, (tuple, list)) else [int(value)]
    return tuple(flat)
