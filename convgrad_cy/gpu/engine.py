"""Copies by TMA (Tensor Memory Accelerator) of sm_90 for ``mma_engine.cu`` and ``mma_wgrad.cu``, and its limits.

In names of this package, ``engine`` stands for TMA. TMA copies boxes of a tensor, which a tensor map describes
(``tensor_map.py``). A box of the source has CHANNELS channels of successive positions of a walk, all at one tap. A box
of the filter has some channels of the source and some channels of the target, all at one tap.

A *walk* is a triple of ``AxisWalk``, for depth, height and width. Variables named ``axis`` are an ``AxisWalk``.
"""

from itertools import product

from .tensor_map import TensorMap

#: Channels of a box, 128 bytes: the depth of a stage of ``mma_engine.cu``, rows or columns of ``mma_wgrad.cu``.
CHANNELS = 64
#: Maximum source maps of one launch: MOST_MAPS of tap_boxes.cuh.
MOST_MAPS = 8
#: Indices in ``Launch.pointers``: the source, and the filter (``mma_engine.cu``) or the target (``mma_wgrad.cu``).
_FIRST, _SECOND = 0, 1
#: Number of spatial axes of a map -> bits b. Its corners must lie in -2**b ... 2**b - 1, and the offsets of its taps in
#: 0 ... 2**(b + 1) - 1.
_BITS = {1: 15, 2: 7, 3: 4}
#: Maximum of a walk's ``source_step``.
_MOST_STEP = 8
#: A stride of a tensor must be less than this number of bytes.
_STRIDE_LIMIT = 2**40


def declined(device, kind, groups, phases, operands):
    """The reason why TMA cannot copy these operands, or None. Each operand is a pair (shape, Packed).

    ``groups`` is the number of groups after joining. ``phases`` has a triple for each launch: for depth, height and
    width, the list of its ``AxisWalk`` objects.
    """
    if not device.engine:
        return "the device does not support TMA"
    if kind.size != 2 or kind.planes != 1:
        return "TMA copies 16-bit operands, but not float32 as planes of bfloat16"
    if groups > 1:
        return "a box can have only channels of one group"
    if any(_count(launch) > MOST_MAPS for launch in phases):
        return f"a launch has more than {MOST_MAPS} stride phases"
    if not all(_has_strides(shape, packed, kind) for shape, packed in operands):
        return "a stride is not positive, or is at least 2**40 bytes"
    rank = image_axes(phases)
    if not all(_fits(axis, rank) for launch in phases for axis_walks in launch for axis in axis_walks):
        return f"positions reach too far outside the source, taps are too far apart, or a step is above {_MOST_STEP}"
    return None


def _has_strides(shape, packed, kind):
    """Whether an operand's strides are legal in a tensor map. The strides of packed copies always are."""
    steps = zip(shape, packed.strides, strict=True)
    return packed.launch is not None or all(0 < step * kind.size < _STRIDE_LIMIT for size, step in steps if size > 1)


def _count(launch):
    """Number of walks of a launch."""
    depth, height, width = launch
    return len(depth) * len(height) * len(width)


def image_axes(phases):
    """Number of spatial axes of the maps, their *rank*. Leading axes with one element and one position are omitted."""
    trivial = 0
    for number in range(2):
        axes = [axis for launch in phases for axis in launch[number]]
        if all((a.source_size, a.positions, a.source_begin) == (1, 1, 0) and a.taps <= 1 for a in axes):
            trivial += number == trivial
    return 3 - trivial


def _corners(axis):
    """The corners of an im2col map on an axis, for the tap that reads the smallest index.

    They are the index of the first position, and the index of the last position minus the index of the last element.
    """
    reach = (axis.taps - 1) * axis.source_tap
    begin = axis.source_begin + min(reach, 0)
    return begin, begin + (axis.positions - 1) * axis.source_step - (axis.source_size - 1)


def _fits(axis, rank):
    """Whether an axis fits in a map with ``rank`` spatial axes."""
    if axis.taps == 0:
        return True
    limit = 1 << _BITS[rank]
    reach = (axis.taps - 1) * abs(axis.source_tap)
    return (
        all(-limit <= corner < limit for corner in _corners(axis))
        and reach < 2 * limit
        and axis.source_step <= _MOST_STEP
    )


def _innermost_first(channels, sizes, strides, kind):
    """The sizes and the strides of a map: the contiguous axis of ``channels`` first, then the others in reverse order.

    ``strides`` are in elements; the map has bytes, without the first axis. Where an axis has one element, its stride is
    replaced, because it must not be zero.
    """
    any_stride = max(kind.chunk, *strides)
    steps = tuple((step if size > 1 else any_stride) * kind.size for size, step in zip(sizes, strides, strict=True))
    return (channels, *reversed(sizes)), steps[::-1]


def _every_element(axis):
    """A walk with one tap over all elements of an axis. Its corners are zero, so it fits in every map."""
    return axis._replace(positions=axis.source_size, taps=1, source_begin=0, source_step=1)


def _im2col_map(pointer, kind, packed, batch, walk, rank, pixels):
    """The map of a source or target whose boxes have ``pixels`` successive positions of a walk.

    ``pointer``: _FIRST or _SECOND. ``rank``: number of spatial axes.
    """
    if not all(axis.taps for axis in walk):  # the kernel copies no box then, but receives a map
        walk = [_every_element(axis) for axis in walk]
    walk = walk[3 - rank :]
    batch_stride, _, _, *spatial_strides = packed.strides
    sizes = (batch, *(axis.source_size for axis in walk))
    sizes, strides = _innermost_first(packed.channels, sizes, (batch_stride, *spatial_strides[3 - rank :]), kind)
    lower, upper = zip(*(_corners(axis) for axis in reversed(walk)), strict=True)
    steps = tuple(axis.source_step for axis in reversed(walk))
    return TensorMap(pointer, kind.element, sizes, strides, (CHANNELS, pixels), lower, upper, steps)


def correlation_maps(kind, tile, launch, rank, batch, source, filter, columns, by_depth):
    """``struct Maps`` of tap_boxes.cuh: the map of the filter, and a map of the source for each walk of a launch.

    ``by_depth``: whether the target's channels are contiguous in the filter, otherwise the source's channels are.
    """
    sources = [_im2col_map(_FIRST, kind, source, batch, walk, rank, tile.rows) for walk in product(*launch)]
    sources += sources[-1:] * (MOST_MAPS - len(sources))
    taps = [max(_filter_size(axis) for axis in axis_walks) for axis_walks in launch]
    _, out_stride, in_stride, *tap_strides = filter.strides
    if by_depth:
        innermost, outermost, outer_stride, extent = columns, source.channels, in_stride, CHANNELS
    else:
        innermost, outermost, outer_stride, extent = source.channels, columns, out_stride, tile.columns
    sizes, strides = _innermost_first(innermost, (outermost, *taps), (outer_stride, *tap_strides), kind)
    return (TensorMap(_SECOND, kind.element, sizes, strides, (CHANNELS, 1, 1, 1, extent)), *sources)


def _filter_size(axis):
    """Extent of the filter along an axis, up to the last tap of a walk."""
    return max(axis.filter_begin + (axis.taps - 1) * axis.filter_step, 0) + 1


def filter_gradient_maps(kind, depth, walk, rank, batch, source, target):
    """``struct Maps`` of position_boxes.cuh: a map of the target and a map of the source.

    A box has ``depth`` positions of the walk. In the target, these are all its elements in their order.
    """
    own = [axis._replace(taps=1, source_size=axis.positions, source_begin=0, source_step=1) for axis in walk]
    return (
        _im2col_map(_SECOND, kind, target, batch, own, rank, depth),
        _im2col_map(_FIRST, kind, source, batch, walk, rank, depth),
    )
