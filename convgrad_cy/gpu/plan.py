"""Tasks and plans of the GPU: plain data, made and read without CuPy.

A ``Task`` is one operation of one call. A *family* of kernels (``families.py`` has their order) turns it into a
``Plan``. An executor runs the plan: CuPy on a GPU (``work.py``), or a simulator on the CPU in the tests.
"""

from typing import Any, NamedTuple

from ..dtypes import DType
from ..problem import DGRAD, WGRAD, ConvProblem

#: The operands of a task by number, as in ``Launch.pointers``. Workspace ``i`` is ``WORKSPACE + i``.
SOURCE, FILTER, TARGET, WORKSPACE = range(4)

#: Alignment in bytes of workspaces, and of operands with ``aligned``.
ALIGNMENT = 16


class Device(NamedTuple):
    """The properties of a GPU that plans depend on."""

    arch: int  # compute capability, 90 for 9.0
    processors: int  # multiprocessors
    shared_bytes: int  # the most shared memory that a block may ask for
    memory_bytes: float | None = None  # bytes of memory traffic per clock and multiprocessor; None: unknown
    grouped: bool = False  # whether warpgroups can multiply: sm_90a, and a compiler that can be asked for it
    engine: bool = False  # whether TMA can be used, too


class Operand(NamedTuple):
    """One of the three tensors, as six axes.

    Axes are (N, G, C, D, H, W) for data and (G, out, in, D, H, W) for the filter. ``out`` are the channels of the
    operand TARGET, and ``in`` the channels of SOURCE.
    """

    shape: tuple
    strides: tuple  # in elements; negative and zero ones too
    aligned: bool  # the first element's address is a multiple of ALIGNMENT

    @property
    def has_even_channels(self):
        """Whether the channels of all groups have one stride, so that several groups can be counted as one."""
        (groups, channels), (by_group, by_channel) = self.shape[1:3], self.strides[1:3]
        return groups == 1 or channels == 1 or by_group == channels * by_channel

    @property
    def reach(self):
        """The greatest distance of an element from the first, in elements."""
        steps = [stride * (size - 1) for stride, size in zip(self.strides, self.shape, strict=True) if size]
        return max(sum(step for step in steps if step > 0), -sum(step for step in steps if step < 0))


class Task(NamedTuple):
    """One operation of one call. The tensor that is written is not empty.

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
    precision: str  # "ieee", "high" or "medium", for float32 only
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
        # Here y has the input channels, and x the output channels.
        x, y = y, x
        w = w._replace(shape=_swapped(w.shape), strides=_swapped(w.strides))
    return Task(operation, problem, dtype, precision, x, w, y, device)


def _swapped(axes):
    groups, out, ins, *taps = axes
    return (groups, ins, out, *taps)


class Launch(NamedTuple):
    """One kernel launch.

    The kernel receives a pointer for each of ``pointers``. If there are ``maps``, they follow by value as one struct.
    Then ``arguments`` follow by value as one struct of ``int64_t`` fields.
    """

    source: str  # a file of cuda/
    macros: tuple  # pairs of strings, sorted
    kernel: str  # an extern "C" __global__ function
    grid: tuple
    block: tuple
    shared: int  # dynamic shared memory in bytes
    pointers: tuple  # numbers of operands and workspaces
    arguments: tuple  # integers
    maps: tuple = ()  # `TensorMap` of tensor_map.py


class Plan(NamedTuple):
    """Launches in their order on one stream.

    A launch with ``pointers == (operand, workspace)`` packs an operand into a workspace. It is done once if two plans
    have it in common, so nothing else may write to its workspace.
    """

    launches: tuple
    workspaces: tuple = ()  # the size of each, in bytes


def integers(*values: Any):
    """Flatten nested tuples and lists of walks, strides and sizes into integers for ``Launch.arguments``."""
    flat = []
    for value in values:
        flat += integers(*value) if isinstance(value, (tuple, list)) else [int(value)]
    return tuple(flat)
