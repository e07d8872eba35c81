"""One layer as all processes of the benchmark see it: plain values, and the two layouts of its tensors.

Workers run in the environments of other libraries, so this file needs NumPy alone, not the package.
"""

from dataclasses import asdict, dataclass
from math import prod

import numpy as np

KERNELS = ("fprop", "dgrad", "wgrad")
LAYOUTS = ("NCX", "NXC")
DTYPES = ("float16", "bfloat16", "float32", "float64", "int32")

#: The function that a user calls, by (the layer is a transposed convolution, kernel).
FUNCTIONS = {
    (False, "fprop"): "conv",
    (False, "dgrad"): "conv_backward_data",
    (False, "wgrad"): "conv_backward_filter",
    (True, "dgrad"): "conv_transpose",
    (True, "fprop"): "conv_transpose_backward_data",
    (True, "wgrad"): "conv_transpose_backward_filter",
}


class Unsupported(Exception):
    """A library lacks the operation; the text is the reason."""


@dataclass(frozen=True)
class Case:
    """A convolution in one layout and type. Shapes are written as NCX and OIX in any layout.

    ``padding`` holds (begin, end) pairs. ``transposed`` says that the network uses the layer as a transposed
    convolution. Its forward operation is then dgrad, and y is its input.
    """

    name: str
    groups: int
    x: tuple
    w: tuple
    y: tuple
    stride: tuple
    dilation: tuple
    padding: tuple
    transposed: bool
    layout: str
    dtype: str

    @classmethod
    def from_message(cls, message):
        """The case of a decoded JSON object: lists become tuples again."""
        return cls(**{key: deep_tuple(value) for key, value in message.items()})

    def message(self):
        return asdict(self)

    @property
    def rank(self):
        return len(self.stride)

    @property
    def kernel(self):
        return self.w[2:]

    @property
    def channels_last(self):
        return self.layout == "NXC"

    def shape(self, kernel):
        """Shape of a kernel's result."""
        return {"fprop": self.y, "dgrad": self.x, "wgrad": self.w}[kernel]

    def laid_out(self, name):
        """The shape of "x", "w" or "y" as an array in the layout."""
        outer, inner, *axes = getattr(self, name)
        if not self.channels_last:
            return (outer, inner, *axes)
        return (*axes, inner, outer) if name == "w" else (outer, *axes, inner)

    @property
    def itemsize(self):
        # NumPy alone does not know bfloat16.
        return 2 if self.dtype == "bfloat16" else np.dtype(self.dtype).itemsize

    @property
    def bytes(self):
        """Bytes of the three tensors together. Each of the kernels has to read or write all of them."""
        return (prod(self.x) + prod(self.w) + prod(self.y)) * self.itemsize

    def function(self, kernel):
        return FUNCTIONS[self.transposed, kernel]

    @property
    def flop(self):
        """Useful operations of each of the three kernels. Products with padding do not count."""
        reached = 1
        axes = zip(self.x[2:], self.y[2:], self.kernel, self.stride, self.dilation, self.padding, strict=True)
        for x, y, kernel, stride, dilation, (begin, _) in axes:
            positions = np.arange(y)[:, None] * stride + np.arange(kernel) * dilation - begin
            reached *= int(((positions >= 0) & (positions < x)).sum())
        return 2 * self.x[0] * self.y[1] * self.w[1] * reached


def deep_tuple(value):
    return tuple(map(deep_tuple, value)) if isinstance(value, list) else value


def activation_in(layout, array):
    """A batch written as NCX, in the memory order of ``layout``."""
    return np.ascontiguousarray(np.moveaxis(array, 1, -1) if layout == "NXC" else array)


def filter_in(layout, array):
    """A filter written as OIX, in the memory order that goes with ``layout``: XIO if channels are last."""
    return np.ascontiguousarray(np.moveaxis(array, (0, 1), (-1, -2)) if layout == "NXC" else array)


def written_plainly(layout, kernel, array):
    """The result of a kernel in ``layout``, as NCX or OIX again."""
    if layout == "NCX":
        return array
    return np.moveaxis(array, (-1, -2), (0, 1)) if kernel == "wgrad" else np.moveaxis(array, -1, 1)
