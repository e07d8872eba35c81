"""Many small groups side by side: the lanes of a vector are outputs of different groups (``pyx/small_groups/``).

A vector for each channel is made of those of the source in registers, where vectors can be permuted, or else by a copy.
"""

from functools import lru_cache
from math import lcm, prod
from typing import NamedTuple

from ..bounded import bounded
from ..problem import DGRAD, WGRAD, even
from .cache import memory_ways, operand_bytes
from .case import case_of, setting_of
from .direct.boxes import WindowAxis, box_of, span
from .direct.choices import takes_halves
from .direct.order import order_of
from .direct.plan import PLANS_BYTES, Blocks
from .job import Job
from .machines import LINE_BYTES
from .steps import Outline, whole_rows
from .task import Task
from .tile import tile_cycles
from .views import are_positions_adjacent, merged

#: Not for speed: entries of the kernel's tables of taps, all runs together, 8 bytes each (pyx/small_groups/runs.pxd).
MOST_TABLE = 1 << 18

#: Not for speed: taps of the width that the spreading tile takes, as pyx/tile/spread.h has it.
SPREAD_PARTS = 16

#: Whose outlines are kept: whether one suits is asked before it is planned.
_LATEST_CALLS = 4


class Vectors(NamedTuple):
    """What vectors of the spreading tile have: so many groups, whole ones, with so many elements of the source each."""

    groups: int
    words: int
    pairs: bool  # the elements are pairs of bfloat16


def _spread(case):
    """The ``Vectors`` of the spreading tile, which makes vectors of lanes from those of the source, or None.

    Of other types, and of vectors that no instruction permutes, a task copies a vector for each channel. Short rows
    have few sums, which would wait for each other; few groups leave most of a vector empty; few taps are less work than
    the copies of what they see.
    """
    channels, outputs, rows = case.channels, case.outputs, [walk[2] for walk in case.walks]
    if case.dtype.compute != "float32" or case.tile.vector_bytes < 32 or not 1 < max(channels, outputs) <= case.lanes:
        return None
    if max(row.taps for row in rows) > SPREAD_PARTS or case.taps < case.tuning.spread_taps:
        return None
    alike = case.operation != WGRAD and case.count == 1 and rows[0].source_step == 1
    if alike and max(channels, outputs) > case.tuning.most_spread_channels:
        return None
    if case.operation == WGRAD and channels % 2 and channels != 3:  # taken one by one, they have too few sums
        return None
    if max(row.positions for row in rows) < case.tuning.spread_positions:
        return None
    pairs = case.multiplies_pairs and case.operation != WGRAD and channels % 2 == 0
    words = channels // 2 if pairs else channels
    groups = case.lanes // max(words, outputs)
    return Vectors(groups, words, pairs) if 2 * case.groups >= groups else None


def _serve_as_they_are(case, spread):
    """Whether source and target do where lanes are adjacent: no vector of either ends inside a group."""
    if case.channels != case.outputs or case.groups * case.outputs % case.lanes:
        return False
    return case.channels == 1 or (spread is not None and not spread.pairs and case.lanes % case.outputs == 0)


def _lane_extents(case, seen, lanes):
    """Extents of boxes (depth, height, width) for which a task's copies have ``lane_bytes``; None if too large.

    They have so many elements for a position of the source, and of the target.
    """
    tuning, itemsize = case.tuning, case.itemsize
    walks = [walk for walk in case.walks if walk[2].taps] or case.walks
    largest = max(walks, key=lambda walk: prod(axis.positions for axis in walk))
    most = prod(axis.positions for axis in largest)
    while True:
        _, *extents = box_of(largest, 1, most)
        read = made = 1
        for i, extent in enumerate(extents):
            axes = [walk[i] for walk in walks]
            read *= min(axes[0].source_size, span(axes, extent)[1])
            made *= (extent + 1) * axes[0].target_step
        size = (read * seen + made * lanes) * itemsize
        if size <= tuning.lane_bytes:
            return extents
        if most == 1:
            return extents if size <= tuning.most_lane_bytes else None
        most = max(1, most // 2)


def table_entries(height, width):
    """Entries of the table for so many taps of one channel."""
    return (2 * width + 1) * width * height


def _refusal(case, positions_adjacent, spread):
    """Why groups side by side are not faster, or None."""
    sums_positions = case.operation == WGRAD
    walks, channels = case.walks, case.channels
    half = max(1, case.lanes // 2)
    if not 1 <= channels <= half or not 1 <= case.outputs <= half:
        return "the channels of a group are none, or more than half of a vector"
    if sums_positions and channels > case.tuning.most_summed_channels:
        if spread is None:
            return f"the source has more than {case.tuning.most_summed_channels} channels in a group"
        if case.multiplies_pairs or 2 * case.outputs == case.lanes:
            return "others multiply bfloat16 in pairs of positions, or fill halves of vectors"
    # A copy with a vector for each channel may cost more than the general way; but not in wgrad, nor where phases of a
    # dgrad share it.
    shared = case.count > 1 and not (positions_adjacent and channels > case.tuning.most_sharing_channels)
    several = max(channels, case.outputs) > 1 and not sums_positions
    if spread is None and several and not shared and not _expands_well(case, positions_adjacent):
        return "a copy with a vector for each channel would take too long"
    if channels * max(table_entries(walk[1].taps, walk[2].taps) for walk in walks) > MOST_TABLE:
        return "there are too many taps"
    return None


def _expands_well(case, positions_adjacent):
    """Whether a copy with a vector for each channel, in fprop or dgrad, takes less than the general way.

    The tile needs two loads for each product of vectors; that across positions, many of whose vectors short rows leave
    empty, has its own work for each sum.
    """
    channels, outputs, lanes, row = case.channels, case.outputs, case.lanes, case.walks[-1][2].positions
    tile, terms = case.tile.unsplit(), case.channels * max(case.taps, 1)
    # A vector of lanes made of more than two of channels, or of groups that lie across vectors, takes too long.
    # One output for each group is worth even that: it leaves the general way few rows of a tile.
    if channels > case.tuning.most_expanded_channels or lanes % outputs or 1 < outputs < channels:
        return False
    short = case.tuning.short_sum_adjacent if positions_adjacent else case.tuning.short_sum
    general = tile_cycles(outputs, row, tile, case.itemsize) * (1 + short / terms)
    return row * outputs / lanes <= general


def _copied_bytes(case, positions_adjacent):
    """What lanes have of a position that a task copies for the spreading tile; in wgrad boxes decide about sums."""
    if case.operation == WGRAD:
        return case.tuning.summed_copies_bytes
    return case.tuning.adjacent_copies_bytes if positions_adjacent else case.tuning.position_bytes


def _extents(case, spread, positions_adjacent, threads):
    """(extents of boxes, lanes of a task) where the task copies what it sees; no extents where that is too much."""
    outputs, total = case.outputs, case.groups * case.outputs
    alone = case.channels == outputs == 1 and case.operation != WGRAD
    if alone and not positions_adjacent and (lines := _lines(case, threads)) is not None:
        return lines
    if spread is not None:
        whole = spread.groups * outputs  # lanes of a vector
        block = even(total, _copied_bytes(case, positions_adjacent) // case.itemsize // whole * whole, whole)
        seen = block // outputs * spread.words + case.lanes
        return _lane_extents(case, seen, block + case.lanes), block
    for width in (case.strip, case.strip // 2, case.lanes):
        block = min(width // outputs * outputs, total)
        lanes = -(-block // case.lanes) * case.lanes
        extents = _lane_extents(case, case.channels * lanes, lanes)
        if extents == [axis.positions for axis in case.walks[-1]]:
            break
    return extents, block


def _lines(case, threads):
    """The same of depthwise, channels last: whole cache lines of channels; None where that leaves too few tasks."""
    block = even(case.groups, case.tuning.position_bytes // case.itemsize, LINE_BYTES // case.dtype.itemsize)
    lanes = -(-block // case.lanes) * case.lanes
    extents = _lane_extents(case, lanes, lanes)
    if extents is None:
        return None
    boxes = prod(-(-axis.positions // n) for axis, n in zip(case.walks[-1], extents, strict=True))
    tasks = case.batch * boxes * -(-case.groups // block)
    return (extents, block) if tasks >= max(case.tuning.wanted_tasks, threads) else None


def _summed(case, extents, block, spread):
    """(lanes of a task that copies nothing, slices) of wgrad: the order of its sums, the same in all layouts."""
    total, line = case.groups * case.outputs, LINE_BYTES // case.itemsize
    adjacent = _serve_as_they_are(case, spread)
    wide = even(total, case.tuning.position_bytes // case.itemsize, line) if adjacent else block
    boxes = case.batch * prod(-(-axis.positions // n) for axis, n in zip(case.walks[0], extents, strict=True))
    room = case.most_scratch // (total * case.channels * case.taps * case.itemsize)
    return wide, max(1, min(-(-case.tuning.wanted_tasks // -(-total // wide)), boxes, room))


def _cut(case, block, slices, threads, spread):
    """Lanes of a task of wgrad for so many threads, each slice of its own: whole vectors, of whole groups.

    Each lane is summed by itself, whatever others a task has.
    """
    least = lcm(case.lanes, case.outputs) if spread is None else spread.groups * case.outputs
    total = case.groups * case.outputs
    while threads > case.tuning.tuned_threads and slices * -(-total // block) < threads and block % (2 * least) == 0:
        block //= 2
    return block


def _in_place(case):
    """(extents of boxes, lanes of a task) of fprop or dgrad where source and target serve as they are."""
    # Neighbouring tasks should not write to the same cache line; and processors fetch two at once.
    walk, line, tuning = case.walks[-1], LINE_BYTES // case.itemsize, case.tuning
    if walk[0].taps * walk[1].taps > 1:
        lanes = tuning.row_bytes // (walk[2].positions * walk[2].source_step * case.itemsize)
    else:
        lanes = tuning.lone_row_bytes // case.itemsize
    block = even(case.groups * case.outputs, max(2 * line, lanes), line)
    return box_of(walk, 1, tuning.in_place_bytes // (block * case.itemsize))[1:], block


def _reason(case, setting, spread):
    """The same in a setting. Lanes add all terms one by one: where direct would not, all layouts go one way.

    (That of channels last, whatever the cache.) So they do where lanes are spread.
    """
    own = last = _refusal(case, False, spread)
    if spread is not None:
        return last
    if setting.positions_adjacent:
        own = _refusal(case, True, spread)
    elif last is None and case.operation != WGRAD and takes_halves(case, setting):
        own = "the output channels fill half of a vector"
    differ = (own is None) != (last is None)
    return last if differ and not order_of(case).is_plain(case) else own


class Found(NamedTuple):
    """What small groups make of a problem: the reason why they decline, or an outline."""

    reason: str | None
    outline: Outline | None = None


@lru_cache(maxsize=_LATEST_CALLS)
def found(operation, problem, dtype, positions_adjacent, machine):
    """The ``Found`` of an operation; ``positions_adjacent``: neighbours in the source's memory are positions."""
    if problem.groups == 1:
        return Found("there is one group")
    backward, sums_positions = operation == DGRAD, operation == WGRAD
    case = case_of(operation, problem, dtype, machine.tile, backward)
    setting = setting_of(problem, dtype, positions_adjacent, machine, backward)
    spread = _spread(case)
    reason = _reason(case, setting, spread)
    if reason is not None:
        return Found(reason)
    worth = 8 * case.multiplications >= case.tuning.serial_products
    threads = machine.threads if worth else setting.threads(case)
    extents, block = _extents(case, spread, positions_adjacent, threads)
    if extents is None:
        return Found(f"a copy would take more than {case.tuning.most_lane_bytes} bytes")
    slices = 1
    in_place = _serve_as_they_are(case, spread) and not positions_adjacent and dtype.itemsize == case.itemsize
    near = sum(operand_bytes(problem, dtype.itemsize)) <= case.tuning.spread_in_place_part * machine.cache_bytes
    in_place = in_place and (spread is None or near)
    if sums_positions:
        wide, slices = _summed(case, extents, block, spread)
        block = _cut(case, wide if in_place else block, slices, threads, spread)
    elif in_place:
        extents, block = _in_place(case)
    streams, fetches, _ = memory_ways(problem, dtype, machine, backward)
    windows = [[WindowAxis(extent, 0, False, 0, 0, 0) for extent in extents]] * len(case.walks)
    blocks = Blocks(
        threads, True, False, 1, case.channels, block, slices, streams, fetches, False,
        spread is not None and spread.pairs, spreads=0 if spread is None else 2 if in_place else 1,
    )  # fmt: skip
    return Found(None, Outline(case.every, whole_rows([[walk] for walk in case.walks], windows), blocks))


@bounded(PLANS_BYTES)
def plan(*arguments):
    """The plan of what was ``found`` for the same arguments."""
    return found(*arguments).outline.plan()


def _seen(task):
    """The task as a kernel views it, and the arguments of ``found``."""
    operation, _, dtype, algorithm, places, _, here = seen = task.turned() if task.operation == DGRAD else task
    source, filter, target = seen.tensors
    problem, source, target = merged(seen.problem, source, target)
    seen = Task(operation, problem, dtype, algorithm, places, (source, filter, target), here)
    return seen, (operation, problem, dtype, are_positions_adjacent(source), here)


def suits(task):
    """Why another family computes a task, or None."""
    if task.algorithm == "winograd":
        return "the call asks for the algorithm 'winograd'"
    return "there is one group" if task.problem.groups == 1 else found(*_seen(task)[1]).reason


def job(task, rest=None):
    """The ``Job`` of a task."""
    seen, arguments = _seen(task)
    return Job("wgrad" if task.operation == WGRAD else "correlate", plan(*arguments), seen)
