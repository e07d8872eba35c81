"""Several groups, or several stride phases of dgrad, as one matrix product, to fill tiles that would be mostly empty.

Groups of few channels leave most of a tile's columns without a result, and so do the few channels of an image. Joined
groups are one convolution of all of their channels, whose filter is zero between two groups. Joined phases are one
convolution of unit stride: its window has every y that a phase of a position reads, and its columns are the channels of
one phase after another. Source and target stay as they are. ``spread.cu`` writes the filter with zeros where it has no
terms. The model of ``costs.py`` compares the cost with the gain.
"""

from itertools import product
from math import prod
from typing import NamedTuple

from ..problem import DGRAD, WGRAD, AxisWalk
from .pack import CHANNELS, Packed
from .plan import FILTER, Launch, integers

_THREADS = 256
#: Most channels of joined groups, and most columns: the columns of a tile with many rows.
_MOST = 64
_MOST_CHUNKS = 2**31 - 2**16


class Join(NamedTuple):
    """Numbers of groups, and of stride phases of each axis, in one product."""

    groups: int = 1
    phases: tuple = (1, 1, 1)


ALONE = Join()


def joins(task):
    """All joins that a task allows. The first one joins nothing."""
    problem, ins, out = task.problem, task.source.shape[CHANNELS], task.target.shape[CHANNELS]
    groups = [n for n in range(2, _MOST // max(ins, out) + 1) if problem.groups % n == 0]
    if not (task.source.has_even_channels and task.target.has_even_channels):
        groups = []
    phases = [ALONE.phases]
    if task.operation == DGRAD and not any(x % stride for x, stride in zip(problem.x, problem.stride, strict=True)):
        phases.append(problem.stride)
    found = [Join(*one) for one in product([1, *groups], dict.fromkeys(phases))]
    return [one for one in found if one == ALONE or (_columns(task, one) <= _MOST and _is_small(task, one))]


def _columns(task, join):
    return task.target.shape[CHANNELS] * join.groups * prod(join.phases)


def _is_small(task, join):
    """Whether the chunks of the filter can be counted in 32 bits."""
    taps = prod(walk.taps for walk in phase_walks(task.problem)) if join.phases != ALONE.phases else 0
    rows = task.problem.groups * _columns(task, join) * max(taps, prod(task.problem.kernel))
    return task.operation == WGRAD or rows * task.source.shape[CHANNELS] <= _MOST_CHUNKS


def view(operand, groups):
    """An operand with ``groups`` neighbouring groups as one group."""
    batch, count, channels, *space = operand.shape
    by_batch, by_group, by_channel, *by_space = operand.strides
    return operand._replace(
        shape=(batch, count // groups, channels * groups, *space),
        strides=(by_batch, by_group * groups, by_channel if channels > 1 else by_group, *by_space),
    )


def phase_walks(problem):
    """The walk of each axis for joined phases. Its taps are all y from the first to the last one that a phase reads.

    Phase r of position q is x = q * stride + r. It reads y = q + e if r + pad - e * stride is the offset of a tap.
    """
    return [
        AxisWalk(
            positions=x // stride,
            taps=(stride - 1 + pad) // stride - _first(kernel, stride, dilation, pad) + 1,
            source_size=y,
            source_begin=_first(kernel, stride, dilation, pad),
            source_step=1,
            source_tap=1,
            target_begin=0,
            target_step=stride,
            filter_begin=0,
            filter_step=1,
        )
        for x, y, kernel, stride, dilation, pad in _axes(problem)
    ]


def _axes(p):
    return zip(p.x, p.y, p.kernel, p.stride, p.dilation, p.pad_begin, strict=True)


def _first(kernel, stride, dilation, pad):
    return -(((kernel - 1) * dilation - pad) // stride)


def spread(task, join, kind, workspace):
    """The filter of joined groups and phases in the layout of mma.cu, with the launch that writes it."""
    groups, out, ins, *taps = task.filter.shape
    # Tap t of phase r is the filter's tap with offset begin + r + t * step, if that is a multiple of dilation.
    axes = [(size, 1, 0, 1, 1, size) for size in taps]
    if join.phases != ALONE.phases:
        axes = [
            (walk.taps, stride, pad - walk.source_begin * stride, -stride, dilation, kernel)
            for walk, (_, _, kernel, stride, dilation, pad) in zip(
                phase_walks(task.problem), _axes(task.problem), strict=True
            )
        ]
    extents = [size for size, *_ in axes]
    channels = -(-ins * join.groups // kind.chunk) * kind.chunk
    columns = _columns(task, join)
    shape = (groups // join.groups, columns, channels, *extents)
    by_tap = [channels * prod(extents[i + 1 :]) for i in range(3)]
    strides = (columns * prod(extents) * channels, prod(extents) * channels, 1, *by_tap)
    rows = shape[0] * columns * prod(extents)
    arguments = integers(rows, channels, columns, join.groups, out, ins, task.filter.strides, axes)
    macros = (("PACKED", kind.element), ("PLANES", str(kind.planes)), ("STORAGE", task.dtype.cuda))
    grid = (-(-rows * (channels // kind.chunk) // _THREADS), 1, 1)
    launch = Launch("spread.cu", macros, "spread", grid, (_THREADS, 1, 1), 0, (FILTER, workspace), arguments)
    return Packed(workspace, strides, rows * channels, channels, launch, kind.planes * rows * channels * kind.size)
