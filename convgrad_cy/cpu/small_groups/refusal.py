"""Why groups side by side would not be faster."""

from ...problem import WGRAD
from ..direct.choices import takes_halves
from ..direct.order import order_of
from ..reasons import Reason
from ..tile import tile_cycles

#: Not for speed: entries of the kernel's tables of taps, all runs together, 8 bytes each (pyx/small_groups/runs.pxd).
MOST_TABLE = 1 << 18


def table_entries(height, width):
    """Entries of the table for so many taps of one channel."""
    return (2 * width + 1) * width * height


def _own(case, positions_adjacent, spread):
    """The reason in a layout, or None."""
    sums_positions = case.operation == WGRAD
    walks, channels = case.walks, case.channels
    half = max(1, case.lanes // 2)
    if channels > half or case.outputs > half:
        return "the channels of a group are more than half of a vector"
    if sums_positions and channels > case.tuning.most_group_channels:
        if spread is None:
            return Reason("the source has more than {} channels in a group", case.tuning.most_group_channels)
        if case.multiplies_pairs or 2 * case.outputs == case.lanes:
            return "others multiply bfloat16 in pairs of positions, or fill halves of vectors"
    # A copy with a vector for each channel may cost more than the general way; but not in wgrad, nor where phases of a
    # dgrad share it.
    shared = case.count > 1 and not (positions_adjacent and channels > case.tuning.most_group_channels)
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
    if channels > case.tuning.most_group_channels or lanes % outputs or 1 < outputs < channels:
        return False
    short = case.tuning.short_sum_adjacent if positions_adjacent else case.tuning.short_sum
    general = tile_cycles(outputs, row, tile, case.itemsize) * (1 + short / terms)
    return row * outputs / lanes <= general


def refusal(case, setting, spread):
    """The reason in a setting, or None. Lanes add all terms one by one: where direct would not, all layouts go one way.

    (That of channels last, whatever the cache.) So they do where lanes are spread.
    """
    own = last = _own(case, False, spread)
    if spread is not None:
        return last
    if setting.positions_adjacent:
        own = _own(case, True, spread)
    elif last is None and case.operation != WGRAD and takes_halves(case, setting):
        own = "the output channels fill half of a vector"
    differ = (own is None) != (last is None)
    return last if differ and not order_of(case).is_plain(case) else own
