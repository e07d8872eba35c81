"""Operands, results and macros of the launches of ``mma.cu``, ``mma_engine.cu`` and ``mma_wgrad.cu``."""

from math import prod
from typing import NamedTuple

from . import reduce
from .joins import ALONE, spread, view
from .pack import CHANNELS, lies_in_chunks, pack
from .plan import FILTER, TARGET, WORKSPACE
from .products import MOST_PHASES

#: The axes in the order of partial sums, channels last: (group, out, taps, in) of filters, (N, G, D, H, W, C) of data.
_DIGITS = (0, 1, 3, 4, 5, 2)
_NO_WALK = (0,) * 10


def packed_operands(task, kind, join, *numbers):
    """The operands in the kernels' layout, the launches that pack them, and the sizes of their workspaces."""
    operands, packs, sizes = [], [], []
    for number in numbers:
        workspace = WORKSPACE + len(sizes)
        if number == FILTER and join != ALONE:
            packed = spread(task, join, kind, workspace)
        else:
            operand = (task.source, task.filter, task.target)[number]
            operand = operand if number == FILTER else view(operand, join.groups)
            packed = pack(number, operand, task.dtype, kind, workspace)
        operands.append(packed)
        if packed.launch is not None:
            packs.append(packed.launch)
            sizes.append(packed.size)
    return operands, packs, sizes


def macros_of(kind, tile, count, **others):
    values = {
        "BLOCKS": tile.blocks,
        "ELEMENT": kind.element,
        "ENGINE": int(tile.engine),
        "PLANES": kind.planes,
        "STAGES": count,
        "TILE_COLUMNS": tile.columns,
        "TILE_ROWS": tile.rows,
        "WARPGROUPS": tile.warpgroups,
    }
    return tuple(sorted((name, str(value)) for name, value in {**values, **others}.items()))


def _filter_strides(strides):
    """Strides as ``struct strides`` of tile.cuh. Its field ``batch`` has the stride of the target's channels."""
    group, out, *rest = strides
    return (out, group, *rest)


def digits_of(operand):
    """Extents and strides of an operand for ``reduce.launch``, and the strides of a split's partial sums."""
    extents, strides = ([of[axis] for axis in _DIGITS] for of in (operand.shape, operand.strides))
    dense = [0] * 6
    for digit, axis in enumerate(_DIGITS):
        dense[axis] = prod(extents[digit + 1 :])
    return extents, strides, dense


class Result(NamedTuple):
    """The memory where a correlation stores: its target, or partial sums in a workspace."""

    number: int
    element: str  # C++ type
    strides: tuple
    whole_chunks: bool  # channels are stored 16 bytes at a time


def result_of(task, kind, target, splits, sizes):
    """The `Result` of a correlation with ``splits`` splits. Its workspace would follow the workspaces in ``sizes``."""
    if splits == 1:
        element, size, strides, aligned, number = task.dtype.cuda, task.dtype.itemsize, *target[1:], TARGET
    else:
        *_, strides = digits_of(target)
        element, size, aligned, number = kind.sums, kind.sum_size, True, WORKSPACE + len(sizes)
    written = target._replace(strides=tuple(strides), aligned=aligned)
    whole_chunks = written.strides[CHANNELS] == 1 and lies_in_chunks(written, 16 // size)
    return Result(number, element, written.strides, whole_chunks)


def correlation(phases, batch, source, filter, channels, columns, splits, each):
    """The fields of ``struct Arguments`` of taps.cuh up to those for the filter."""
    return (
        [len(axis) for axis in phases],
        [axis[i] if i < len(axis) else _NO_WALK for axis in phases for i in range(MOST_PHASES)],
        (batch, source.channels, channels, columns, splits, each),
        (source.strides, source.plane),
        (_filter_strides(filter.strides), filter.plane),
    )


def with_reduction(task, target, result, splits, steps, sizes):
    """Launches and workspace sizes, with the launch that adds partial sums if there are several splits."""
    if splits == 1:
        return tuple(steps), tuple(sizes)
    extents, strides, _ = digits_of(target)
    added = reduce.launch(task.dtype, result.number, TARGET, splits, extents, strides)
    return (*steps, added), (*sizes, reduce.workspace_bytes(task.dtype, splits, extents))
