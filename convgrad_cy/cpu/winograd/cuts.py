"""Smaller boxes and blocks of Winograd's plans for many threads (``plan/cuts.py``).

The cuts keep everything that affects the result's bits: tiles, the chunks of fprop and dgrad, the boxes and slices of
wgrad.
"""

from itertools import product
from math import prod
from typing import NamedTuple

from ...problem import DGRAD, WGRAD
from ..machine.register_tile import tile_cycles
from ..plan.cuts import Tasks, best_cut, halves, shrinking, work_of
from .costs import costs_of
from .walks import points_and_outputs, tile_walks


def _boxes_of_image(extents, box):
    """Number of boxes of an image; ``extents``, ``box``: tiles of the image and of a box, on three axes."""
    return prod(-(-extent // n) for extent, n in zip(extents, box, strict=True))


class LikeParts(NamedTuple):
    """Parts of the result that cost the same."""

    count: int  # of these parts
    points: int  # of a tile
    extents: list  # tiles of an image on three axes
    added: int  # walks whose sums are added


class Cutting:
    """A model of the tasks: their numbers, and their times in cycles of the register tile by ``costs.py``."""

    def __init__(self, operation, problem, tiling, tile):
        parts, lanes = tile_walks(operation, problem).parts, tile.vector_bytes // 4
        self.walks, self.tile, self.groups = [part.walk for part in parts], tile, problem.groups
        points, self.tile_sizes = points_and_outputs(tiling, self.walks)
        self.points, self.each = max(map(prod, points)), costs_of(tile).each
        extents = [
            [-(-axis.positions // m) for axis, m in zip(*each, strict=True)]
            for each in zip(self.walks, self.tile_sizes, strict=True)
        ]
        self.parts = [
            LikeParts(part.alike, prod(own), tiles, 1 if operation == WGRAD else part.added)
            for part, own, tiles in zip(parts, points, extents, strict=True)
        ]
        self.channels, self.outputs = problem.channels(operation == DGRAD)
        self.batch = problem.batch * max([part.siblings for part in parts])
        self.strip = min(tile.tile_column_bytes // 4, -(-self.outputs // lanes) * lanes)
        self.added = max([part.added for part in self.parts])

    def cost(self, name, product_name="product"):
        return self.each[name] / self.each[product_name]

    def boxes(self, images, box, part=None):
        """Number of boxes of a part; by default, of the part with the most boxes."""
        most = max(_boxes_of_image(each.extents, box) for each in ([part] if part else self.parts))
        return -(-self.batch // images) * most

    def value_bytes(self, images, box):
        """Bytes of the transformed tiles of the source, for the largest part."""
        values = 4 * self.points * images * prod(box) * self.channels * self.added * self.groups
        return values * self.boxes(images, box)

    def parts_together(self, blocks, box):
        """Number of parts of the result that share their loops, limited by the memory that is kept for all tasks."""
        tuning, parts = self.tile.tuning, sum([part.count for part in self.parts])
        most = tuning.most_parts
        if blocks.filters_kept:
            kept = min(blocks.filters_kept, self.outputs)
            filters = 4 * self.points * self.channels * self.added * self.groups * kept
            most = min(most, tuning.kept_bytes // filters)
        if blocks.tiles_kept:
            most = min(most, tuning.kept_bytes // self.value_bytes(blocks.images, box))
        return max(1, min(parts, most))

    def correlation_loop(self, blocks, box):
        """The multiplying ``Tasks`` of fprop or dgrad: all parts if they share loops, else the largest part."""
        loop = [self._correlation_tasks(blocks, box, part) for part in self.parts]
        return [max(loop, key=lambda tasks: work_of([tasks]))] if blocks.together == 1 else loop

    def _correlation_tasks(self, blocks, box, part):
        """The ``Tasks`` of like parts in one loop."""
        tiles, channels = blocks.images * prod(box), self.channels * part.added
        bundles, parts = -(-self.groups // blocks.groups), -(-self.outputs // blocks.outputs)
        width = min(blocks.outputs, -(-blocks.groups * self.outputs // self.strip) * self.strip)
        products = channels * tile_cycles(tiles, min(width, self.outputs), self.tile, 4) * blocks.groups
        values = 0 if blocks.tiles_kept else tiles * channels * blocks.groups * self.cost("value")
        read = self.tile.tuning.read_part * self.cost("kept filter") if blocks.filters_kept else self.cost("filter")
        sums = tiles * width * (self.cost("sum") + self.cost("load") * -(-channels // blocks.chunk))
        cycles = part.points * (products + values + read * channels * width + sums)
        count = bundles * parts * self.boxes(blocks.images, box, part)
        return Tasks(min(part.count, blocks.together) * count, cycles)

    def accumulation_loops(self, blocks, box):
        """The loops of wgrad: one that transforms all tiles, if they are kept, and one that multiplies."""
        tiles, boxes = blocks.images * prod(box), self.boxes(blocks.images, box)
        chunk, outputs = min(blocks.chunk, self.channels), min(blocks.outputs, self.outputs)
        chunks, parts = -(-self.channels // chunk), -(-self.outputs // outputs)
        name, tasks = "wgrad product", -(-self.groups // blocks.groups) * chunks * parts * blocks.slices
        elements, boxes_of_slice = chunk * outputs * blocks.groups, boxes / blocks.slices
        products = boxes_of_slice * tiles * tile_cycles(chunk, outputs, self.tile, 4) * blocks.groups
        products += boxes_of_slice * elements * self.cost("wgrad load", name)
        values = self.points * tiles * self.cost("wgrad value", name) * blocks.groups
        sums = self.points * elements * self.cost("wgrad sum", name)
        if not blocks.tiles_kept:
            return [[Tasks(tasks, self.points * products + boxes_of_slice * values * (chunk + outputs) + sums)]]
        first = [
            Tasks(self.groups * boxes * chunks, values * chunk),
            Tasks(self.groups * boxes * parts, values * outputs),
        ]
        return [first, [Tasks(tasks, self.points * products + sums)]]

    def tasks(self, operation, blocks, box):
        """Number of tasks of the loop that multiplies."""
        loop = self.accumulation_loops(blocks, box)[-1] if operation == WGRAD else self.correlation_loop(blocks, box)
        return sum([part.count for part in loop])


def cut_correlation(cutting, chosen, box, threads, box_of, kept_bytes, has_room):
    """(blocks, box) of fprop or dgrad for ``threads`` threads, for which ``has_room(blocks, box)`` is true.

    ``box_of(size)``: images and box with at most ``size`` tiles. If blocks of outputs become smaller, transformed tiles
    are kept for all of them, unless they take more than ``kept_bytes``.
    """
    tuning = cutting.tile.tuning
    whole = chosen.images * prod(box)
    sizes = shrinking(whole, tuning, tuning.least_cut_tiles)

    def cut(block, size):
        images, extents = box_of(size)
        values = cutting.value_bytes(images, extents) * chosen.together
        tiles_kept = chosen.tiles_kept or (chosen.groups == 1 and block < chosen.outputs and values <= kept_bytes)
        kept = chosen.filters_kept and max(block, chosen.filters_kept // block * block)
        return chosen._replace(images=images, outputs=block, filters_kept=kept, tiles_kept=tiles_kept), extents

    least = cutting.strip if chosen.groups == 1 else chosen.outputs
    every = (cut(*each) for each in product(halves(chosen.outputs, least), sizes))
    others = (one for one in every if has_room(*one))
    return best_cut((chosen, box), others, lambda one: [cutting.correlation_loop(*one)], threads, tuning)


def cut_accumulation(cutting, chosen, box, threads, lanes, kept_bytes, has_room):
    """The blocks of wgrad for ``threads`` threads, for which ``has_room(blocks, box)`` is true.

    Transformed tiles may be kept for all blocks if they take at most ``kept_bytes``.
    """
    if chosen.groups > 1:
        return chosen
    tiles = cutting.groups * chosen.images * prod(box) * cutting.boxes(chosen.images, box)
    widths = (
        -(-cutting.channels // chosen.chunk) * chosen.chunk,
        -(-cutting.outputs // chosen.outputs) * chosen.outputs,
    )
    shares = chosen.tiles_kept or 4 * cutting.points * tiles * sum(widths) <= kept_bytes
    every = (
        chosen._replace(chunk=chunk, outputs=block, tiles_kept=tiles_kept)
        for tiles_kept in sorted({chosen.tiles_kept, shares})
        for chunk, block in product(halves(chosen.chunk, lanes), halves(chosen.outputs, lanes))
    )
    others = (one for one in every if has_room(one, box))
    return best_cut(chosen, others, lambda one: cutting.accumulation_loops(one, box), threads, cutting.tile.tuning)
