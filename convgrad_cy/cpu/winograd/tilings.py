"""The choice between the direct algorithm and Winograd's, by a model of their times that was fitted to measurements.

Nothing is measured at run time. The choice affects the bits of the result, so it depends only on the problem and the
register tile, not on the layout, the threads or the caches.
"""

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from ...problem import DGRAD, WGRAD
from ..machine import MATRICES
from ..machine.register_tile import fits_half
from ..plan.reasons import Ratio, Reason
from .costs import FEW_TILES, costs_of, is_small
from .plan import choose
from .walks import most_added, points_of, tile_walks
from .work import counted_parts, direct_work, least_work, tiled_work

#: Points of a tile on an axis, by the number of taps (0 to 5), from small to large tiles. The interpolation points are
#: in pyx/winograd/cook_toom.py.
SMALL = (0, 1, 4, 4, 6, 6)
LARGE = (0, 1, 5, 6, 6, 6)
TILES_7 = (0, 1, 5, 7, 7, 7)
TILES_8 = (0, 1, 5, 8, 8, 8)
#: Tilings: one table for each of the axes depth, height, width.
TILINGS = (
    (SMALL, SMALL, SMALL),
    (SMALL, LARGE, LARGE),
    (LARGE, LARGE, LARGE),
    (SMALL, TILES_7, TILES_7),
    (SMALL, LARGE, TILES_8),
)

#: The accuracy contract: points of the largest tiles on their axes, in descending order, and the largest number of
#: channels. Up to these, the measured error stays well below 2e-5 of the largest element (docs/performance.md).
LARGEST_TILES, MOST_ACCURATE_CHANNELS = ((8, 1, 1), (7, 7, 1), (6, 6, 6)), 2048

_SAVES_LITTLE = "it saves too few products, {:.2f} to 1"

#: With algorithm="auto", Winograd's algorithm is not taken if its tasks share more than this number of bytes, even if
#: the scratch limit of a call is higher.
SCRATCH_BYTES = 64 << 20


def tiling_refusal(operation, problem, dtype):
    """The reason why Winograd's algorithm cannot compute this, or None."""
    if dtype.compute != "float32":
        return Reason("the dtype {}", dtype.name)
    if prod(problem.kernel) == 1:
        return "a filter of one tap"
    if not tile_walks(operation, problem).parts:
        return "these taps, strides and dilations"
    return None


def direct_seconds(operation, problem, dtype, tile):
    """Modelled seconds of the direct algorithm on one thread."""
    return _seconds(direct_work(operation, problem, dtype, tile), costs_of(tile))


def tiled_seconds(operation, problem, tiling, tile):
    """Modelled seconds of Winograd's algorithm on one thread."""
    costs, walks = costs_of(tile), [part.walk for part in tile_walks(operation, problem).parts]
    factor = max([costs.large_tiles.get(tuple(sorted(points)), 1.0) for points in points_of(tiling, walks)])
    if operation != WGRAD and choose(operation, problem, tiling, tile).tiles < FEW_TILES:
        factor *= costs.few_tiles
    return factor * _seconds(tiled_work(operation, problem, tiling, tile), costs)


def _seconds(work, costs):
    return sum(costs.each[name] * count for name, count in work.items()) * 1e-9


def _defined(operation, problem):
    """Products of the definition for one image and one pair of channels, including products with padding."""
    every, shapes, _ = tile_walks(operation, problem)
    return sum(
        count * prod([axis.whole.positions * axis.whole.taps for axis in shape])
        for shape, count in zip(shapes, every.counts, strict=True)
    )


def _saving(problem, defined, counted):
    """Products of the definition for each product of Winograd's algorithm, with partial tiles and all stride phases."""
    return defined / (sum([count * tiles for _, count, tiles in counted]) // (problem.batch * problem.groups))


def is_accurate(operation, problem, tiling):
    """Whether the accuracy contract allows a tiling."""
    if most_added(operation, problem) * problem.channels(operation == DGRAD)[0] > MOST_ACCURATE_CHANNELS:
        return False
    walks = [part.walk for part in tile_walks(operation, problem).parts]
    return all(_is_small(*sorted(points)) for points in points_of(tiling, walks))


def _is_small(least, middle, most):
    """Whether a tile is no larger than some tile of ``LARGEST_TILES``; points in ascending order."""
    return any(most <= x and middle <= y and least <= z for x, y, z in LARGEST_TILES)


def _accurate(operation, problem):
    """Tilings that the contract allows. If several give the same points, only the first one."""
    walks = [part.walk for part in tile_walks(operation, problem).parts]
    every = {tuple(map(tuple, points_of(tiling, walks))): tiling for tiling in reversed(TILINGS)}
    return [tiling for tiling in reversed(every.values()) if is_accurate(operation, problem, tiling)]


class Decision(NamedTuple):
    """The model's decision about an operation.

    Attributes
    ----------
    tiling : tuple or None
        The tiling to use, or None if another family computes the operation.
    reason : Reason, str or None
        The reason why another family computes it, or None.
    seconds : tuple of float
        Modelled seconds of one thread with the tiling and with the direct algorithm. It is shorter, or empty, if the
        decision did not need them.
    """

    tiling: tuple | None
    reason: Any = None
    seconds: tuple = ()


@lru_cache(maxsize=1024)
def decide(operation, problem, dtype, forced, tile):
    """The ``Decision``. ``forced``: take Winograd's algorithm wherever it is possible, even if it is slower."""
    tuning = tile.tuning
    if not forced and problem.multiplications < tuning.least_tiled_products:
        return Decision(None, Reason("there are fewer than {} products", tuning.least_tiled_products))
    if not forced and tile.pairs(dtype) == MATRICES:
        return Decision(None, "tile registers form all products sooner")
    refused = tiling_refusal(operation, problem, dtype)
    if refused is not None:
        return Decision(None, Reason("it cannot compute {}", refused))
    defined, costs = _defined(operation, problem), costs_of(tile)
    general = costs.least_gain_of_pairs if tile.pairs(dtype) else costs.least_gain
    general = costs.least_gain_of_small if is_small(problem) else general
    halved = fits_half(problem.channels(operation == DGRAD)[1], tile, 4)
    counted = {tiling: counted_parts(operation, problem, tiling) for tiling in _accurate(operation, problem)}
    if counted and not forced:  # most problems are refused here, before any blocks are chosen
        saving = max(_saving(problem, defined, each) for each in counted.values())
        if saving < tuning.least_saving:
            return Decision(None, Reason(_SAVES_LITTLE, saving))
        seconds = direct_seconds(operation, problem, dtype, tile)
        least = min(_seconds(least_work(operation, problem, each, tile), costs) for each in counted.values())
        gain = min(general, costs.least_gain_of_little[operation])
        if least * gain >= seconds and not (halved and problem.groups > 1):
            slow = "it has to be {} times as fast, and is at most {:.2f} times"
            return Decision(None, Reason(slow, gain, Ratio(seconds, least)))
    least_tiles = tuning.least_wgrad_tiles if operation == WGRAD else 1
    times = {
        tiling: tiled_seconds(operation, problem, tiling, tile)
        for tiling in counted
        if forced or choose(operation, problem, tiling, tile).tiles >= least_tiles
    }
    if not times:
        few = "no tiles are accurate enough, or too few make a box"
        return Decision(TILINGS[0]) if forced else Decision(None, few)
    best = min(times, key=times.get)
    if forced:
        return Decision(best, None, (times[best],))
    saving = _saving(problem, defined, counted[best])
    if saving < tuning.least_saving:
        return Decision(None, Reason(_SAVES_LITTLE, saving), (times[best],))
    plan = choose(operation, problem, best, tile)
    if plan.memory > SCRATCH_BYTES:
        return Decision(None, Reason("it would take {} scratch bytes", plan.memory), (times[best],))
    full = saving >= tuning.full_saving
    whole = sum([part.alike for part in tile_walks(operation, problem).parts]) == 1 and full
    if whole and plan.chosen.groups > 1 and halved and plan.tasks > 1:
        # Many products are saved, and the tiles of half a vector are full. The model has no such tiles.
        return Decision(best, None, (times[best],))
    seconds = times[best], direct_seconds(operation, problem, dtype, tile)
    gain = general if full else costs.least_gain_of_little[operation]
    if times[best] * gain < seconds[1]:
        return Decision(best, None, seconds)
    slow = "it has to be {} times as fast, and is {:.2f} times"
    return Decision(None, Reason(slow, gain, Ratio(*reversed(seconds))), seconds)


def tiling_of(operation, problem, dtype, forced, tile):
    """The tiling to use, or None for the direct algorithm."""
    return decide(operation, problem, dtype, forced, tile).tiling
