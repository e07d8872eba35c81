"""Limits of small groups: reasons why they would not be faster than direct."""

from ...problem import DGRAD, WGRAD
from ..direct.choices import takes_halves
from ..direct.order import order_of
from ..machine.register_tile import tile_cycles
from ..plan.reasons import Reason
from .boxes import copies_for_each_product
from .spread import spread_of

#: Maximum entries, of 8 bytes each, in the kernel's tables of taps for all runs (pyx/small_groups/runs.pxd).
MOST_TABLE = 1 << 18


def table_entries(height, width):
    """Maximum entries of the table for height * width taps of one channel.

    A run is a range of positions of a row at which the same taps of the width lie in the source. From one end of a row
    to the other, taps enter the source one by one and leave it one by one. So there are at most 2 * width + 1 runs. The
    table has an entry for each tap of each run.
    """
    return (2 * width + 1) * width * height


def has_table(problem):
    """Whether there are groups and a table can hold all taps."""
    _, height, width = problem.kernel
    return problem.groups > 1 and table_entries(height, width) <= MOST_TABLE


def _reason(sums, positions_adjacent, spread):
    """The reason to decline, or None. ``positions_adjacent``: the layout has adjacent positions."""
    sums_positions = sums.operation == WGRAD  # the terms of a sum are positions
    walks, channels = sums.walks, sums.channels
    half = max(1, sums.lanes // 2)
    if channels > half or sums.outputs > half:
        return "the channels of a group are more than half of a vector"
    if sums_positions and channels > sums.tuning.most_group_channels:
        if spread is None:
            return Reason("the source has more than {} channels in a group", sums.tuning.most_group_channels)
        if sums.multiplies_pairs or 2 * sums.outputs == sums.lanes:
            return "direct multiplies bfloat16 in pairs of positions, or fills halves of vectors"
    # A copy with a vector for each channel may take longer than direct. In wgrad it does not, and neither if the stride
    # phases of a dgrad share it.
    shared = sums.count > 1 and not (positions_adjacent and channels > sums.tuning.most_group_channels)
    several = max(channels, sums.outputs) > 1 and not sums_positions
    if spread is None and several and not shared and not _expands_well(sums, positions_adjacent):
        return "a copy with a vector for each channel would take too long"
    if channels * max(table_entries(walk[1].taps, walk[2].taps) for walk in walks) > MOST_TABLE:
        return "there are too many taps"
    return None


def _expands_well(sums, positions_adjacent):
    """Whether fprop or dgrad with a copy of a vector for each channel is faster than direct.

    The tile of small groups needs two loads for each product of vectors. Direct's tile across positions has extra work
    for each sum, and short rows leave many of its lanes empty.
    """
    channels, outputs, lanes, row = sums.channels, sums.outputs, sums.lanes, sums.typical_walk[2].positions
    tile, terms = sums.tile.unsplit(), sums.channels * max(sums.taps, 1)
    # Filling vectors takes too long with many channels, or if a group lies in two vectors. Groups of one output gain
    # nevertheless, because direct would use few rows of a tile for them.
    if channels > sums.tuning.most_group_channels or lanes % outputs or 1 < outputs < channels:
        return False
    short = sums.tuning.short_sum_adjacent if positions_adjacent else sums.tuning.short_sum
    general = tile_cycles(outputs, row, tile, sums.itemsize) * (1 + short / terms)
    return row * outputs / lanes <= general


def suits_last(sums):
    """Whether small groups take a problem with channels last. The answer does not depend on the layout."""
    return _reason(sums, False, spread_of(sums)) is None


def reason_not_faster(sums, placement, spread):
    """The reason to decline, or None.

    Small groups add all terms one by one. If direct would add them in another order, the family must not depend on the
    layout or on the caches. Then all layouts take the family that ``_reason`` gives for channels last, and
    ``takes_halves`` is ignored, because it depends on the size of the cache. With the spreading tile, the rule is the
    same for all layouts.
    """
    reason = channels_last_reason = _reason(sums, False, spread)
    if spread is not None:
        # In dgrad, direct took up to 3 times as long even so.
        if reason is None and sums.operation != DGRAD and copies_for_each_product(sums, spread):
            return "the copies of a box would have as many elements as it has products"
        return reason
    if placement.positions_adjacent:
        reason = _reason(sums, True, spread)
    elif reason is None and sums.operation != WGRAD and takes_halves(sums, placement):
        reason = "the output channels fill half of a vector"
    differ = (reason is None) != (channels_last_reason is None)
    return channels_last_reason if differ and not order_of(sums).is_plain(sums) else reason
