"""Memory that all tasks of Winograd's algorithm share, as ``pyx/winograd/`` allocates it, without small tables.

It holds the transformed filters and tiles that are kept, and the sums of the slices of wgrad.
"""

from math import prod

from ...problem import DGRAD, WGRAD
from ..machine import LINE_BYTES
from ..plan.shared import whole
from .walks import points_and_outputs, tile_walks

#: Elements of a cache line, float32. The values of each point are followed by one unused line: without it, points would
#: often be a power of two apart, and would share sets of the cache.
LINE = LINE_BYTES // 4
#: Channels of wgrad's result that are transformed back together (pyx/winograd/wgrad_tasks.pxd).
FINISHED_CHANNELS = 16


def shared_bytes(operation, problem, tiling, tile, blocks, box):
    """Maximum bytes for these ``TileBlocks``; ``box``: tiles of a box on three axes."""
    parts = tile_walks(operation, problem).parts
    sizes = problem.groups, *problem.channels(operation == DGRAD)
    each = zip(parts, *points_and_outputs(tiling, [part.walk for part in parts]), strict=True)
    of_part = _sums_of_part if operation == WGRAD else _part
    most = max(of_part(part, prod(n), _boxes(part, m, problem.batch, blocks, box), sizes, blocks, box, tile)
               for part, n, m in each)  # fmt: skip
    together = 1 if operation == WGRAD else min(blocks.together, sum(part.alike for part in parts))
    return 4 * together * most


def _boxes(part, outputs, batch, blocks, box):
    each = zip(part.walk, outputs, box, strict=True)
    tiles = prod(-(-axis.positions // (m * count)) for axis, m, count in each)
    return -(-batch * part.siblings // blocks.images) * tiles


def _part(part, points, boxes, sizes, blocks, box, tile):
    """Elements for a part of the result of fprop or dgrad."""
    groups, channels, outputs = sizes
    lanes, strip = tile.vector_bytes // 4, tile.tile_column_bytes // 4
    width = min(strip, whole(max(outputs, 1), lanes))
    strips = -(-min(blocks.filters_kept, outputs) // width)
    elements = strips * (part.added * channels * width + LINE)
    if blocks.tiles_kept:
        chunks = part.added * -(-channels // blocks.chunk)
        elements += boxes * chunks * (blocks.images * prod(box) * blocks.chunk + LINE)
    return groups * points * elements


def _sums_of_part(part, points, boxes, sizes, blocks, box, tile):
    """Elements for a part of wgrad's result."""
    groups, channels, outputs = sizes
    lanes, strip, tiles = tile.vector_bytes // 4, tile.tile_column_bytes // 4, blocks.images * prod(box)
    chunks, parts = -(-channels // blocks.chunk), -(-outputs // blocks.outputs)
    elements = 0
    if blocks.tiles_kept:
        width = whole(min(blocks.outputs, strip), LINE)
        values = chunks * (whole(blocks.chunk, LINE) * tiles + LINE)
        values += parts * (whole(blocks.outputs, width) * tiles + LINE)
        elements += groups * boxes * points * values
    if blocks.slices > 1:
        pieces = blocks.groups * -(-min(blocks.chunk, channels) // FINISHED_CHANNELS)
        piece = FINISHED_CHANNELS * prod(axis.taps for axis in part.walk) * whole(min(blocks.outputs, outputs), lanes)
        elements += -(-groups // blocks.groups) * chunks * parts * blocks.slices * pieces * piece
    return elements
