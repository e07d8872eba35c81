"""How a step reads its operands, where more than one way gives the same bits.

What is legal, at the addresses and strides of a call, ``pyx/`` asks.
"""

from math import prod

from ..machines import LINE_BYTES
from ..steps import Reads, same_reads


def _pays(walk, window, blocks, tuning):
    """Whether a window of several taps is faster than its source, for many outputs.

    Of many positions, tiles would read scattered places once for each strip of outputs. A copy reads them once, which
    pays if taps share elements or positions skip some.
    """
    depth, height, width = walk
    taps, positions = depth.taps * height.taps * width.taps, prod([axis.positions for axis in window])
    shared = taps * positions > tuning.window_reads * prod([axis.extent for axis in window])
    many = blocks.positions_across or blocks.images * positions > tuning.few_positions
    return taps > 1 and many and (shared or width.source_step > 1)


def correlation_reads(case, blocks):
    """What a step of fprop or dgrad with a walk and a window has for its ``Reads``."""
    pays = blocks.outputs >= case.tuning.window_outputs
    most = case.tuning.strip_reads * case.tile.tile_rows if blocks.packs and not blocks.pairs else 0
    if not pays and not most:
        return same_reads(Reads())

    def reads(walk, window):
        strips = blocks.images * prod([axis.positions for axis in window]) <= most
        return Reads(pays and _pays(walk, window, blocks, case.tuning), strips=strips)

    return reads


def accumulation_reads(case):
    """The same of wgrad.

    A tile walks along a few rows of the window. With adjacent positions it reads these few lines alone, and taps of one
    channel share them. To transpose channels last is worth that where there are taps to share, channels to make squares
    of, narrow vectors, so that products take longer than copies, and elements of 4 bytes: others would be moved one by
    one.
    """
    wide = case.tile.vector_bytes >= LINE_BYTES or case.itemsize != 4
    if wide or case.channels < case.tuning.transposed_channels:
        return same_reads(Reads(channels_inside=True))

    def reads(walk, window):
        return Reads(channels_inside=prod([axis.taps for axis in walk]) == 1)

    return reads
