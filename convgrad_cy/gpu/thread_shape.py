"""The work of one thread of the kernels for few channels: the macros of ``window.cuh`` and their choice."""

from itertools import product
from typing import NamedTuple

#: Registers of 4 bytes that a thread has for its window and sums, and in wgrad for a strip of gradients. A thread has
#: 128 registers if two blocks of 256 threads share a multiprocessor. Several inputs need some for offsets and weights.
_REGISTERS, _REGISTERS_OF_GROUPS = 72, 70
#: Architecture -> reduction of these numbers: its compiler needs more registers for the rest.
_FEWER = {80: 6}
#: Register factor of a window of 16-bit elements, because some elements are widened at a time.
_WIDENED = 1.5
#: Most registers for sums: of positions, and of wgrad, whose code has each sum twice.
_SUMS, _FILTER_SUMS = 32, 48
#: Instructions around a load: the address and the bounds check.
_AROUND = 4
_MOST_POSITIONS = 8


class Shape(NamedTuple):
    """The macros as fields, in small letters."""

    channels_last: bool
    channels: int
    positions: int
    taps: int
    step: int
    tap: int
    spaced: bool
    out: int
    ins: int
    source_vector: int = 1
    target_vector: int = 1
    shift: int = 0

    @property
    def inputs(self):
        """Number of channels of the source that the outputs of a thread read."""
        return max(1, self.channels // self.out) * self.ins

    @property
    def extent(self):
        """Number of elements along W in a window."""
        return (self.positions - 1) * self.step + (self.taps - 1) * abs(self.tap) + 1

    def macros(self):
        names = {"ins": "IN"}
        return {names.get(name, name.upper()): int(value) for name, value in self._asdict().items()}

    def fits(self, dtype, arch, sums_of_filter):
        """Whether it fits into the registers: the window in the storage type, all else in the compute type."""
        words = dtype.compute_itemsize // 4
        window = self.extent * (self.inputs if self.channels_last else 1) * dtype.itemsize / 4
        window *= _WIDENED if dtype.itemsize < dtype.compute_itemsize else 1
        outputs = self.positions * self.channels
        sums = self.taps * self.channels * self.ins if sums_of_filter else outputs
        gradients = outputs if sums_of_filter else 0
        most = (_REGISTERS if self.ins == 1 else _REGISTERS_OF_GROUPS) - _FEWER.get(arch, 0)
        most_sums = _FILTER_SUMS if sums_of_filter else _SUMS
        return window + (sums + gradients) * words <= most and sums * words <= most_sums

    def cost(self, taps, itemsize, sums_of_filter):
        """Cycles of loads for each output and row of taps.

        A load of 32 threads takes a pass for each 128 bytes between the elements of the first and the last thread.
        Threads of neighbouring channels are a vector apart, threads of neighbouring positions a strip.
        """
        windows = -(-taps // self.taps)
        if self.channels_last:
            loads, apart = self.extent * self.inputs / self.source_vector, self.source_vector * itemsize
        else:
            length = -(-(self.shift + self.extent) // self.source_vector) * self.source_vector
            loads, apart = length * self.ins / self.source_vector, self.positions * self.step * itemsize
        if sums_of_filter:
            loads += self.positions * self.channels / self.target_vector
        return windows * loads * (max(1, apart / 4) + _AROUND) / (self.positions * self.channels)


def channel_stride(operand):
    """The stride from a channel to the next one, through all groups."""
    return operand.strides[2] if operand.shape[2] > 1 else operand.strides[1]


def shape_of(task, width, sums_of_filter=False):
    """The cheapest shape for the walks of axis W, or None.

    It is None only if ``sums_of_filter`` is set, for many channels in float64. Otherwise one output and one tap fit.
    """
    itemsize = task.dtype.itemsize
    ins, out = task.source.shape[2], task.target.shape[2]
    channels, row = task.problem.groups * out, max(walk.positions for walk in width)
    longest = max(1, *(walk.taps for walk in width))
    reached = next((walk for walk in width if walk.taps), width[0])
    step, tap = reached.source_step, reached.source_tap
    last = channels > 1 and (row == 1 or abs(channel_stride(task.source)) < abs(task.source.strides[5]))
    most = 16 // itemsize
    counts = [n for n in _powers(most) if channels % n == 0 and (out % n == 0 or (last and n % out == 0))]
    reaches = [(taps, step, tap, False) for taps in range(1, longest + 1)]
    if step > 1:
        reaches.append((1, 1, 1, True))
    shapes = [
        _with_vectors(task, width, Shape(last, count, positions, *reach, out, ins), longest)
        for count, positions, reach in product(counts, _powers(min(_MOST_POSITIONS, 2 * row - 1)), reaches)
    ]
    fitting = [shape for shape in shapes if shape.fits(task.dtype, task.device.arch, sums_of_filter)]
    return min(
        fitting, key=lambda shape: (shape.cost(longest, itemsize, sums_of_filter), -shape.channels), default=None
    )


def _powers(most):
    """1, 2, 4 ... up to ``most``."""
    return [1 << i for i in range(most.bit_length())]


def _with_vectors(task, width, shape, longest):
    """The shape with the widest aligned accesses to the source and to the target."""
    most = 16 // task.dtype.itemsize
    if shape.channels_last:
        source = _widest(task.source, (1, 2), channel_stride(task.source), shape.inputs, most)
        target = _widest(task.target, (1, 2), channel_stride(task.target), shape.channels, most)
        return shape._replace(source_vector=source, target_vector=target)
    target, source, shift = 1, 1, 0
    if all(walk.target_step == 1 and walk.target_begin == 0 for walk in width):
        rows = [walk.positions for walk in width]
        target = min(
            _widest(task.target, (5,), task.target.strides[5], size, most) for size in [shape.positions, *rows]
        )
    if not shape.spaced and shape.taps == longest:
        # The distances between windows are multiples of positions * step.
        strip = shape.positions * shape.step
        sizes = [strip, *(walk.source_size for walk in width)]
        source = min(_widest(task.source, (5,), task.source.strides[5], size, most) for size in sizes)
        begins = {
            (walk.source_begin + min(0, (shape.taps - 1) * walk.source_tap)) % source for walk in width if walk.taps
        } or {0}
        source, shift = (1, 0) if len(begins) > 1 else (source, begins.pop())
    return shape._replace(source_vector=source, target_vector=target, shift=shift)


def _widest(operand, axes, stride, size, most):
    """The widest vector, a power of two of elements, along some axes whose elements are ``stride`` apart.

    It is aligned at all indices along these axes that are multiples of it. ``size`` must be such a multiple.
    """
    if stride != 1 or not operand.aligned:
        return 1
    others = [s for i, (s, n) in enumerate(zip(operand.strides, operand.shape, strict=True)) if i not in axes and n > 1]
    return max(v for v in _powers(most) if size % v == 0 and not any(other % v for other in others))
