"""Winograd's algorithm cut for many threads (``cpu/cuts.py``): smaller boxes, more blocks of outputs or of the filter.

Given is what reaches a bit: tiles, chunks of fprop and dgrad, boxes and slices of wgrad.
"""

from itertools import product
from math import prod

from ..cuts import Tasks, best_cut, halves, shrinking
from ..tile import tile_cycles
from .costs import costs_of


class Cutting:
    """What the model knows of a step: sizes, and the costs of ``costs.py`` in cycles of the register tile."""

    def __init__(self, points, extents, added, groups, channels, outputs, batch, tile, strip):
        self.points, self.extents, self.added, self.groups = points, extents, added, groups
        self.channels, self.outputs, self.batch, self.tile, self.strip = channels, outputs, batch, tile, strip
        self.each = costs_of(tile).each

    def cost(self, name, product_name="product"):
        return self.each[name] / self.each[product_name]

    def boxes(self, images, box):
        """Of the step that has most."""
        return -(-self.batch // images) * max(
            prod(-(-extent // n) for extent, n in zip(extents, box, strict=True)) for extents in self.extents
        )

    def correlation_kinds(self, blocks, box):
        """The ``Tasks`` that multiply in fprop or dgrad."""
        tiles, channels = blocks.images * prod(box), self.channels * self.added
        bundles, parts = -(-self.groups // blocks.groups), -(-self.outputs // blocks.outputs)
        width = min(blocks.outputs, -(-blocks.groups * self.outputs // self.strip) * self.strip)
        products = channels * tile_cycles(tiles, min(width, self.outputs), self.tile, 4) * blocks.groups
        values = 0 if blocks.shared else tiles * channels * blocks.groups * self.cost("value")
        read = self.tile.tuning.read_part * self.cost("kept filter") if blocks.group else self.cost("filter")
        sums = tiles * width * (self.cost("sum") + self.cost("load") * -(-channels // blocks.chunk))
        cycles = self.points * (products + values + read * channels * width + sums)
        kinds = [Tasks(bundles * parts * self.boxes(blocks.images, box), cycles)]
        return kinds

    def accumulation_kinds(self, blocks, box):
        """The ``Tasks`` that multiply in wgrad."""
        tiles, boxes = blocks.images * prod(box), self.boxes(blocks.images, box) / blocks.slices
        chunk, outputs = min(blocks.chunk, self.channels), min(blocks.outputs, self.outputs)
        parts = -(-self.groups // blocks.groups) * -(-self.channels // chunk) * -(-self.outputs // outputs)
        name = "wgrad product"
        products = tiles * tile_cycles(chunk, outputs, self.tile, 4) * blocks.groups
        values = 0 if blocks.shared else tiles * (chunk + outputs) * blocks.groups * self.cost("wgrad value", name)
        loads = chunk * outputs * blocks.groups * self.cost("wgrad load", name)
        sums = chunk * outputs * blocks.groups * self.cost("wgrad sum", name)
        return [Tasks(parts * blocks.slices, self.points * (boxes * (products + values + loads) + sums))]


def cut_correlation(cutting, chosen, box, threads, box_of, kept_bytes):
    """(blocks, box) of fprop or dgrad for so many threads.

    ``box_of`` gives images and box of at most so many tiles. Transformed tiles are kept for more blocks of outputs, if
    they take at most ``kept_bytes``.
    """
    tuning = cutting.tile.tuning
    whole = chosen.images * prod(box)
    sizes = shrinking(whole, tuning, tuning.least_cut_tiles)

    def cut(block, size):
        images, extents = box_of(size)
        values = 4 * cutting.points * images * prod(extents) * cutting.channels * cutting.added * cutting.groups
        values *= cutting.boxes(images, extents)
        shared = chosen.shared or (chosen.groups == 1 and block < chosen.outputs and values <= kept_bytes)
        group = chosen.group and max(block, chosen.group // block * block)
        return chosen._replace(images=images, outputs=block, group=group, shared=shared), extents

    least = cutting.strip if chosen.groups == 1 else chosen.outputs
    others = (cut(*each) for each in product(halves(chosen.outputs, least), sizes))
    return best_cut((chosen, box), others, lambda one: cutting.correlation_kinds(*one), threads, tuning.cut_gain)


def cut_accumulation(cutting, chosen, box, threads, lanes, kept_bytes):
    """The blocks of wgrad for so many threads, with tiles kept for all blocks up to ``kept_bytes``."""
    if chosen.groups > 1:
        return chosen
    tiles = cutting.groups * chosen.images * prod(box) * cutting.boxes(chosen.images, box)
    widths = (
        -(-cutting.channels // chosen.chunk) * chosen.chunk,
        -(-cutting.outputs // chosen.outputs) * chosen.outputs,
    )
    shares = chosen.shared or 4 * cutting.points * tiles * sum(widths) <= kept_bytes
    chunks, blocks = halves(chosen.chunk, lanes), halves(chosen.outputs, lanes)
    others = (
        chosen._replace(chunk=chunk, outputs=block, shared=shared)
        for shared in {chosen.shared, shares}
        for chunk, block in product(chunks, blocks)
    )
    return best_cut(
        chosen, others, lambda one: cutting.accumulation_kinds(one, box), threads, cutting.tile.tuning.cut_gain
    )
