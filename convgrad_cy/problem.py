"""The geometry of a convolution, as plain integers.

Every size formula of the package is in this file and nowhere else. Ranks below three are three-dimensional
problems whose missing axes have extent one, so each formula is written for one axis.

The definition that everything derives from, for one group, with ``t`` running over the taps of the filter::

    y[n, o, p] = sum over i, t of  x[n, i, p * stride + t * dilation - pad_begin] * w[o, i, t]

A term whose position lies outside ``x`` does not exist (it is not zero times something).
"""

from dataclasses import dataclass, replace
from itertools import product
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from .phases import count_phases, first_taps

#: The operations: y from x and w, x from y and w, w from x and y.
FPROP, DGRAD, WGRAD = "fprop", "dgrad", "wgrad"

#: Sizes in bytes and positions stay below this, so that no sum or product of two of them leaves an int64.
INDEX_LIMIT = 2**62

#: A filter has fewer taps than this for each pair of channels, so that offsets within a window fit into 32 bits.
TAP_LIMIT = 2**24


def dilated_size(kernel, dilation):
    """Extent of a kernel whose taps are ``dilation`` apart."""
    return (kernel - 1) * dilation + 1


def conv_size(x, kernel, stride, dilation, padding):
    """Number of outputs along one axis; not positive where the kernel does not fit into the padded input."""
    return (x + sum(padding) - dilated_size(kernel, dilation)) // stride + 1


def conv_transpose_size(x, kernel, stride, dilation, padding, output_padding=0):
    """Extent of a transposed convolution's output along one axis: the smallest ``y`` with
    ``conv_size(y) == x``, plus ``output_padding``."""
    return (x - 1) * stride + dilated_size(kernel, dilation) - sum(padding) + output_padding


def reached_taps(x, y, kernel, stride, dilation, pad_begin):
    """(first, end) of the range of taps that meet an element of x at some position of y. It has at least one tap."""
    first = min(max(0, -(((y - 1) * stride - pad_begin) // dilation)), kernel - 1)
    return first, max(first + 1, min(kernel, (x - 1 + pad_begin) // dilation + 1))


def aligned_padding(x, y, kernel, stride, dilation, lower=False):
    """The (begin, end) padding with which the taps of ``y`` outputs span ``x``; (0, 0) where they span less than ``x``.

    An odd total puts the extra element at the end, or at the beginning if ``lower``.
    """
    total = max(0, (y - 1) * stride + dilated_size(kernel, dilation) - x)
    small, large = total // 2, total - total // 2
    return (large, small) if lower else (small, large)


def same_padding(x, kernel, stride, dilation, lower=False):
    """The (begin, end) padding for which ``conv_size`` is ``ceil(x / stride)``."""
    return aligned_padding(x, -(-x // stride), kernel, stride, dilation, lower)


class AxisWalk(NamedTuple):
    """How one axis of a correlation walks through its three tensors.

    Position ``p`` of ``positions`` and tap ``t`` of ``taps`` meet at::

        source[p * source_step + t * source_tap + source_begin]     if that lies in 0 .. source_size - 1
        filter[t * filter_step + filter_begin]
        target[p * target_step + target_begin]

    The fields have the order of ``conv_axis`` in ``include/convgrad/problem.h``.
    """

    positions: int
    taps: int
    source_size: int
    source_begin: int
    source_step: int
    source_tap: int
    target_begin: int
    target_step: int
    filter_begin: int
    filter_step: int

    def part(self, begin, end, tap, taps):
        """The walk of positions ``begin`` to ``end`` (exclusive) and of ``taps`` taps, beginning at ``tap``."""
        return AxisWalk(  # faster than _replace
            end - begin,
            taps,
            self.source_size,
            self.source_begin + begin * self.source_step + tap * self.source_tap,
            self.source_step,
            self.source_tap,
            self.target_begin + begin * self.target_step,
            self.target_step,
            self.filter_begin + tap * self.filter_step,
            self.filter_step,
        )

    def extremes(self, positions=None):
        """The least and the greatest index of the source that a tap of the first ``positions`` positions meets.

        The indices may be outside of the source. None stands for all positions.
        """
        reach, least = (self.taps - 1) * self.source_tap, self.source_begin
        greatest = least + ((self.positions if positions is None else positions) - 1) * self.source_step
        return (least + reach, greatest) if reach < 0 else (least, greatest + reach)

    def is_padded(self):
        """Whether some tap of some position lies outside of the source."""
        least, greatest = self.extremes()
        return self.taps > 0 and (least < 0 or greatest >= self.source_size)


def forward_axis(x, y, kernel, stride, dilation, pad_begin):
    """The walk of fprop and wgrad along one axis: source x, target y."""
    return AxisWalk(
        positions=y,
        taps=kernel,
        source_size=x,
        source_begin=-pad_begin,
        source_step=stride,
        source_tap=dilation,
        target_begin=0,
        target_step=1,
        filter_begin=0,
        filter_step=1,
    )


def backward_axis_rows(x, y, kernel, stride, dilation, pad_begin):
    """The walks of dgrad along one axis, source y and target x, one for each stride phase that a tap reaches.

    They are the rows of an array with the fields of ``AxisWalk``, because there may be thousands.

    x is the target at ``x = p * stride + t * dilation - pad_begin``. Taps whose ``t * dilation`` agree modulo
    the stride reach the same x, and every (stride / gcd(stride, dilation))-th tap does. Within such a phase x
    advances by the stride while y advances by one, so each phase is a correlation of unit step.
    """
    common = gcd(stride, dilation)
    filter_step = stride // common
    first = first_taps(x, kernel, stride, dilation, pad_begin) if min(kernel, filter_step) > 1 else 0
    begin = (first * dilation - pad_begin) % stride
    walk = AxisWalk(
        positions=-(-(x - begin) // stride),
        taps=-(-(kernel - first) // filter_step),
        source_size=y,
        source_begin=(begin + pad_begin - first * dilation) // stride,
        source_step=1,
        source_tap=-(dilation // common),
        target_begin=begin,
        target_step=stride,
        filter_begin=first,
        filter_step=filter_step,
    )
    rows = np.empty(
        (len(walk), np.size(first)), np.int64
    ).T  # one field after the other in memory, the order in which they are written
    for column, field in enumerate(walk):
        rows[:, column] = field
    return rows if x >= stride else rows[rows[:, 0] > 0]


def backward_axis_phases(*axis):
    """The rows of ``backward_axis_rows``, each as an ``AxisWalk``."""
    return [AxisWalk(*row) for row in backward_axis_rows(*axis).tolist()]


def empty_axis(x, y):
    """The walk along one axis that visits every x of dgrad with no tap at all."""
    return AxisWalk(
        positions=x,
        taps=0,
        source_size=y,
        source_begin=0,
        source_step=1,
        source_tap=0,
        target_begin=0,
        target_step=1,
        filter_begin=0,
        filter_step=1,
    )


def empty_axis_phases(x, y, stride, phases):
    """Walks without taps to every x of one axis that these phases omit: one for each remainder of the stride."""
    visited = {walk.target_begin for walk in phases}
    return [
        empty_axis(len(range(begin, x, stride)), y)._replace(target_begin=begin, target_step=stride)
        for begin in range(min(stride, x))
        if begin not in visited
    ]


@dataclass(frozen=True, slots=True)
class ConvProblem:
    """One convolution; its gradients are three views of the same problem.

    Channels are per group. ``x``, ``y``, ``kernel``, ``stride``, ``dilation`` and ``pad_begin`` are triples, one
    entry for each of the axes depth, height, width. The padding at the end is implied by ``y``.
    """

    batch: int
    groups: int
    x_channels: int
    y_channels: int
    x: tuple[int, int, int]
    y: tuple[int, int, int]
    kernel: tuple[int, int, int]
    stride: tuple[int, int, int] = (1, 1, 1)
    dilation: tuple[int, int, int] = (1, 1, 1)
    pad_begin: tuple[int, int, int] = (0, 0, 0)

    @property
    def axes(self):
        """For each axis, the arguments of the functions above: x, y, kernel, stride, dilation, padding at the begin."""
        return zip(self.x, self.y, self.kernel, self.stride, self.dilation, self.pad_begin, strict=True)

    def reached_taps(self):
        """The ``reached_taps`` of each axis."""
        return [reached_taps(*axis) for axis in self.axes]

    def forward_walk(self):
        """The three axis walks of fprop (x to y) and wgrad (x and y to w)."""
        return tuple(forward_axis(*axis) for axis in self.axes)

    def count_backward_phases(self):
        """Number of combinations of the ``backward_phases``."""
        return prod(count_phases(x, *axis) for x, _, *axis in self.axes)

    def backward_phases(self):
        """For each axis, the walks of dgrad (y to x): one for each stride phase that a tap reaches."""
        return [backward_axis_phases(*axis) for axis in self.axes]

    def complete_backward_phases(self):
        """``backward_phases`` and walks without taps for the omitted x. Their combinations visit every x once."""
        axes = zip(self.x, self.y, self.stride, self.backward_phases(), strict=True)
        return [phases + empty_axis_phases(x, y, stride, phases) for x, y, stride, phases in axes]

    def backward_rows(self):
        """``backward_phases`` as one array of rows for each axis."""
        return [backward_axis_rows(*axis) for axis in self.axes]

    def unreached_walk(self, rows=None):
        """The walk without taps that visits every x of dgrad, or None where the phases visit every x.

        ``rows`` are the ``backward_rows``, if the caller has them already.
        """
        visited = tuple(int(axis[:, 0].sum()) for axis in rows or self.backward_rows())
        return None if visited == self.x else tuple(empty_axis(x, y) for x, y in zip(self.x, self.y, strict=True))

    def backward_walks(self):
        """The walks of dgrad (y to x): one triple for each combination of stride phases that a tap reaches.

        If the phases do not visit every x, the first triple is a walk without taps, which writes zeros.
        """
        unreached = self.unreached_walk()
        return ([] if unreached is None else [unreached]) + list(product(*self.backward_phases()))

    def is_pointwise(self):
        """Whether each position of y depends on the same position of x alone."""
        return self.kernel == self.stride == (1, 1, 1) and self.pad_begin == (0, 0, 0) and self.x == self.y

    def merged(self):
        """A pointwise problem as a problem with one spatial axis."""
        return replace(self, x=(1, 1, prod(self.x)), y=(1, 1, prod(self.y)))

    def channels(self, backward=False):
        """The channels of an operation's source and target: x and y, or y and x if ``backward``."""
        return (self.y_channels, self.x_channels) if backward else (self.x_channels, self.y_channels)

    @property
    def has_products(self):
        """Whether x, w and y all have elements. Otherwise the result of each operation is zeros or empty."""
        return self.multiplications > 0 and 0 not in self.x

    @property
    def multiplications(self):
        """Products in the sums of any of the three operations, padding counted as data."""
        return self.batch * self.groups * self.x_channels * self.y_channels * prod(self.kernel) * prod(self.y)


def is_one_axis(view):
    """Whether the spatial axes of a six-dimensional view can be merged into one axis."""
    *_, depth, height, width = view.strides
    return height == width * view.shape[5] and depth == height * view.shape[4]


def balanced_size(extent, limit, multiple=1):
    """The size of the nearly equal blocks of at most ``limit`` elements into which an extent is divided.

    It is then rounded up to a multiple of ``multiple``, unless that exceeds the extent. It is at least one.
    """
    if 1 <= extent <= limit:  # one block; for speed
        return extent
    count = -(-extent // max(limit, multiple, 1))
    size = -(-extent // max(count, 1))
    return max(1, min(extent, -(-size // multiple) * multiple))


def lift(values, fill):
    """One entry per spatial axis, extended at the front to three axes."""
    values = tuple(values)
    return (fill,) * (3 - len(values)) + values
