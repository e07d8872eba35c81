"""Which algorithm a call is computed by: a model of both algorithms' time, fitted from measurements.

Nothing is tried at run time, and the choice depends on neither the threads nor the layout of the arrays, for it reaches
the bits of the result.
"""

from collections import defaultdict
from functools import lru_cache
from math import prod

from . import winograd
from .choices import DGRAD, FPROP, WGRAD, tile_cycles
from .tile_walks import first_walks, skips, tile_walks

#: Points on an axis with so many taps (pyx/cook_toom.py has the sets), from small tiles to large ones.
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
LARGEST_TILES, MOST_CHANNELS = ((8, 1, 1), (7, 7, 1), (6, 6, 6)), 2048

#: Seconds for 10**9 of each on one thread, from ``python -m bench.fit_algorithm``; "filter", "kept filter" and
#: "gathered" by hand, within what the fits of several machines gave, so that layers near the border go the faster way.
COSTS = {
    "direct product": 0.2982,  # steps of depth of a tile, in cycles
    "direct wgrad product": 0.2949,
    "direct filter": 0.3551,  # elements of the filter
    "product": 0.2613,  # as of the direct algorithm
    "value": 0.2129,  # transformed values of the source
    "filter": 0.185,  # of the filter, by the tasks; taken from memory where they are kept
    "kept filter": 0.32,
    "scattered filter": 0.1263,
    "gathered": 0.5,  # elements of x and y whose neighbours walks skip: put into another order where they are adjacent
    "load": 0.0546,  # that a chunk of channels is added to
    "sum": 0.1645,  # that are transformed back
    "wgrad product": 0.2193,
    "wgrad value": 0.2082,  # of both operands
    "wgrad load": 0.1018,
    "wgrad sum": 0.041,
}
#: Transforms of 7 x 7 points cost more than their number tells: the model's time for them is multiplied by this, set
#: by hand. Large layers, where they save only a tenth of the products, take as long with them as without.
SEVEN_BY_SEVEN = 1.09
#: The model has to promise this much before another algorithm than the direct one is taken: with it, no layer of the
#: suites was slower than that by 3 %, but for three of less than a millisecond, in one layout each.
LEAST_GAIN = 1.25
#: Nor does wgrad then pay for transforming its sums back, and the model errs, where these have fewer terms.
LEAST_WGRAD_TILES = 16
#: Where fewer products are saved, as of two taps or seven on one axis, transforms take more of the gain, which must be
#: larger; and all of it where still fewer are.
FULL_SAVING, LEAST_SAVING = 1.8, 1.5
LEAST_GAIN_OF_LITTLE = {FPROP: 1.4, DGRAD: 1.4, WGRAD: 1.6}
#: Below so many products a call's own time counts.
LEAST_PRODUCTS = 2_000_000
#: Memory beside the arrays, or twice the result if that is more.
SCRATCH_BYTES = 64 << 20


def refusal(operation, problem, dtype):
    """Why Winograd's algorithm cannot compute this, or None."""
    if dtype.compute != "float32":
        return f"the dtype {dtype.name}"
    if prod(problem.kernel) == 1:
        return "a filter of one tap"
    if not tile_walks(operation, problem):
        return "these taps, strides and dilations"
    return None


def _channels(operation, problem):
    """(channels that are summed over, or the rows of wgrad's filter; output channels)."""
    if operation == DGRAD:
        return problem.y_channels, problem.x_channels
    return problem.x_channels, problem.y_channels


def direct_work(operation, problem, machine):
    """What the direct algorithm does, as counts by the names of ``COSTS``."""
    channels, outputs = _channels(operation, problem)
    # Cycles of whole tiles, across channels or across positions, whichever is better.
    column = min(tile_cycles(60, outputs, machine, 4), tile_cycles(outputs, 60, machine, 4)) / 60
    depth = problem.batch * problem.groups * prod(problem.y) * channels * prod(problem.kernel)
    name = "direct wgrad product" if operation == WGRAD else "direct product"
    return {name: column * depth, "direct filter": problem.groups * channels * outputs * prod(problem.kernel)}


def tiled_work(operation, problem, tiling, machine):
    """What Winograd's algorithm does, likewise."""
    channels, outputs = _channels(operation, problem)
    plan = winograd.plan(operation, problem, tiling, machine)
    parts = tile_walks(operation, problem)
    walks = first_walks(parts)
    wide = -(-outputs // (machine.vector_bytes // 4)) * (machine.vector_bytes // 4)
    blocks = -(-outputs // plan.chosen.outputs)
    work = defaultdict(float)
    for skipped, extents, count in zip(
        skips(operation, problem), (problem.x, problem.y), (problem.x_channels, problem.y_channels), strict=True
    ):
        work["gathered"] += skipped * problem.batch * problem.groups * count * prod(extents)
    for part, walk, points in zip(parts, walks, winograd.points_of(tiling, walks), strict=True):
        count, tiles, added = prod(points), problem.batch * problem.groups, len(part)
        for axis, n in zip(walk, points, strict=True):
            tiles *= -(-axis.positions // (n + 1 - axis.taps))
        tiles *= added
        if operation == WGRAD:
            rows = min(plan.chosen.chunk, channels)
            cycles = tile_cycles(rows, min(outputs, plan.chosen.outputs), machine, 4) / rows * channels * blocks
            work["wgrad product"] += count * tiles * cycles
            work["wgrad load"] += count * tiles / plan.tiles * channels * wide
            read, met = tiles * channels * blocks, tiles * wide * -(-channels // plan.chosen.chunk)
            work["wgrad value"] += count * (read + met)
            work["wgrad sum"] += count * problem.groups * channels * wide * plan.chosen.slices
        else:
            box = min(plan.tiles, tiles // added)
            cycles = tile_cycles(box, min(outputs, plan.chosen.outputs), machine, 4) / box * blocks
            read = tiles * channels * (1 if plan.chosen.shared else blocks)
            work["product"] += count * tiles * channels * cycles
            work["value"] += count * read
            boxes = 1 if plan.chosen.group else -(-tiles // (added * problem.groups * plan.tiles))
            # Of stride phases, the taps lie scattered in memory.
            scattered = any(axis.taps > 1 and abs(axis.filter_step) > 1 for axis in walk)
            name = "scattered filter" if scattered else "filter" if plan.chosen.group == 0 else "kept filter"
            work[name] += count * problem.groups * added * channels * wide * boxes
            work["load"] += count * tiles * wide * -(-channels // plan.chosen.chunk)
            work["sum"] += count * tiles // added * wide
    return work


def seconds(work):
    """The model's time for what is done, on one thread."""
    return sum(COSTS[name] * count for name, count in work.items()) * 1e-9


def _seconds_of_tiles(operation, problem, tiling, machine):
    walks = first_walks(tile_walks(operation, problem))
    seven_by_seven = any(points.count(7) > 1 for points in winograd.points_of(tiling, walks))
    return seconds(tiled_work(operation, problem, tiling, machine)) * (SEVEN_BY_SEVEN if seven_by_seven else 1)


def _saving(operation, problem, tiling):
    """Products of the definition for one of Winograd's, at the edges and in all phases of a dgrad."""
    parts = tile_walks(operation, problem)
    walks = first_walks(parts)
    defined = own = 0
    for part, walk, points in zip(parts, walks, winograd.points_of(tiling, walks), strict=True):
        defined += sum(prod(axis.walk.positions * axis.held for axis in added) for added in part)
        tiles = prod(-(-axis.positions // (n + 1 - axis.taps)) for axis, n in zip(walk, points, strict=True))
        own += len(part) * prod(points) * tiles
    return defined / own


def _is_accurate(operation, problem, tiling):
    """Whether the accuracy contract allows a tiling."""
    parts = tile_walks(operation, problem)
    if max(map(len, parts)) * _channels(operation, problem)[0] > MOST_CHANNELS:
        return False
    return all(
        any(
            all(n <= most for n, most in zip(sorted(points, reverse=True), largest, strict=True))
            for largest in LARGEST_TILES
        )
        for points in winograd.points_of(tiling, first_walks(parts))
    )


@lru_cache(maxsize=4096)
def tiling_of(operation, problem, dtype, forced, machine):
    """The tiling to compute by, or None for the direct algorithm. ``forced``: not to compare it with that."""
    if problem.multiplications == 0 or refusal(operation, problem, dtype) is not None:
        return None
    if not forced and (dtype.name != "float32" or problem.multiplications < LEAST_PRODUCTS):
        return None
    times = {
        tiling: _seconds_of_tiles(operation, problem, tiling, machine)
        for tiling in TILINGS
        if _is_accurate(operation, problem, tiling)
    }
    if not times:
        return TILINGS[0] if forced else None
    best = min(times, key=times.get)
    if forced:
        return best
    saving = _saving(operation, problem, best)
    if saving < LEAST_SAVING:
        return None
    plan = winograd.plan(operation, problem, best, machine)
    if plan.memory > SCRATCH_BYTES or (operation == WGRAD and plan.tiles < LEAST_WGRAD_TILES):
        return None
    gain = LEAST_GAIN if saving >= FULL_SAVING else LEAST_GAIN_OF_LITTLE[operation]
    return best if times[best] * gain < seconds(direct_work(operation, problem, machine)) else None
