"""The copies by TMA, the copy engine of sm_90, for ``mma_engine.cu`` and ``mma_wgrad.cu``, and its limits.

TMA copies boxes of tensors in memory (``tensor_map.py``). A box of the source has some channels of successive positions
of a walk, all at one tap. A box of the filter has some channels of the source for some channels of the target, at one
tap.
"""

from itertools import product

from .tensor_map import TensorMap

#: Channels of a box, 128 bytes: the depth of a stage of ``mma_engine.cu``, rows or columns of ``mma_wgrad.cu``.
CHANNELS = 64
#: Source maps of one launch: MOST_MAPS of tap_boxes.cuh.
MOST_MAPS = 8
#: Spatial axes of a map -> bits. Its corners lie in -2**bits ... 2**bits - 1, and its taps within twice 2**bits.
_BITS = {1: 15, 2: 7, 3: 4}
_MOST_STEP = 8
_MOST_STRIDE = 2**40


def declined(device, kind, groups, phases, operands):
    """The reason why TMA cannot copy these operands, or None. Each operand is a pair (shape, Packed).

    ``groups`` is the number of groups after joining. ``phases`` has the walks of each axis for each launch.
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
    """Whether an operand's strides are legal in a tensor map. Packed copies always have such strides."""
    steps = zip(shape, packed.strides, strict=True)
    return packed.launch is not None or all(0 < step * kind.size < _MOST_STRIDE for size, step in steps if size > 1)


def _count(phases):
    depth, row, column = phases
    return len(depth) * len(row) * len(column)


def image_axes(phases):
    """Number of spatial axes of the maps. Leading axes with one element and one position are omitted."""
    trivial = 0
    for axis in range(2):
        walks = [walk for launch in phases for walk in launch[axis]]
        if all((w.source_size, w.positions, w.source_begin) == (1, 1, 0) and w.taps <= 1 for w in walks):
            trivial += axis == trivial
    return 3 - trivial


def _corners(axis):
    """Corners of an axis for its least tap: the first index, and the last index relative to the last element."""
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
    """Sizes, and strides in bytes of all axes but the first. The stride of an axis of one element must not be zero."""
    any_stride = max(kind.chunk, *strides)
    steps = tuple((step if size > 1 else any_stride) * kind.size for size, step in zip(axes, strides, strict=True))
    return (channels, *reversed(axes)), steps[::-1]


def _every_element(axis):
    """A walk with one tap over all elements of an axis. Its corners are zero, so each tensor map can have it."""
    return axis._replace(positions=axis.source_size, taps=1, source_begin=0, source_step=1)


def _pixels(pointer, kind, packed, batch, walk, axes, pixels):
    """The map of a data operand for the positions of a walk."""
    if not all(axis.taps for axis in walk):  # no box is copied
        walk = [_every_element(axis) for axis in walk]
    walk = walk[3 - axes :]
    by_batch, _, _, *by_space = packed.strides
    sizes = (batch, *(axis.source_size for axis in walk))
    sizes, strides = _nearest_first(packed.channels, sizes, (by_batch, *by_space[3 - axes :]), kind)
    lower, upper = zip(*(_corners(axis) for axis in reversed(walk)), strict=True)
    steps = tuple(axis.source_step for axis in reversed(walk))
    return TensorMap(pointer, kind.element, sizes, strides, (CHANNELS, pixels), lower, upper, steps)


def correlation_maps(kind, tile, phases, axes, batch, source, filter, columns, by_depth):
    """``struct Maps`` of tap_boxes.cuh: the map of the filter, and a map of the source for each phase of a launch.

    ``by_depth`` says that the target's channels are contiguous in the filter.
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
    """Extent of the filter along an axis up to the last tap of a walk."""
    return max(axis.filter_begin + (axis.taps - 1) * axis.filter_step, 0) + 1


def filter_gradient_maps(kind, depth, walk, axes, batch, source, target):
    """``struct Maps`` of position_boxes.cuh: a map of the target, whose elements are positions, and the source's."""
    own = [axis._replace(taps=1, source_size=axis.positions, source_begin=0, source_step=1) for axis in walk]
    return (
        _pixels(1, kind, target, batch, own, axes, depth),
        _pixels(0, kind, source, batch, walk, axes, depth),
    )
