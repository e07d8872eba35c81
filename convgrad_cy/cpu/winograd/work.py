"""The work of the direct algorithm and of Winograd's algorithm: for each kind of ``Costs.each``, its amount."""

from collections import defaultdict
from math import prod

from ...problem import DGRAD, WGRAD
from ..machine.caches import operand_bytes
from ..machine.register_tile import tile_cycles
from .costs import is_small
from .plan import choose
from .walks import points_of, skips, tile_walks

#: Rows of an average block of positions, in the model. A multiple of six, the usual rows of a register tile.
ROWS = 60
#: The share of products with padding that boxes skip (pyx/direct/zones.pxd). With 0.5 or 1, the choices are worse.
LEFT_OUT = 0.7


def _without_padding(problem):
    """The share of products without padding."""
    part = 1.0
    axes = problem.x, problem.y, problem.kernel, problem.stride, problem.dilation, problem.pad_begin
    for x, y, taps, stride, dilation, pad in zip(*axes, strict=True):
        if pad <= 0 and (y - 1) * stride + (taps - 1) * dilation - pad < x:
            continue
        # Taps and positions are symmetric. For each of the fewer ones, count the others that it meets within x.
        (few, apart), (many, step) = sorted([(taps, dilation), (y, stride)])
        firsts = [each * apart - pad for each in range(few)]
        seen = sum(max(0, min(many, -((first - x) // step)) - max(0, -(first // step))) for first in firsts)
        part *= seen / (y * taps)
    return part


def _left(operation, problem, dtype, tile):
    """The share of the products that the direct algorithm computes, in the model. It skips some products with padding.

    The costs of large problems were fitted to the number of all products, so the share is 1. Exceptions are pairs of
    bfloat16, and dilated walks, which are split at padding.
    """
    left, pairs, tuning = _without_padding(problem), tile.pairs(dtype), tile.tuning
    if (pairs and operation != WGRAD) or (not pairs and max(problem.dilation) > 1 and left <= tuning.left_products):
        return left
    return 1 - LEFT_OUT * (1 - left) if is_small(problem) else 1


def _steps(operation, problem, dtype, tile):
    """Steps of the register tile for each product of the direct algorithm: about half if it multiplies pairs.

    Pairs are neighbouring channels; in wgrad, neighbouring positions of a row.
    """
    channels, _ = problem.channels(operation == DGRAD)
    if not tile.pairs(dtype):
        return 1
    if operation == WGRAD:
        return -(-problem.y[2] // 2) / problem.y[2]
    return -(-channels // 2) / channels


def direct_work(operation, problem, dtype, tile):
    """The work of the direct algorithm."""
    channels, outputs = problem.channels(operation == DGRAD)
    tile = tile.unsplit()
    # Cycles of the faster of two tiles: its columns are channels, or positions of a row. In wgrad without groups, the
    # second one stands for mirrored wgrad, in which x and y are exchanged.
    steps = _steps(operation, problem, dtype, tile)
    column = steps * tile_cycles(ROWS, outputs, tile, 4) / ROWS
    if operation != WGRAD or problem.groups == 1:
        row = min(ROWS, -(-problem.x[2] // problem.stride[2]) if operation == DGRAD else problem.y[2])
        across = tile_cycles(outputs, row, tile, 4) / row
        column = min(column, steps * across if operation == WGRAD else across)
    products = problem.batch * problem.groups * prod(problem.y) * channels * prod(problem.kernel)
    formed = products * _left(operation, problem, dtype, tile)
    name = "direct wgrad product" if operation == WGRAD else "direct product"
    return {name: column * formed, "direct filter": problem.groups * channels * outputs * prod(problem.kernel)}


def counted_parts(operation, problem, tiling):
    """A list of (part, points of all parts like it, tiles), for the parts of ``tile_walks``."""
    parts, counted = tile_walks(operation, problem).parts, []
    for part, points in zip(parts, points_of(tiling, [part.walk for part in parts]), strict=True):
        tiles = problem.batch * problem.groups * part.siblings * part.added
        for axis, n in zip(part.walk, points, strict=True):
            tiles *= -(-axis.positions // (n + 1 - axis.taps))
        counted.append((part, part.alike * prod(points), tiles))
    return counted


def _gathered(operation, problem):
    """Elements of x and y that are reordered because walks skip some."""
    each = zip(skips(operation, problem), operand_bytes(problem, 1), strict=True)
    return sum([is_skipped * size for is_skipped, size in each])


def tiled_work(operation, problem, tiling, tile):
    """The work of Winograd's algorithm."""
    channels, outputs = problem.channels(operation == DGRAD)
    plan = choose(operation, problem, tiling, tile)
    chosen = plan.chosen
    tile, lanes, bundle = tile.unsplit(), tile.vector_bytes // 4, chosen.groups
    wide = -(-bundle * outputs // lanes) * lanes / bundle
    blocks = -(-outputs // chosen.outputs)
    work = defaultdict(float, gathered=_gathered(operation, problem))
    for (walk, _, added, alike), count, tiles in counted_parts(operation, problem, tiling):
        if operation == WGRAD:
            rows = min(chosen.chunk, channels)
            cycles = tile_cycles(rows, min(outputs, chosen.outputs), tile, 4) / rows * channels * blocks
            work["wgrad product"] += count * tiles * cycles
            work["wgrad load"] += count * tiles / plan.tiles * channels * wide
            # Each block of the filter transforms both operands again, unless the tiles are kept.
            again = (1, 1) if chosen.tiles_kept else (blocks, -(-channels // chosen.chunk))
            work["wgrad value"] += count * tiles * (channels * again[0] + wide * again[1])
            columns = problem.groups * channels * wide * chosen.slices
            work["wgrad sum"] += count * columns
            work["wgrad slice"] += alike * prod(axis.taps for axis in walk) * columns if chosen.slices > 1 else 0
        else:
            box = min(plan.tiles, tiles // added)
            cycles = tile_cycles(box, min(outputs, chosen.outputs), tile, 4) / box * blocks
            read = tiles * channels * (1 if chosen.tiles_kept else blocks)
            work["product"] += count * tiles * channels * cycles
            work["value"] += count * read
            boxes = 1 if chosen.filters_kept else -(-tiles // (added * problem.groups * plan.tiles))
            # Kept filters pass through memory. If tasks transform filters, stride phases have scattered taps.
            scattered = any(axis.taps > 1 and abs(axis.filter_step) > 1 for axis in walk)
            name = "kept filter" if chosen.filters_kept else "scattered filter" if scattered else "filter"
            work[name] += count * problem.groups * added * channels * wide * boxes
            work["load"] += count * tiles * wide * -(-channels // chosen.chunk)
            work["sum"] += count * tiles // added * wide
    return work


def least_work(operation, problem, counted, tile):
    """A lower bound of ``tiled_work`` for all blocks: tiles are full, and each operand is transformed once."""
    channels, outputs = problem.channels(operation == DGRAD)
    vectors, work = -(-outputs // (tile.vector_bytes // 4)), defaultdict(float, gathered=_gathered(operation, problem))
    for part, count, tiles in counted:
        if operation == WGRAD:
            work["wgrad product"] += count * tiles * channels * vectors / 2
            work["wgrad value"] += count * tiles * (channels + outputs)
            work["wgrad sum"] += count * problem.groups * channels * outputs
        else:
            work["product"] += count * tiles * channels * vectors / 2
            work["value"] += count * tiles * channels
            work["load"] += count * tiles * outputs
            work["sum"] += count * tiles // part.added * outputs
    return work
