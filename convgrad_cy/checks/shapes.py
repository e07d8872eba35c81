"""The shapes of the three tensors of one convolution ``y = conv(x, w)``, and whether they agree.

The formulas are in ``problem``. The errors, in the caller's names, are here.
"""

from typing import Any, NamedTuple

from ..problem import conv_size, conv_transpose_size, same_padding


class Tensor(NamedTuple):
    """One of x, w, y: its sizes in the order (batch, channels, spatial) or (out, in, kernel).

    ``order[i]`` is the caller's axis of size ``i``. ``given`` says that the caller has an array of this shape.
    """

    name: str
    sizes: tuple
    order: tuple
    given: bool = False

    @property
    def shape(self):
        """The sizes in the caller's order."""
        return tuple(size for _, size in sorted(zip(self.order, self.sizes, strict=True)))

    def entry(self, i):
        """The caller's expression for size ``i``."""
        return f"{self.name + '.shape' if self.given else self.name}[{self.order[i]}]"

    def check_not_empty(self):
        for i, size in enumerate(self.sizes[2:], 2):
            if size < 1:
                raise ValueError(f"{self.entry(i)} must be at least 1, not {size}")


class Axis(NamedTuple):
    """One spatial axis; ``padding`` is a (begin, end) pair, "same_upper" or "same_lower"."""

    kernel: int
    stride: int
    dilation: int
    padding: Any

    @property
    def explicit(self):
        return type(self.padding) is tuple

    def geometry(self, x):
        """The arguments of the formulas in ``problem`` that follow the size: kernel, stride, dilation and padding."""
        *rest, padding = self
        return *rest, padding if self.explicit else same_padding(x, *rest, lower=padding == "same_lower")

    def transposed(self, y, output_padding):
        """The extent of x, which may be zero or negative."""
        return conv_transpose_size(y, *self, output_padding) if self.explicit else y * self.stride

    def __str__(self):
        return "kernel {}, stride {}, dilation {}, padding {}".format(*self)


def conv_extent(axis, x, i, output_padding=0):
    """The extent of y, if it is positive."""
    size = x.sizes[2 + i]
    y = conv_size(size - output_padding, *axis.geometry(size))
    if y < 1:
        less = f" less output_padding {output_padding}" if output_padding else ""
        raise ValueError(f"{x.entry(2 + i)} = {size}{less} is too small: a convolution of it has no output ({axis})")
    return y


def conv_transpose_extent(axis, y, i, output_padding):
    """The extent of x, if it is positive."""
    size = y.sizes[2 + i]
    if size < 1:
        raise ValueError(f"{y.entry(2 + i)} must be at least 1, not {size}")
    x = axis.transposed(size, output_padding)
    if x < 1:
        raise ValueError(f"{y.entry(2 + i)} = {size} is too small: the output's extent would be {x} ({axis})")
    return x


def check_conv_size(axis, x, y, i):
    """Check that y has the extent of the convolution of x."""
    expected, actual = conv_extent(axis, x, i), y.sizes[2 + i]
    if actual != expected:
        source = f"a convolution of {x.entry(2 + i)} = {x.sizes[2 + i]}"
        raise ValueError(f"{y.entry(2 + i)} must be {expected}, the extent of {source} ({axis}), not {actual}")


def check_conv_transpose_size(axis, x, y, i):
    """Check that x has an extent that the transposed convolution of y has with some output_padding."""
    if not axis.explicit:
        return check_conv_size(axis, x, y, i)
    source, actual = y.sizes[2 + i], x.sizes[2 + i]
    if source < 1:
        raise ValueError(f"{y.entry(2 + i)} must be at least 1, not {source}")
    first = conv_transpose_size(source, *axis)
    last = first + max(axis.stride, axis.dilation) - 1
    if not first <= actual <= last:
        expected = f"{first} to {last}" if last > first else f"{first}"
        of = f"a transposed convolution of {y.entry(2 + i)} = {source}"
        raise ValueError(f"{x.entry(2 + i)} must be {expected}, the extent of {of} ({axis}), not {actual}")


def check_output_padding(axis, x, y, i, output_padding):
    """Check that x has the extent that the transposed convolution of y has with this output_padding."""
    expected, actual = axis.transposed(y.sizes[2 + i], output_padding), x.sizes[2 + i]
    if actual != expected:
        of = f"a transposed convolution of {y.sizes[2 + i]} elements ({axis}) has {expected} with {output_padding}"
        raise ValueError(f"output_padding must agree with {x.entry(2 + i)} = {actual}: {of}")


def check_equal(asked, array):
    """Check that the shape that the caller asks for equals the shape of an array."""
    for i, (size, expected) in enumerate(zip(asked.sizes, array.sizes, strict=True)):
        if size != expected:
            raise ValueError(f"{asked.entry(i)} must be {array.entry(i)} = {expected}, not {size}")


def check_channels(groups, x, w, y):
    """Check that batch and channels of x, w and y agree. None stands for the result."""
    outs, ins = w.sizes[:2]
    if outs % groups:
        raise ValueError(f"{w.entry(0)} must be a multiple of groups = {groups}, not {outs}")
    if x is not None and x.sizes[1] != groups * ins:
        expected = f"groups * {w.entry(1)} = {groups} * {ins}"
        raise ValueError(f"{x.entry(1)} must be {expected}, not {x.sizes[1]}")
    if y is not None and y.sizes[1] != outs:
        raise ValueError(f"{y.entry(1)} must be {w.entry(0)} = {outs}, not {y.sizes[1]}")
    if x is not None and y is not None and x.sizes[0] != y.sizes[0]:
        raise ValueError(f"{x.entry(0)} must be {y.entry(0)} = {y.sizes[0]}, not {x.sizes[0]}")
