"""What the copy engine of sm_90 brings to ``mma_engine.cu`` and ``mma_wgrad.cu``, and where it cannot.

It copies boxes of tensors in memory (``tensor_map.py``): of the source, channels of positions that follow one another
as those of a walk do, all at the same tap; of the filter, channels of some of the target's channels at one tap.
"""

from itertools import product

from .tensor_map import TensorMap

#: Channels of a box, 128 bytes: the depth of a stage of ``mma_engine.cu``, rows or columns of ``mma_wgrad.cu``.
CHANNELS = 64
#: Source maps of one launch: MOST_MAPS of tap_boxes.cuh.
MOST_MAPS = 8
#: Corners of maps with so many spatial axes lie in -2**bits ... 2**bits - 1, and taps within twice 2**bits.
_BITS = {1: 15, 2: 7, 3: 4}
_MOST_STEP = 8
_MOST_STRIDE = 2**40


def declined(device, kind, groups, phases, operands):
    """Why the engine cannot copy these operands, each given as (shape, Packed), or None.

    ``groups`` are those left when some are joined, ``phases`` the walks of each axis for one launch after another.
    """
    if not device.engine:
        return "the GPU has no copy engine"
    if kind.size != 2 or kind.planes != 1:
        return "it copies no planes, and of 16-bit types alone"
    if groups > 1:
        return "a box has channels of one group"
    if any(_count(launch) > MOST_MAPS for launch in phases):
        return f"a launch has at most {MOST_MAPS} phases"
    if not all(_has_strides(shape, packed, kind) for shape, packed in operands):
        return "strides must be positive and less than 2**40 bytes"
    axes = image_axes(phases)
    if not all(_fits(axis, axes) for launch in phases for walks in launch for axis in walks):
        return "a walk begins or ends too far outside, has too large a step, or taps too far apart"
    return None


def _has_strides(shape, packed, kind):
    """Whether an operand has strides for a tensor map, as what was packed has."""
    steps = zip(shape, packed.strides, strict=True)
    return packed.launch is not None or all(0 < step * kind.size < _MOST_STRIDE for size, step in steps if size > 1)


def _count(phases):
    depth, row, column = phases
    return len(depth) * len(row) * len(column)


def image_axes(phases):
    """How many spatial axes maps have: all but those before that are one element to one position."""
    trivial = 0
    for axis in range(2):
        walks = [walk for launch in phases for walk in launch[axis]]
        if all((w.source_size, w.positions, w.source_begin) == (1, 1, 0) and w.taps <= 1 for w in walks):
            trivial += axis == trivial
    return 3 - trivial


def _corners(axis):
    """Where places begin before the end of the source, and how far beyond it they end: of the tap that comes first."""
    reach = (axis.taps - 1) * axis.source_tap
    begin = axis.source_begin + min(reach, 0)
    return begin, begin + (axis.positions - 1) * axis.source_step - (axis.source_size - 1)


def _fits(axis, axes):
    if axis.taps == 0:
        return True
    limit = 1 << _BITS[axes]
    reach = (axis.taps - 1) * abs(axis.source_tap)
    return (
        all(-limit <= corner < limit for corner in _corners(axis))
        and reach < 2 * limit
        and axis.source_step <= _MOST_STEP
    )


def _nearest_first(channels, axes, strides, kind):
    """Sizes, and strides in bytes of all but the first; axes of one element may have any stride but zero."""
    any_stride = max(kind.chunk, *strides)
    steps = tuple((step if size > 1 else any_stride) * kind.size for size, step in zip(axes, strides, strict=True))
    return (channels, *reversed(axes)), steps[::-1]


def _pixels(pointer, kind, packed, batch, walk, axes, pixels):
    """The map of data for the positions of a walk."""
    if not all(axis.taps for axis in walk):  # no box is copied
        walk = [axis._replace(positions=1, taps=1, source_begin=0) for axis in walk]
    walk = walk[3 - axes :]
    by_batch, _, _, *by_space = packed.strides
    sizes = (batch, *(axis.source_size for axis in walk))
    sizes, strides = _nearest_first(packed.channels, sizes, (by_batch, *by_space[3 - axes :]), kind)
    lower, upper = zip(*(_corners(axis) for axis in reversed(walk)), strict=True)
    steps = tuple(axis.source_step for axis in reversed(walk))
    return TensorMap(pointer, kind.element, sizes, strides, (CHANNELS, pixels), lower, upper, steps)


def correlation_maps(kind, tile, phases, axes, batch, source, filter, columns, by_depth):
    """``struct Maps`` of tap_boxes.cuh: the filter's, and the source's for each phase of a launch.

    ``by_depth``: channels of the target are nearest in the filter.
    """
    sources = [_pixels(0, kind, source, batch, walk, axes, tile.rows) for walk in product(*phases)]
    sources += sources[-1:] * (MOST_MAPS - len(sources))
    taps = [max(_filter_size(axis) for axis in walks) for walks in phases]
    _, by_out, by_in, *by_tap = filter.strides
    nearest, farthest, by_farthest, extent = (
        (columns, source.channels, by_in, CHANNELS) if by_depth else (source.channels, columns, by_out, tile.columns)
    )
    sizes, strides = _nearest_first(nearest, (farthest, *taps), (by_farthest, *by_tap), kind)
    return (TensorMap(1, kind.element, sizes, strides, (CHANNELS, 1, 1, 1, extent)), *sources)


def _filter_size(axis):
    """An extent of the filter that has all of a walk's taps."""
    return max(axis.filter_begin + (axis.taps - 1) * axis.filter_step, 0) + 1


def filter_gradient_maps(kind, depth, walk, axes, batch, source, target):
    """``struct Maps`` of position_boxes.cuh: the target's, whose places are the positions, and the source's."""
    own = [axis._replace(taps=1, source_size=axis.positions, source_begin=0, source_step=1) for axis in walk]
    return (
        _pixels(1, kind, target, batch, own, axes, depth),
        _pixels(0, kind, source, batch, walk, axes, depth),
    )
