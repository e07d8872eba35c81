"""Blocks of one axis: a block of a result reads a block of the source and its halo.

The arguments ``x, y, kernel, stride, dilation, pad_begin`` of an axis are the fields of ``ConvProblem``. Blocks of x
begin at multiples of the stride. So a block of x belongs to the block of y that begins at this position over the
stride. An axis can be cut if its padding is less than the extent of the kernel.
"""

from itertools import pairwise
from typing import NamedTuple

from ..problem import dilated_size


class AxisBlock(NamedTuple):
    """The part of the source's block with its halo that a block of the result reads, and the padding of this part."""

    begin: int
    end: int
    pad_begin: int
    pad_end: int
    size: int  # of the block of the result; 0 if the source's block gives no element of it


def forward_halo(x, y, kernel, stride, dilation, pad_begin):
    """Elements of x before and after a block that the same block of y reads."""
    return pad_begin, max(dilated_size(kernel, dilation) - stride - pad_begin, 0)


def backward_halo(x, y, kernel, stride, dilation, pad_begin):
    """Elements of y before and after a block that reach the same block of x."""
    return (dilated_size(kernel, dilation) - 1 - pad_begin) // stride, -(-pad_begin // stride)


def forward_blocks(edges, x, y, kernel, stride, dilation, pad_begin):
    """The blocks of y for the blocks of x between ``edges``."""
    before, after = forward_halo(x, y, kernel, stride, dilation, pad_begin)
    targets = [*(min(edge // stride, y) for edge in edges[:-1]), y]
    for (begin, end), (first, last) in zip(pairwise(edges), pairwise(targets), strict=True):
        low, high = max(begin - before, 0), min(end + after, x)  # of the block with its halo
        least = first * stride - pad_begin  # the positions read least to most
        most = (last - 1) * stride - pad_begin + dilated_size(kernel, dilation)
        yield AxisBlock(
            begin=max(least, low) - low,
            end=min(most, high) - low,
            pad_begin=max(low - least, 0),
            pad_end=max(most - high, 0),
            size=last - first,
        )


def backward_blocks(edges, x, y, kernel, stride, dilation, pad_begin):
    """The blocks of x for the blocks of y between ``edges``."""
    (before, _), extent = backward_halo(x, y, kernel, stride, dilation, pad_begin), dilated_size(kernel, dilation)
    targets = [*(min(edge * stride, x) for edge in edges[:-1]), x]
    for (begin, _), (first, last) in zip(pairwise(edges), pairwise(targets), strict=True):
        low = max(begin - before, 0)  # of the block with its halo
        # The first position that reaches the block; it begins no later than the block, even if it does not reach it.
        least = max(min(-((extent - 1 - first - pad_begin) // stride), (first + pad_begin) // stride), 0)
        most = min((last - 1 + pad_begin) // stride, y - 1)
        pad = first + pad_begin - least * stride
        yield AxisBlock(
            begin=least - low,
            end=most + 1 - low,
            pad_begin=pad,
            pad_end=max((most - least) * stride + extent - (last - first) - pad, 0),
            size=last - first,
        )
