"""How an operation is carried out: (operation, problem, dtype, memory layout, machine) -> Plan.

Pure: nothing is computed and no array is looked at, so the choices can be tested by themselves. They influence the
speed. Two reach the last bits of a result, for they decide the order of a sum: ``slices``, and whether channels or
positions are adjacent in memory. Neither depends on the threads.
"""

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from .problem import AxisWalk

FPROP, DGRAD, WGRAD = "fprop", "dgrad", "wgrad"

#: Sums held by one task, and the two panels that it multiplies, stay in the L2 cache together.
SUMS_BYTES = 192 * 1024
PANEL_BYTES = 192 * 1024
FILTER_BYTES = 512 * 1024
DEPTH_BYTES = 1024

#: Below this many products, starting a second thread costs more than it saves.
SERIAL_MULTIPLICATIONS = 4_000_000

#: wgrad has as many tasks as blocks of the filter; where those are fewer, the positions are cut into slices.
WANTED_TASKS = 16
SLICE_POSITIONS = 512


class Machine(NamedTuple):
    """What a plan needs to know of the machine: the register tile and the number of threads."""

    tile_rows: int
    tile_column_bytes: int
    vector_bytes: int
    threads: int


class Blocks(NamedTuple):
    """The integers that steer the loops of ``pyx/``; the fields and their order are those of ``Blocks`` there."""

    threads: int
    columns_follow_memory: bool
    depth: int
    rows: int
    columns: int
    slices: int


class Plan(NamedTuple):
    """One operation on one problem, ready for a backend.

    Attributes
    ----------
    walks : numpy.ndarray
        The walks to carry out one after the other: int64, shape (walks, 3 axes, fields of AxisWalk).
    blocks : numpy.ndarray
        A ``Blocks``, as int64.
    """

    walks: np.ndarray
    blocks: np.ndarray


def _block(extent, multiple, most):
    """The size of a block: the whole extent or a multiple of a tile's, at most ``most``, all blocks alike."""
    most = max(multiple, most // multiple * multiple)
    if extent <= most:
        return max(extent, 1)
    count = -(-extent // most)
    return -(-extent // (count * multiple)) * multiple


def _block_of_sums(extents, machine, itemsize, widest):
    """(rows, columns) of a block of a matrix whose (rows, columns) are ``extents``; ``widest`` limits the columns."""
    rows, columns = extents
    columns = _block(columns, machine.tile_column_bytes // itemsize, widest)
    return _block(rows, machine.tile_rows, SUMS_BYTES // (columns * itemsize)), columns


@lru_cache(maxsize=4096)
def plan(operation, problem, dtype, channels_last, machine):
    """The plan of ``operation`` (FPROP, DGRAD or WGRAD).

    ``channels_last`` says whether neighbours in memory are channels (else positions) in x and y.
    """
    walks = problem.backward_walks() if operation == DGRAD else [problem.forward_walk()]
    itemsize = dtype.compute_itemsize
    depth = DEPTH_BYTES // itemsize
    if operation == WGRAD:
        extents = (problem.y_channels, prod(problem.kernel) * problem.x_channels)
    else:
        channels = problem.x_channels if operation == DGRAD else problem.y_channels
        extents = (problem.batch * max(prod(axis.positions for axis in walk) for walk in walks), channels)
    if not channels_last:
        extents = extents[::-1]
    # Where channels are last, the columns of fprop and dgrad are those of the filter, which is packed beforehand.
    widest = (PANEL_BYTES if operation == WGRAD or not channels_last else FILTER_BYTES) // (depth * itemsize)
    rows, columns = _block_of_sums(extents, machine, itemsize, widest)
    slices = 1
    if operation == WGRAD:
        blocks = problem.groups * -(-extents[0] // rows) * -(-extents[1] // columns)
        slices = max(1, min(-(-WANTED_TASKS // blocks), problem.batch * prod(problem.y) // SLICE_POSITIONS))
    threads = 1 if problem.multiplications < SERIAL_MULTIPLICATIONS else machine.threads
    return Plan(
        walks=np.array(walks, np.int64).reshape(len(walks), 3, len(AxisWalk._fields)),
        blocks=np.array(Blocks(threads, channels_last, depth, rows, columns, slices), np.int64),
    )
