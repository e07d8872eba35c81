"""Winograd's algorithm cut for many threads (``cpu/cuts.py``): smaller boxes, more blocks of outputs or of the filter.

Given is what reaches a bit: tiles, chunks of fprop and dgrad, boxes and slices of wgrad.
"""

from itertools import product
from math import prod
from typing import NamedTuple

from ...problem import DGRAD, WGRAD
from ..cuts import Tasks, best_cut, halves, shrinking, work_of
from ..tile import tile_cycles
from .costs import costs_of
from .walks import points_and_outputs, tile_walks


def _tiles(extents, box):
    """Boxes of the tiles of an image."""
    return prod(-(-extent // n) for extent, n in zip(extents, box, strict=True))


class Kind(NamedTuple):
    """Parts of the result that cost the same: how many, the points of a tile, tiles of an image, walks added."""

    count: int
    points: int
    extents: list
    added: int


class Cutting:
    """What the model knows of a task: sizes, and the costs of ``costs.py`` in cycles of the register tile."""

    def __init__(self, operation, problem, tiling, tile):
        parts, lanes = tile_walks(operation, problem).parts, tile.vector_bytes // 4
        self.walks, self.tile, self.groups = [part.walk for part in parts], tile, problem.groups
        points, self.given = points_and_outputs(tiling, self.walks)
        self.points, self.each = max(map(prod, points)), costs_of(tile).each
        extents = [
            [-(-axis.positions // m) for axis, m in zip(*each, strict=True)]
            for each in zip(self.walks, self.given, strict=True)
        ]
        self.kinds = [
            Kind(part.alike, prod(own), tiles, 1 if operation == WGRAD else part.added)
            for part, own, tiles in zip(parts, points, extents, strict=True)
        ]
        self.channels, self.outputs = problem.channels(operation == DGRAD)
        self.batch = problem.batch * max([part.siblings for part in parts])
        self.strip = min(tile.tile_column_bytes // 4, -(-self.outputs // lanes) * lanes)
        self.added = max([kind.added for kind in self.kinds])

    def cost(self, name, product_name="product"):
        return self.each[name] / self.each[product_name]

    def boxes(self, images, box, kind=None):
        """Of a part of that kind, or of the part that has most."""
        most = max(_tiles(each.extents, box) for each in ([kind] if kind else self.kinds))
        return -(-self.batch // images) * most

    def value_bytes(self, images, box):
        """Of the transformed tiles of the source, of the part that has most."""
        values = 4 * self.points * images * prod(box) * self.channels * self.added * self.groups
        return values * self.boxes(images, box)

    def parts_together(self, blocks, box):
        """How many parts of the result share their loops: as many as have little to keep for all tasks."""
        tuning, parts = self.tile.tuning, sum([kind.count for kind in self.kinds])
        most = tuning.most_parts
        if blocks.group:
            filters = 4 * self.points * self.channels * self.added * self.groups * min(blocks.group, self.outputs)
            most = min(most, tuning.kept_bytes // filters)
        if blocks.shared:
            most = min(most, tuning.kept_bytes // self.value_bytes(blocks.images, box))
        return max(1, min(parts, most))

    def correlation_loop(self, blocks, box):
        """The ``Tasks`` that multiply in fprop or dgrad: of all parts, or of the part that has most."""
        loop = [self._correlation_tasks(blocks, box, kind) for kind in self.kinds]
        return [max(loop, key=lambda tasks: work_of([tasks]))] if blocks.together == 1 else loop

    def _correlation_tasks(self, blocks, box, kind):
        """Of a kind's parts in one loop."""
        tiles, channels = blocks.images * prod(box), self.channels * kind.added
        bundles, parts = -(-self.groups // blocks.groups), -(-self.outputs // blocks.outputs)
        width = min(blocks.outputs, -(-blocks.groups * self.outputs // self.strip) * self.strip)
        products = channels * tile_cycles(tiles, min(width, self.outputs), self.tile, 4) * blocks.groups
        values = 0 if blocks.shared else tiles * channels * blocks.groups * self.cost("value")
        read = self.tile.tuning.read_part * self.cost("kept filter") if blocks.group else self.cost("filter")
        sums = tiles * width * (self.cost("sum") + self.cost("load") * -(-channels // blocks.chunk))
        cycles = kind.points * (products + values + read * channels * width + sums)
        count = bundles * parts * self.boxes(blocks.images, box, kind)
        return Tasks(min(kind.count, blocks.together) * count, cycles)

    def accumulation_loops(self, blocks, box):
        """The loops of wgrad: all tiles are transformed, where they are kept; then the products are formed."""
        tiles, boxes = blocks.images * prod(box), self.boxes(blocks.images, box)
        chunk, outputs = min(blocks.chunk, self.channels), min(blocks.outputs, self.outputs)
        chunks, parts = -(-self.channels // chunk), -(-self.outputs // outputs)
        name, tasks = "wgrad product", -(-self.groups // blocks.groups) * chunks * parts * blocks.slices
        elements, boxes_of_slice = chunk * outputs * blocks.groups, boxes / blocks.slices
        products = boxes_of_slice * tiles * tile_cycles(chunk, outputs, self.tile, 4) * blocks.groups
        products += boxes_of_slice * elements * self.cost("wgrad load", name)
        values = self.points * tiles * self.cost("wgrad value", name) * blocks.groups
        sums = self.points * elements * self.cost("wgrad sum", name)
        if not blocks.shared:
            return [[Tasks(tasks, self.points * products + boxes_of_slice * values * (chunk + outputs) + sums)]]
        first = [
            Tasks(self.groups * boxes * chunks, values * chunk),
            Tasks(self.groups * boxes * parts, values * outputs),
        ]
        return [first, [Tasks(tasks, self.points * products + sums)]]

    def tasks(self, operation, blocks, box):
        """Those of a loop that multiplies."""
        loop = self.accumulation_loops(blocks, box)[-1] if operation == WGRAD else self.correlation_loop(blocks, box)
        return sum([kind.count for kind in loop])


def cut_correlation(cutting, chosen, box, threads, box_of, kept_bytes, has_room):
    """(blocks, box) of fprop or dgrad for ``threads`` threads, for which ``has_room(blocks, box)`` is true.

    ``box_of`` gives images and box of at most so many tiles. Transformed tiles are kept for more blocks of outputs, if
    they take at most ``kept_bytes``.
    """
    tuning = cutting.tile.tuning
    whole = chosen.images * prod(box)
    sizes = shrinking(whole, tuning, tuning.least_cut_tiles)

    def cut(block, size):
        images, extents = box_of(size)
        values = cutting.value_bytes(images, extents) * chosen.together
        shared = chosen.shared or (chosen.groups == 1 and block < chosen.outputs and values <= kept_bytes)
        group = chosen.group and max(block, chosen.group // block * block)
        return chosen._replace(images=images, outputs=block, group=group, shared=shared), extents

    least = cutting.strip if chosen.groups == 1 else chosen.outputs
    every = (cut(*each) for each in product(halves(chosen.outputs, least), sizes))
    others = (one for one in every if has_room(*one))
    return best_cut((chosen, box), others, lambda one: [cutting.correlation_loop(*one)], threads, tuning)


def cut_accumulation(cutting, chosen, box, threads, lanes, kept_bytes, has_room):
    """The blocks of wgrad for ``threads`` threads, for which ``has_room(blocks, box)`` is true.

    Tiles are kept for all blocks up to ``kept_bytes``.
    """
    if chosen.groups > 1:
        return chosen
    tiles = cutting.groups * chosen.images * prod(box) * cutting.boxes(chosen.images, box)
    widths = (
        -(-cutting.channels // chosen.chunk) * chosen.chunk,
        -(-cutting.outputs // chosen.outputs) * chosen.outputs,
    )
    shares = chosen.shared or 4 * cutting.points * tiles * sum(widths) <= kept_bytes
    every = (
        chosen._replace(chunk=chunk, outputs=block, shared=shared)
        for shared in sorted({chosen.shared, shares})
        for chunk, block in product(halves(chosen.chunk, lanes), halves(chosen.outputs, lanes))
    )
    others = (one for one in every if has_room(one, box))
    return best_cut(chosen, others, lambda one: cutting.accumulation_loops(one, box), threads, cutting.tile.tuning)
