"""Which algorithm a call is computed by: a model of both algorithms' time, fitted from measurements.

Nothing is tried at run time. The choice reaches the bits of the result: so it sees a problem and the register tile, and
neither the layout of the arrays nor the threads nor the caches.
"""

from collections import defaultdict
from functools import lru_cache
from math import prod
from typing import NamedTuple

from ...problem import DGRAD, WGRAD
from ..tile import fits_half, tile_cycles
from . import plan as winograd
from .costs import FEW_TILES, costs_of
from .walks import first_walks, most_added, skips, tile_walks

#: Which tiles there are: points on an axis with so many taps, of which pyx/winograd/cook_toom.py has the sets, from
#: small tiles to large ones.
SMALL = {1: 1, 2: 4, 3: 4, 4: 6, 5: 6}
LARGE = {1: 1, 2: 5, 3: 6, 4: 6, 5: 6}
LARGER = {1: 1, 2: 5, 3: 7, 4: 7, 5: 7}
LARGEST = {1: 1, 2: 5, 3: 8, 4: 8, 5: 8}
#: Tables for the axes depth, height, width.
TILINGS = tuple(
    tuple(tuple(table.items()) for table in tables)
    for tables in (
        (SMALL, SMALL, SMALL),
        (SMALL, LARGE, LARGE),
        (LARGE, LARGE, LARGE),
        (SMALL, LARGER, LARGER),
        (SMALL, LARGE, LARGEST),
    )
)

#: The accuracy contract: points of the largest tiles on their axes, in descending order, and the channels up to which
#: their error has been measured to stay well below 2e-5 of the greatest element (docs/performance.md).
LARGEST_TILES, MOST_ACCURATE_CHANNELS = ((8, 1, 1), (7, 7, 1), (6, 6, 6)), 2048

#: Not for speed: what a call may take beside the arrays.
SCRATCH_BYTES = 64 << 20


def refusal(operation, problem, dtype):
    """Why Winograd's algorithm cannot compute this, or None."""
    if dtype.compute != "float32":
        return f"the dtype {dtype.name}"
    if prod(problem.kernel) == 1:
        return "a filter of one tap"
    if not tile_walks(operation, problem).parts:
        return "these taps, strides and dilations"
    return None


def _without_padding(problem):
    """The part of the products that is not with padding."""
    part = 1.0
    axes = problem.x, problem.y, problem.kernel, problem.stride, problem.dilation, problem.pad_begin
    for x, y, taps, stride, dilation, pad in zip(*axes, strict=True):
        firsts = [tap * dilation - pad for tap in range(taps)]
        seen = sum(max(0, min(y, -((first - x) // stride)) - max(0, -(first // stride))) for first in firsts)
        part *= seen / (y * taps)
    return part


def _steps(operation, problem, dtype, tile):
    """Steps of depth of the direct algorithm's tile across channels, for each of the products: fewer if it takes pairs.

    In wgrad these are positions of a row. Those of channels leave out padding: the costs of others were fitted without
    that. Of groups narrower than a tile, what they gain is lost where they are joined.
    """
    channels, outputs = problem.channels(operation == DGRAD)
    if not tile.pairs(dtype):
        return 1
    if operation == WGRAD:
        return -(-problem.y[2] // 2) / problem.y[2]
    if problem.groups > 1 and 4 * outputs < tile.tile_column_bytes:
        return 1
    return -(-channels // 2) / channels * _without_padding(problem)


def direct_work(operation, problem, dtype, tile):
    """What the direct algorithm does, as counts by the names of ``Costs.each``."""
    channels, outputs = problem.channels(operation == DGRAD)
    tile = tile.unsplit()
    # Cycles of whole tiles: across channels or the positions of a row, of wgrad without groups with x and y in each
    # other's place, whichever is better.
    steps = _steps(operation, problem, dtype, tile)
    column = steps * tile_cycles(60, outputs, tile, 4) / 60
    if operation != WGRAD or problem.groups == 1:
        row = min(60, -(-problem.x[2] // problem.stride[2]) if operation == DGRAD else problem.y[2])
        across = tile_cycles(outputs, row, tile, 4) / row
        column = min(column, steps * across if operation == WGRAD else across)
    depth = problem.batch * problem.groups * prod(problem.y) * channels * prod(problem.kernel)
    name = "direct wgrad product" if operation == WGRAD else "direct product"
    return {name: column * depth, "direct filter": problem.groups * channels * outputs * prod(problem.kernel)}


def tiled_work(operation, problem, tiling, tile):
    """What Winograd's algorithm does, likewise."""
    channels, outputs = problem.channels(operation == DGRAD)
    tile = tile.unsplit()
    plan = winograd.choose(operation, problem, tiling, tile)
    _, parts, counts = tile_walks(operation, problem)
    walks = first_walks(parts)
    lanes, bundle = tile.vector_bytes // 4, plan.chosen.groups
    wide = -(-bundle * outputs // lanes) * lanes / bundle
    blocks = -(-outputs // plan.chosen.outputs)
    work = defaultdict(float)
    for skipped, extents, count in zip(
        skips(operation, problem), (problem.x, problem.y), (problem.x_channels, problem.y_channels), strict=True
    ):
        work["gathered"] += skipped * problem.batch * problem.groups * count * prod(extents)
    each = zip(parts, counts, walks, winograd.points_of(tiling, walks), strict=True)
    for siblings, alike, walk, points in each:
        count, tiles, added = alike * prod(points), problem.batch * problem.groups * len(siblings), len(siblings[0])
        for axis, n in zip(walk, points, strict=True):
            tiles *= -(-axis.positions // (n + 1 - axis.taps))
        tiles *= added
        if operation == WGRAD:
            rows = min(plan.chosen.chunk, channels)
            cycles = tile_cycles(rows, min(outputs, plan.chosen.outputs), tile, 4) / rows * channels * blocks
            work["wgrad product"] += count * tiles * cycles
            work["wgrad load"] += count * tiles / plan.tiles * channels * wide
            # Blocks of the filter transform both operands again, unless their tiles are kept.
            again = (1, 1) if plan.chosen.shared else (blocks, -(-channels // plan.chosen.chunk))
            work["wgrad value"] += count * tiles * (channels * again[0] + wide * again[1])
            columns = problem.groups * channels * wide * plan.chosen.slices
            work["wgrad sum"] += count * columns
            work["wgrad slice"] += alike * prod(axis.taps for axis in walk) * columns if plan.chosen.slices > 1 else 0
        else:
            box = min(plan.tiles, tiles // added)
            cycles = tile_cycles(box, min(outputs, plan.chosen.outputs), tile, 4) / box * blocks
            read = tiles * channels * (1 if plan.chosen.shared else blocks)
            work["product"] += count * tiles * channels * cycles
            work["value"] += count * read
            boxes = 1 if plan.chosen.group else -(-tiles // (added * problem.groups * plan.tiles))
            # Kept filters pass through memory; of those that tasks transform, stride phases have scattered taps.
            scattered = any(axis.taps > 1 and abs(axis.filter_step) > 1 for axis in walk)
            name = "kept filter" if plan.chosen.group else "scattered filter" if scattered else "filter"
            work[name] += count * problem.groups * added * channels * wide * boxes
            work["load"] += count * tiles * wide * -(-channels // plan.chosen.chunk)
            work["sum"] += count * tiles // added * wide
    return work


def direct_seconds(operation, problem, dtype, tile):
    """The model's time for the direct algorithm, on one thread."""
    return _seconds(direct_work(operation, problem, dtype, tile), costs_of(tile))


def tiled_seconds(operation, problem, tiling, tile):
    """For Winograd's, likewise."""
    costs, walks = costs_of(tile), first_walks(tile_walks(operation, problem).parts)
    factor = max(costs.large_tiles.get(tuple(sorted(points)), 1.0) for points in winograd.points_of(tiling, walks))
    if operation != WGRAD and winograd.choose(operation, problem, tiling, tile).tiles < FEW_TILES:
        factor *= costs.few_tiles
    return factor * _seconds(tiled_work(operation, problem, tiling, tile), costs)


def _seconds(work, costs):
    return sum(costs.each[name] * count for name, count in work.items()) * 1e-9


def _saving(operation, problem, tiling):
    """Products of the definition for one of Winograd's, at the edges and in all phases of a dgrad."""
    _, parts, counts = tile_walks(operation, problem)
    walks = first_walks(parts)
    defined = own = 0
    for siblings, alike, walk, points in zip(parts, counts, walks, winograd.points_of(tiling, walks), strict=True):
        each = [walk for added in siblings for walk in added]
        defined += alike * sum(prod(axis.walk.positions * axis.held for axis in walk) for walk in each)
        tiles = prod(-(-axis.positions // (n + 1 - axis.taps)) for axis, n in zip(walk, points, strict=True))
        own += alike * len(each) * prod(points) * tiles
    return defined / own


def is_accurate(operation, problem, tiling):
    """Whether the accuracy contract allows a tiling."""
    if most_added(operation, problem) * problem.channels(operation == DGRAD)[0] > MOST_ACCURATE_CHANNELS:
        return False
    walks = first_walks(tile_walks(operation, problem).parts)
    return all(
        any(
            all(n <= most for n, most in zip(sorted(points, reverse=True), largest, strict=True))
            for largest in LARGEST_TILES
        )
        for points in winograd.points_of(tiling, walks)
    )


class Decision(NamedTuple):
    """What the model says of an operation.

    Attributes
    ----------
    tiling : tuple or None
        To compute by, or None for another family.
    reason : str or None
        Why another family computes it, or None.
    seconds : tuple of float
        On one thread, by the tiling and by the direct algorithm, as far as they were asked for.
    """

    tiling: tuple | None
    reason: str | None = None
    seconds: tuple = ()


@lru_cache(maxsize=1024)
def decide(operation, problem, dtype, forced, tile):
    """The ``Decision``. ``forced``: whatever can be computed is, however long that takes."""
    tuning = tile.tuning
    if not forced and problem.multiplications < tuning.least_tiled_products:
        return Decision(None, f"there are fewer than {tuning.least_tiled_products} products")
    if problem.multiplications == 0:
        return Decision(None, "there are no products")
    refused = refusal(operation, problem, dtype)
    if refused is not None:
        return Decision(None, f"it cannot compute {refused}")
    least_tiles = tuning.least_wgrad_tiles if operation == WGRAD else 1
    times = {
        tiling: tiled_seconds(operation, problem, tiling, tile)
        for tiling in TILINGS
        if is_accurate(operation, problem, tiling)
        and (forced or winograd.choose(operation, problem, tiling, tile).tiles >= least_tiles)
    }
    if not times:
        few = "no tiles are accurate enough, or too few make a box"
        return Decision(TILINGS[0]) if forced else Decision(None, few)
    best = min(times, key=times.get)
    if forced:
        return Decision(best, None, (times[best],))
    saving = _saving(operation, problem, best)
    if saving < tuning.least_saving:
        return Decision(None, f"it saves too few products, {saving:.2f} to 1", (times[best],))
    plan = winograd.choose(operation, problem, best, tile)
    if plan.memory > SCRATCH_BYTES:
        return Decision(None, f"it would take {plan.memory} bytes beside the arrays", (times[best],))
    if plan.tasks < tuning.least_tile_tasks:
        return Decision(None, "one task would have all the products", (times[best],))
    full = saving >= tuning.full_saving
    whole = sum(tile_walks(operation, problem).counts) == 1 and full
    if whole and plan.chosen.groups > 1 and fits_half(problem.channels(operation == DGRAD)[1], tile, 4):
        # Many products are saved, and tiles of half a vector are full: the model knows whole ones alone.
        return Decision(best, None, (times[best],))
    costs = costs_of(tile)
    gain = costs.least_gain_of_pairs if tile.pairs(dtype) else costs.least_gain
    gain = gain if full else costs.least_gain_of_little[operation]
    seconds = times[best], direct_seconds(operation, problem, dtype, tile)
    if times[best] * gain < seconds[1]:
        return Decision(best, None, seconds)
    return Decision(None, f"it has to be {gain} times as fast, and is {seconds[1] / seconds[0]:.2f} times", seconds)


def tiling_of(operation, problem, dtype, forced, tile):
    """The tiling to compute by, or None for the direct algorithm."""
    return decide(operation, problem, dtype, forced, tile).tiling
