"""Which algorithm a call is computed by: a model of both algorithms' time, fitted from measurements.

Nothing is tried at run time, and the choice depends on neither the threads nor the layout of the arrays, for it reaches
the bits of the result.
"""

from functools import lru_cache
from math import prod

from . import winograd
from .plan import DGRAD, WGRAD

#: Points on an axis with so many taps (pyx/cook_toom.py has the sets): with few outputs in a tile, and with more.
SMALL = {1: 1, 2: 4, 3: 4, 4: 6, 5: 6, 6: 8, 7: 8}
LARGE = {1: 1, 2: 5, 3: 6, 4: 6, 5: 6, 6: 8, 7: 8}
TILINGS = (tuple(LARGE.items()), tuple(SMALL.items()))

#: Seconds for 10**9 of each, on one thread, from ``python -m bench.fit_algorithm``.
COSTS = {
    "direct": 9.2e-3,  # products of the definition
    "product": 8.6e-3,  # products of transformed values
    "value": 0.25,  # transformed values of the source, and of the target in wgrad
    "filter": 0.6,  # transformed values of the filter
    "sum": 0.35,  # values that are transformed back
}
#: The model has to promise this much before another algorithm than the direct one is taken.
LEAST_GAIN = 1.1
#: Beyond this, or twice the result, the memory beside the arrays does not go.
SCRATCH_BYTES = 64 << 20


def refusal(operation, problem, dtype):
    """Why Winograd's algorithm cannot compute this, or None."""
    if dtype.compute != "float32":
        return f"the dtype {dtype.name}"
    if max(problem.kernel) == 1:
        return "a filter of one tap"
    walks = winograd.tile_walks(operation, problem)
    if not walks:
        return "these strides and dilations"
    most = max(LARGE)
    if any(axis.taps > most for walk in walks for axis in walk):
        return f"more than {most} taps on an axis"
    return None


def _is_empty(problem):
    return 0 in (problem.batch, problem.groups, problem.x_channels, problem.y_channels, *problem.x, *problem.y)


def _seconds(operation, problem, tiling, machine):
    """The model's time of one tiling, on one thread."""
    strip = machine.tile_column_bytes // 4
    points_of = dict(tiling)
    outputs = problem.x_channels if operation == DGRAD else problem.y_channels
    channels = problem.y_channels if operation == DGRAD else problem.x_channels
    plan = winograd.plan(operation, problem, tiling, machine)
    block = min(plan.outputs, -(-outputs // strip) * strip)
    blocks = -(-outputs // block)
    total = 0.0
    for walk in winograd.tile_walks(operation, problem):
        points = [points_of[axis.taps] for axis in walk]
        tiles = problem.batch * problem.groups
        for axis, n in zip(walk, points, strict=True):
            tiles *= -(-axis.positions // (n + 1 - axis.taps))
        count = prod(points)
        lanes = machine.vector_bytes // 4
        wide = -(-outputs // lanes) * lanes
        total += COSTS["product"] * count * tiles * channels * wide
        if operation == WGRAD:
            total += COSTS["value"] * count * tiles * (channels * blocks + outputs * -(-channels // plan.chunk))
            total += COSTS["sum"] * count * problem.groups * channels * wide * plan.slices
        else:
            total += COSTS["value"] * count * tiles * channels * blocks
            total += COSTS["filter"] * count * problem.groups * channels * wide
            total += COSTS["sum"] * count * tiles * wide
    return total * 1e-9


@lru_cache(maxsize=4096)
def tiling_of(operation, problem, dtype, forced, machine):
    """The tiling to compute by, or None for the direct algorithm. ``forced``: not to compare it with that."""
    if _is_empty(problem) or refusal(operation, problem, dtype) is not None:
        return None
    if not forced and (dtype.name != "float32" or problem.multiplications < 2_000_000):
        return None
    choices = {tiling: _seconds(operation, problem, tiling, machine) for tiling in TILINGS}
    best = min(choices, key=choices.get)
    if forced or choices[best] * LEAST_GAIN < COSTS["direct"] * 1e-9 * problem.multiplications:
        return best
    return None
