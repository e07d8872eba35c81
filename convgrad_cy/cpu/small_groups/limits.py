"""Why groups side by side would not be faster."""

from ...problem import WGRAD
from ..direct.choices import takes_halves
from ..direct.order import order_of
from ..machine.register_tile import tile_cycles
from ..plan.reasons import Reason

#: Not for speed: entries of the kernel's tables of taps, all runs together, 8 bytes each (pyx/small_groups/runs.pxd).
MOST_TABLE = 1 << 18


def table_entries(height, width):
    """Entries of the table for so many taps of one channel."""
    return (2 * width + 1) * width * height


def has_table(problem):
    """Whether small groups side by side have a table of all taps."""
    _, height, width = problem.kernel
    return problem.groups > 1 and table_entries(height, width) <= MOST_TABLE


def _own(sums, positions_adjacent, spread):
    """The reason in a layout, or None."""
    sums_positions = sums.operation == WGRAD
    walks, channels = sums.walks, sums.channels
    half = max(1, sums.lanes // 2)
    if channels > half or sums.outputs > half:
        return "the channels of a group are more than half of a vector"
    if sums_positions and channels > sums.tuning.most_summed_channels:
        if spread is None:
            return Reason("the source has more than {} channels in a group", sums.tuning.most_summed_channels)
        if sums.multiplies_pairs or 2 * sums.outputs == sums.lanes:
            return "others multiply bfloat16 in pairs of positions, or fill halves of vectors"
    # A copy with a vector for each channel may cost more than the general way; but not in wgrad, nor where phases of a
    # dgrad share it.
    shared = sums.count > 1 and not (positions_adjacent and channels > sums.tuning.most_sharing_channels)
    several = max(channels, sums.outputs) > 1 and not sums_positions
    if spread is None and several and not shared and not _expands_well(sums, positions_adjacent):
        return "a copy with a vector for each channel would take too long"
    if channels * max(table_entries(walk[1].taps, walk[2].taps) for walk in walks) > MOST_TABLE:
        return "there are too many taps"
    return None


def _expands_well(sums, positions_adjacent):
    """Whether a copy with a vector for each channel, in fprop or dgrad, takes less than the general way.

    The tile needs two loads for each product of vectors; that across positions, many of whose vectors short rows leave
    empty, has its own work for each sum.
    """
    channels, outputs, lanes, row = sums.channels, sums.outputs, sums.lanes, sums.walks[-1][2].positions
    tile, terms = sums.tile.unsplit(), sums.channels * max(sums.taps, 1)
    # A vector of lanes made of more than two of channels, or of groups that lie across vectors, takes too long.
    # One output for each group is worth even that: it leaves the general way few rows of a tile.
    if channels > sums.tuning.most_expanded_channels or lanes % outputs or 1 < outputs < channels:
        return False
    short = sums.tuning.short_sum_adjacent if positions_adjacent else sums.tuning.short_sum
    general = tile_cycles(outputs, row, tile, sums.itemsize) * (1 + short / terms)
    return row * outputs / lanes <= general


def refusal(sums, placement, spread):
    """The reason, or None. Lanes add all terms one by one: where direct would not, all layouts go one way.

    (That of channels last, whatever the cache.) So they do where lanes are spread.
    """
    own = last = _own(sums, False, spread)
    if spread is not None:
        return last
    if placement.positions_adjacent:
        own = _own(sums, True, spread)
    elif last is None and sums.operation != WGRAD and takes_halves(sums, placement):
        own = "the output channels fill half of a vector"
    differ = (own is None) != (last is None)
    return last if differ and not order_of(sums).is_plain(sums) else own
