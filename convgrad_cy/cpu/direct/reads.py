"""The choice between ways to read operands. It does not affect the result's bits.

The kernels (``pyx/``) test which ways are possible with the addresses and strides of a call.
"""

from math import prod

from ..machine import LINE_BYTES
from ..plan.steps import Reads, same_reads


def _pays(walk, window, blocks, tuning):
    """Whether tiles read faster from a window than from the source itself, if there are many outputs.

    With many positions, tiles would read scattered addresses again for each strip of outputs. The copy to a window
    reads them once. It pays if taps share elements or if positions are strided.
    """
    depth, height, width = walk
    taps, positions = depth.taps * height.taps * width.taps, prod([axis.positions for axis in window])
    shared = taps * positions > tuning.window_reads * prod([axis.extent for axis in window])
    many = blocks.positions_across or blocks.images * positions > tuning.few_positions
    return taps > 1 and many and (shared or width.source_step > 1)


def correlation_reads(sums, blocks):
    """A function that gives the ``Reads`` of a step of fprop or dgrad, from its walk and its window."""
    pays = blocks.outputs >= sums.tuning.window_outputs
    most = sums.tuning.strip_reads * sums.tile.tile_rows if blocks.packs and not blocks.pairs else 0
    if not pays and not most:
        return same_reads(Reads())

    def reads(walk, window):
        strips = blocks.images * prod([axis.positions for axis in window]) <= most
        return Reads(pays and _pays(walk, window, blocks, sums.tuning), strips=strips)

    return reads


def accumulation_reads(sums):
    """A function that gives the ``Reads`` of a step of wgrad, from its walk and its window.

    A tile reads along a few rows of the window. With adjacent positions these are few cache lines, which the taps of a
    channel share. A channels-last source must be transposed for this. It pays with several taps, with enough channels
    for square transpositions, with narrow vectors (products then take longer than copies), and with elements of 4
    bytes (others would be copied one by one).
    """
    wide = sums.tile.vector_bytes >= LINE_BYTES or sums.itemsize != 4
    if wide or sums.channels < sums.tuning.transposed_channels:
        return same_reads(Reads(channels_inside=True))

    def reads(walk, window):
        return Reads(channels_inside=prod([axis.taps for axis in walk]) == 1)

    return reads
