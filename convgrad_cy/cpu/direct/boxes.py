"""Sizes of boxes of positions, and of their windows (pyx/copy/window.pxd). A window should stay in the L2 cache.

A *window* is a copy of the elements of the source that a box of positions reads.
"""

from math import gcd, prod

from ...problem import WGRAD, balanced_size
from ..machine import LINE_BYTES
from ..plan.steps import WindowAxis


def window_axis(axis, positions, contiguous=False):
    """A window's axis for boxes of ``positions``. Taps share elements, unless separate copies for each tap are smaller.

    ``contiguous``: neighbouring positions must be adjacent in the window.
    """
    taps = max(axis.taps, 1)
    least, greatest = axis.extremes(positions)
    shared = greatest - least + 1
    if taps * positions < shared or (contiguous and axis.source_step > 1):
        return WindowAxis(positions, taps * positions, True, 1, positions, 0)
    return WindowAxis(positions, shared, False, axis.source_step, axis.source_tap, axis.source_begin - least)


def span(axes, positions):
    """(begin, extent) of the source range that boxes of ``positions`` read, over all walks ``axes`` of an axis."""
    least, greatest = zip(*[axis.extremes(positions) for axis in axes], strict=True)
    return min(least), max(greatest) - min(least) + 1


def box_of(walk, batch, size, multiple=1, max_row=None):
    """Extents of a box of about ``size`` positions on the axes batch, depth, height, width; whole rows if possible.

    ``max_row``: maximum positions of a row. A row is cut at a multiple of ``multiple``.
    """
    box = [balanced_size(walk[2].positions, min(size, max_row or size), multiple)]
    for extent in (walk[1].positions, walk[0].positions, batch):
        size = max(1, size // box[-1])
        box.append(balanced_size(extent, size))
    return box[::-1]


def _window_size(walk, box):
    """Elements of a box's window for one channel."""
    return box[0] * prod(window_axis(axis, n).extent for axis, n in zip(walk, box[1:], strict=True))


def has_much_halo(window, tuning):
    """Whether a window has many more elements than its box has positions, as with large or dilated filters."""
    return prod(axis.extent for axis in window) > tuning.much_halo * prod(axis.positions for axis in window)


def compact_box_of(walk, batch, size, multiple, tuning):
    """``box_of`` with shorter rows: rows are halved as long as this makes the halo much smaller.

    It is for few output channels, where filling windows takes as long as the products.
    """
    box = box_of(walk, batch, size, multiple)
    while box[3] > tuning.least_positions:
        halved = box_of(walk, batch, size, multiple, -(-box[3] // 2))
        window, halved_window = _window_size(walk, box), _window_size(walk, halved)
        if halved_window > window or halved_window * prod(box) > tuning.halved_part * window * prod(halved):
            break
        box = halved
    return box


def _width_axis(axis, positions, across, paired):
    """The window's axis of the width. ``paired``: it has room for a whole number of pairs of positions."""
    room = positions + positions % 2 if paired else positions
    return window_axis(axis, room, contiguous=across)._replace(positions=positions)


def shared_windows(walks, positions):
    """The windows of stride phases that read from one copy: it has all elements that boxes of ``positions`` read."""
    shared = []
    for i, count in enumerate(positions):
        axes = {walk[i] for walk in walks}
        begin, extent = span(axes, count)
        shared.append(
            {axis: WindowAxis(count, extent, False, 1, axis.source_tap, axis.source_begin - begin) for axis in axes}
        )
    return [[own[axis] for own, axis in zip(shared, walk, strict=True)] for walk in walks]


def boxed(sums, chunk, min_chunk, max_positions, itemsize, across=False, paired=False, compact=False, shared=False):
    """(images, a window for each walk, chunk): boxes and chunks of channels whose windows fit in ``window_bytes``.

    ``sums``: a ``SumProblem``. ``chunk``, ``min_chunk``: maximum and minimum channels of a chunk. ``max_positions``:
    maximum positions of a box. ``itemsize``: bytes of an element. ``across``: rows are cut at whole vectors.
    ``paired``: positions are stored in pairs. ``compact``: boxes have a small halo; this does not change the chunk.
    ``shared``: all walks, which are stride phases, share one window.
    """
    walks, batch, tuning = sums.walks, sums.batch, sums.tuning
    largest = max(walks, key=lambda walk: (walk[0].taps > 0, prod(axis.positions for axis in walk)))
    multiple = sums.tile.vector_bytes // itemsize if across else 1

    def windows_of(box):
        if shared:
            return shared_windows(walks, box[1:])
        extents = [[min(n, axis.positions) for n, axis in zip(box[1:], walk, strict=True)] for walk in walks]
        return [
            [*map(window_axis, walk[:2], own[:2]), _width_axis(walk[2], own[2], across, paired)]
            for walk, own in zip(walks, extents, strict=True)
        ]

    while True:
        box = box_of(largest, batch, max_positions, multiple)
        windows = windows_of(box)
        elements = box[0] * max(prod(axis.extent for axis in window) for window in windows)
        if elements * chunk * itemsize <= tuning.window_bytes or (chunk <= min_chunk and max_positions == 1):
            break
        # First fewer channels, because smaller boxes have relatively more halo. Then fewer positions.
        long = chunk // 2 * sums.taps >= tuning.long_sum
        few = tuning.kept_positions_of_long_sums if long else tuning.few_positions
        if chunk > min_chunk and (chunk > 4 or max_positions <= few):
            chunk = balanced_size(sums.channels, chunk // 2, 4 if chunk > 4 else 1)
        else:
            max_positions = max(1, max_positions // 2)
    if compact:
        box = compact_box_of(largest, batch, max_positions, multiple, tuning)
        windows = windows_of(box)
    return box[0], windows, chunk


def count_boxes(sums, images, windows):
    """Number of boxes of the walk with the fewest boxes."""
    return -(-sums.batch // images) * min(
        prod(-(-axis.positions // part.positions) for axis, part in zip(walk, window, strict=True))
        for walk, window in zip(sums.walks, windows, strict=True)
    )


def bundled(sums, placement, images, windows, tasks):
    """Number of neighbouring groups that a task takes together; ``tasks``: tasks of one group.

    With channels last, neighbouring groups are adjacent in memory, so the copy to a window reads whole cache lines. If
    positions are adjacent, bundles help only pairs of channels, which are transposed to whole lines of a window. Each
    group has sums of its own, so the number of groups in a bundle does not affect the result's bits. It may depend on
    the threads.
    """
    elements, tuning = images * max(prod(axis.extent for axis in window) for window in windows), sums.tuning
    bundle_bytes = tuning.bundle_bytes
    if placement.positions_adjacent:
        if sums.operation == WGRAD or not sums.multiplies_pairs:
            return 1
        bundle_bytes = tuning.adjacent_bundle_bytes
    most = min(
        bundle_bytes // (sums.channels * sums.dtype.itemsize),
        tuning.window_bytes // (elements * sums.channels * sums.itemsize),
        sums.groups * tasks // (tuning.thread_tasks * placement.machine.threads),
        sums.groups,
    )
    lines = LINE_BYTES // gcd(LINE_BYTES, sums.channels * sums.dtype.itemsize)  # groups that fill whole lines
    return max(1, most - most % lines if most > lines else most)
