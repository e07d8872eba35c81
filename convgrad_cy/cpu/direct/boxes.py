"""Boxes of positions and their windows (pyx/copy/window.pxd): how large each is, so that it stays in the L2 cache."""

from math import gcd, prod

from ...problem import WGRAD, even
from ..machines import LINE_BYTES
from ..steps import WindowAxis


def window_axis(axis, positions, contiguous=False):
    """A window's axis for boxes of ``positions``: taps share elements, unless that would be larger than apart.

    ``contiguous``: neighbouring positions must be neighbours in the window.
    """
    taps = max(axis.taps, 1)
    least, greatest = axis.extremes(positions)
    shared = greatest - least + 1
    if taps * positions < shared or (contiguous and axis.source_step > 1):
        return WindowAxis(positions, taps * positions, True, 1, positions, 0)
    return WindowAxis(positions, shared, False, axis.source_step, axis.source_tap, axis.source_begin - least)


def span(axes, positions):
    """Where the source begins that boxes of so many positions see on several walks of an axis, and its extent."""
    least, greatest = zip(*[axis.extremes(positions) for axis in axes], strict=True)
    return min(least), max(greatest) - min(least) + 1


def box_of(walk, batch, most, multiple=1, row=None):
    """Extents of a box of about ``most`` positions on the axes batch, depth, height, width: whole rows first.

    A row that is cut, to at most ``row`` positions where that is given, is cut at a ``multiple``.
    """
    box = [even(walk[2].positions, min(most, row or most), multiple)]
    for extent in (walk[1].positions, walk[0].positions, batch):
        most = max(1, most // box[-1])
        box.append(even(extent, most))
    return box[::-1]


def _window_size(walk, box):
    """Elements of a channel of a box's window."""
    return box[0] * prod(window_axis(axis, n).extent for axis, n in zip(walk, box[1:], strict=True))


def has_much_rim(window, tuning):
    """Whether a window, of large or dilated filters, has many elements for each position of its box."""
    return prod(axis.extent for axis in window) > tuning.much_rim * prod(axis.positions for axis in window)


def compact_box_of(walk, batch, most, multiple, tuning):
    """``box_of``, but of parts of rows, as long as halving them makes much less of the rim.

    With few output channels, filling windows takes as long as the products.
    """
    box = box_of(walk, batch, most, multiple)
    while box[3] > tuning.least_positions:
        halved = box_of(walk, batch, most, multiple, -(-box[3] // 2))
        size, halved_size = _window_size(walk, box), _window_size(walk, halved)
        if halved_size > size or halved_size * prod(box) > tuning.halved_part * size * prod(halved):
            break
        box = halved
    return box


def _width_axis(axis, positions, across, paired):
    """The window's axis of the width; where positions are paired, it has room for a whole number of pairs."""
    room = positions + positions % 2 if paired else positions
    return window_axis(axis, room, contiguous=across)._replace(positions=positions)


def shared_windows(walks, positions):
    """The windows of stride phases that share one: each axis has what all of them see of boxes of ``positions``."""
    shared = []
    for i, count in enumerate(positions):
        axes = {walk[i] for walk in walks}
        begin, extent = span(axes, count)
        shared.append(
            {axis: WindowAxis(count, extent, False, 1, axis.source_tap, axis.source_begin - begin) for axis in axes}
        )
    return [[own[axis] for own, axis in zip(shared, walk, strict=True)] for walk in walks]


def boxed(case, chunk, least, most, itemsize, across=False, paired=False, compact=False, shared=False):
    """(images, a window for each walk, chunk): boxes and chunks of channels whose window fits into its share.

    ``case``: a ``case.Case``. At most ``most`` positions and ``chunk`` channels, of ``itemsize`` bytes, and at least
    ``least`` channels. ``across``: rows are cut at whole vectors. ``paired``: in pairs of positions. ``compact``: with
    a rim as small as can be; the chunk is the same. ``shared``: one window for all walks, which are stride phases.
    """
    walks, batch, tuning = case.walks, case.batch, case.tuning
    largest = max(walks, key=lambda walk: (walk[0].taps > 0, prod(axis.positions for axis in walk)))
    multiple = case.tile.vector_bytes // itemsize if across else 1

    def windows_of(box):
        if shared:
            return shared_windows(walks, box[1:])
        extents = [[min(n, axis.positions) for n, axis in zip(box[1:], walk, strict=True)] for walk in walks]
        return [
            [*map(window_axis, walk[:2], own[:2]), _width_axis(walk[2], own[2], across, paired)]
            for walk, own in zip(walks, extents, strict=True)
        ]

    while True:
        box = box_of(largest, batch, most, multiple)
        windows = windows_of(box)
        elements = box[0] * max(prod(axis.extent for axis in window) for window in windows)
        if elements * chunk * itemsize <= tuning.window_bytes or (chunk <= least and most == 1):
            break
        # A few channels of many positions, since the rim grows as boxes shrink; but then of fewer positions.
        long = chunk // 2 * case.taps >= tuning.long_sum
        few = tuning.kept_positions_of_long_sums if long else tuning.few_positions
        if chunk > least and (chunk > 4 or most <= few):
            chunk = even(case.channels, chunk // 2, 4 if chunk > 4 else 1)
        else:
            most = max(1, most // 2)
    if compact:
        box = compact_box_of(largest, batch, most, multiple, tuning)
        windows = windows_of(box)
    return box[0], windows, chunk


def count_boxes(case, images, windows):
    """Boxes of the walk that has fewest."""
    return -(-case.batch // images) * min(
        prod(-(-axis.positions // part.positions) for axis, part in zip(walk, window, strict=True))
        for walk, window in zip(case.walks, windows, strict=True)
    )


def bundled(case, setting, images, windows, tasks):
    """Groups that a task takes together, of which each has so many tasks.

    Of channels last, they are neighbours in memory: what is copied are then whole lines of the cache. So are the lines
    of a window to which pairs of channels are transposed. Groups are computed each by itself, however many a task
    takes, so their number may depend on that of threads.
    """
    elements, tuning = images * max(prod(axis.extent for axis in window) for window in windows), case.tuning
    bundle_bytes = tuning.bundle_bytes
    if setting.positions_adjacent:
        if case.operation == WGRAD or not case.multiplies_pairs:
            return 1
        bundle_bytes = tuning.adjacent_bundle_bytes
    most = min(
        bundle_bytes // (case.channels * case.dtype.itemsize),
        tuning.window_bytes // (elements * case.channels * case.itemsize),
        case.groups * tasks // (tuning.thread_tasks * setting.machine.threads),
        case.groups,
    )
    lines = LINE_BYTES // gcd(LINE_BYTES, case.channels * case.dtype.itemsize)  # groups of which whole lines consist
    return max(1, most - most % lines if most > lines else most)
