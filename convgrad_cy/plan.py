"""How an operation is carried out: (operation, problem, dtype, memory layout, machine) -> Plan.

Pure: nothing is computed and no array is looked at, so the choices can be tested by themselves. They influence the speed;
the only one that reaches the bits of a result is ``slices``, and it depends on the problem alone.
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
DEPTH_BYTES = 1024

#: Below this many products, starting a second thread costs more than it saves.
SERIAL_MULTIPLICATIONS = 200_000

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
    """The integers that steer the loops of ``pyx/kernels.pyx``; the fields and their order are those of ``Blocks`` there."""

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
    zero_first : bool
        Whether elements of the result exist that no walk visits.
    """

    walks: np.ndarray
    blocks: np.ndarray
    zero_first: bool


def _blocked(length, multiple, most):
    """A block size: the whole length or a multiple of a tile's extent, of ``most`` elements at the most and of even sizes."""
    most = max(multiple, most // multiple * multiple)
    if length <= most:
        return max(length, 1)
    count = -(-length // most)
    return -(-length // (count * multiple)) * multiple


def _correlation_blocks(problem, walk, channels, depth, tile_rows, tile_columns, itemsize, channels_last):
    """(rows, columns) of a block of sums: positions and output channels, in the order that ``channels_last`` says."""
    positions = problem.batch * prod(axis.positions for axis in walk)
    rows, columns = (positions, channels) if channels_last else (channels, positions)
    columns = _blocked(columns, tile_columns, PANEL_BYTES // (depth * itemsize) if not channels_last else 512)
    rows = _blocked(rows, tile_rows, SUMS_BYTES // (columns * itemsize))
    return rows, columns


def _filter_blocks(problem, tile_rows, tile_columns, depth, itemsize, channels_last):
    """(rows, columns) of a block of the filter: output channels and taps x channels, in that order if ``channels_last``."""
    taps = prod(problem.kernel) * problem.x_channels
    rows, columns = (problem.y_channels, taps) if channels_last else (taps, problem.y_channels)
    columns = _blocked(columns, tile_columns, PANEL_BYTES // (depth * itemsize))
    rows = _blocked(rows, tile_rows, SUMS_BYTES // (columns * itemsize))
    blocks = problem.groups
    for extent, block in zip((problem.y_channels, taps) if channels_last else (taps, problem.y_channels), (rows, columns)):
        blocks *= -(-extent // block)
    positions = problem.batch * prod(problem.y)
    slices = max(1, min(-(-WANTED_TASKS // blocks), positions // SLICE_POSITIONS))
    return rows, columns, slices


@lru_cache(maxsize=4096)
def plan(operation, problem, dtype, channels_last, machine):
    """The plan of ``operation`` (FPROP, DGRAD or WGRAD).

    ``channels_last`` says whether neighbours in memory are channels (else positions) in x and y.
    """
    walks = problem.backward_walks() if operation == DGRAD else [problem.forward_walk()]
    zero_first = operation == DGRAD and not problem.backward_is_complete()
    if problem.multiplications == 0:
        walks, zero_first = [], True
    itemsize = dtype.compute_itemsize
    tile = machine.tile_rows, machine.tile_column_bytes // itemsize
    depth = DEPTH_BYTES // itemsize
    rows, columns, slices = 1, 1, 1
    if walks and operation == WGRAD:
        rows, columns, slices = _filter_blocks(problem, *tile, depth, itemsize, channels_last)
    elif walks:
        channels = problem.x_channels if operation == DGRAD else problem.y_channels
        largest = max(walks, key=lambda walk: prod(axis.positions for axis in walk))
        rows, columns = _correlation_blocks(problem, largest, channels, depth, *tile, itemsize, channels_last)
    threads = 1 if problem.multiplications < SERIAL_MULTIPLICATIONS else machine.threads
    return Plan(
        walks=np.array(walks, np.int64).reshape(len(walks), 3, len(AxisWalk._fields)),
        blocks=np.array(Blocks(threads, channels_last, depth, rows, columns, slices), np.int64),
        zero_first=zero_first,
    )
