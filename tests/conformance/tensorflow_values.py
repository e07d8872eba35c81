"""Calls of TensorFlow's three operations that have a result: random ones and special ones."""

from typing import NamedTuple

DTYPES = ("float16", "bfloat16", "float32", "float64", "int32")


class Geometry(NamedTuple):
    """A convolution with sizes in the order of NHWC. ``y`` follows from the rest."""

    dtype: str
    batch: int
    channels: tuple  # channels of x, w and y
    x: tuple
    kernel: tuple
    stride: tuple
    dilation: tuple
    padding: str
    pads: tuple
    data_format: str

    @property
    def y(self):
        return tuple(map(self._output, range(2)))

    def _output(self, i):
        if self.padding == "SAME":
            return -(-self.x[i] // self.stride[i])
        extent = (self.kernel[i] - 1) * self.dilation[i] + 1
        return int((self.x[i] + sum(self.pads[i]) - extent + self.stride[i]) / self.stride[i])

    def plain_for(self, op):
        """Whether the plain kernel of an operation can compute it."""
        simple = max(self.dilation) == 1 and self.channels[0] == self.channels[1]
        return self.data_format == "NHWC" and (op == "C" or simple)

    @property
    def empty(self):
        return 0 in (self.batch, *self.channels, *self.x, *self.kernel, *self.y)

    def ordered(self, batch, spatial, channels):
        nchw = self.data_format == "NCHW"
        return (batch, channels, *spatial) if nchw else (batch, *spatial, channels)

    def shapes(self):
        x_channels, w_channels, y_channels = self.channels
        return {
            "x": self.ordered(self.batch, self.x, x_channels),
            "w": (*self.kernel, w_channels, y_channels),
            "y": self.ordered(self.batch, self.y, y_channels),
        }

    def attributes(self):
        written = {
            "strides": list(self.ordered(1, self.stride, 1)),
            "padding": self.padding,
            "data_format": self.data_format,
            "dilations": list(self.ordered(1, self.dilation, 1)),
        }
        if self.padding == "EXPLICIT":
            pairs = self.ordered((0, 0), self.pads, (0, 0))
            written["explicit_paddings"] = [pad for pair in pairs for pad in pair]
        return {name: repr(value) for name, value in written.items()}


def arguments(op, dtype, shapes, seed):
    """The tensors of a call, as expressions."""
    x, w, y = (f't("{dtype}", {shapes[name]}, {seed + i})' for i, name in enumerate("xwy"))
    if op == "C":
        return {"input": x, "filter": w}
    if op == "I":
        return {"input_sizes": repr(list(shapes["x"])), "filter": w, "out_backprop": y}
    return {"input": x, "filter_sizes": repr(list(shapes["w"])), "out_backprop": y}


def expression(op, written):
    return f"{op}({', '.join(f'{name}={value}' for name, value in written.items())})"


def draw_geometry(rng, op):
    """A convolution that exists."""
    while True:
        depth, multiplier, groups = rng.randint(1, 3), rng.randint(1, 3), rng.choice((1, 1, 1, 2, 3))
        padding = rng.choice(("SAME", "VALID", "EXPLICIT"))
        explicit = padding == "EXPLICIT"
        geometry = Geometry(
            dtype=rng.choice(DTYPES[:4] if op == "F" else DTYPES),
            batch=rng.choice((0, 1, 1, 1, 2, 3)),
            channels=(depth * groups, depth, multiplier * groups),
            x=(rng.randint(0, 9), rng.randint(1, 9)),
            kernel=(rng.randint(1, 5), rng.randint(1, 4)),
            stride=(rng.randint(1, 4), rng.randint(1, 3)),
            dilation=rng.choice(((1, 1), (1, 1), (1, 1), (2, 1), (1, 3), (2, 2))),
            padding=padding,
            pads=tuple((rng.randint(0, 6) * explicit, rng.randint(0, 3) * explicit) for _ in range(2)),
            data_format=rng.choice(("NHWC", "NHWC", "NCHW")),
        )
        if rng.random() < 0.05:
            geometry = geometry._replace(channels=(*geometry.channels[:2], 0))
        if min(geometry.y) < 0 or (geometry.empty and not geometry.plain_for(op)):
            continue  # there is no such call, or XLA gives its result a wrong shape
        if op == "F" and 0 in geometry.y and geometry.batch:
            continue  # the plain kernel may abort the process
        return geometry


def draw(rng):
    """A call with a result."""
    op = rng.choice("CIF")
    geometry = draw_geometry(rng, op)
    written = arguments(op, geometry.dtype, geometry.shapes(), rng.randrange(1000)) | geometry.attributes()
    if op == "I" and geometry.plain_for(op) and rng.random() < 0.2 and geometry.batch:
        written["input_sizes"] = repr(list(geometry.x))
    return expression(op, written)
