"""Legal geometries drawn at random, most of them extreme. A planner has to accept each of them."""

from math import exp, log, prod
from typing import NamedTuple

from operations import OPERATIONS

from convgrad_cy.dtypes import NAMES
from convgrad_cy.phases import count_phases
from convgrad_cy.problem import TAP_LIMIT, conv_size, dilated_size

#: Most elements of an array. The arrays and copies take only addresses that nobody touches.
MOST_ELEMENTS = 1 << 26
#: (tile rows, bytes of a tile's columns, bytes of a vector, pairs of bfloat16), as in pyx/tile/ukernel.h.
TILES = ((6, 256, 64, 2), (6, 256, 64, 1), (6, 256, 64, 0), (6, 64, 32, 0), (4, 32, 16, 0))


class Axis(NamedTuple):
    """The sizes of one spatial axis."""

    x: int
    y: int
    kernel: int
    stride: int
    dilation: int
    padding: tuple


class Drawn(NamedTuple):
    """A call of ``explain``, and the fields of the machine that it is planned for.

    ``phases``: the stride's phases in a data gradient. ``taps``: the filter's taps in its gradient.
    """

    function: str
    shapes: tuple
    dtype: str
    keywords: dict
    machine: dict
    phases: int
    taps: int


def _size(random, most):
    """A size from 1 on; small sizes are as likely as large ones."""
    return 1 if random.random() < 0.125 else int(exp(random.uniform(0, log(most + 1))))


def _size_or_none(random, most):
    """A size; one in fifty is 0."""
    return 0 if random.random() < 0.02 else _size(random, most)


def _axis(random):
    """An axis. The extremes are long filters, long strides, dilations and paddings, an empty x, and one position."""
    most_x, most_kernel, most_stride, most_dilation, most_y = random.choice(
        (
            (20, 7, 4, 3, 20),
            (300, 12, 2, 1, 300),
            (40, 3000, 3, 4, 40),
            (100_000, 4, 1, 2, 100_000),
            (2000, 300, 400, 2, 60),
            (10_000, 9, 1 << 40, 1, 3),
            (60, 9, 3, 1 << 40, 30),
            (3, 30, 30, 30, 3),
            (3_000_000, 9, 500_000, 3, 9),
            (1, 1, 1, 1, 1),
        )
    )
    x, y = _size_or_none(random, most_x), _size(random, most_y)
    kernel, stride, dilation = (_size(random, most) for most in (most_kernel, most_stride, most_dilation))
    if random.random() < 0.3:  # a kernel as large as its stride, or an even multiple of it
        kernel, dilation = stride * random.choice((1, 1, 2, 3)), 1
        kernel = kernel if kernel < TAP_LIMIT else 1
    total = (y - 1) * stride + dilated_size(kernel, dilation) - x + random.choice((0, 0, random.randrange(stride)))
    if total <= 0:
        total = random.choice((0, 0, _size(random, 5)))
        y = conv_size(x, kernel, stride, dilation, (total, 0))
    begin = random.choice((0, total, total // 2, total // 2, random.randint(0, total)))
    return Axis(x, y, kernel, stride, dilation, (begin, total - begin))


def _patch_axis(random):
    """An axis whose filter is as large as its stride or larger, and sees no padding."""
    stride = random.randint(2, 24)
    kernel, y = stride * random.choice((1, 1, 2)) + random.choice((0, 0, 3)), random.randint(4, 40)
    return Axis((y - 1) * stride + kernel, y, kernel, stride, 1, (0, 0))


def _is_small(shape):
    return prod(size or 1 for size in shape) <= MOST_ELEMENTS


def _problem(random):
    """(axes, groups, shapes of x, w and y in NCX and OIX)."""
    while True:
        patches = random.random() < 0.05
        axes = [(_patch_axis if patches else _axis)(random) for _ in range(random.choice((1, 2, 2, 2, 3)))]
        x, y, kernel, *_ = zip(*axes, strict=True)
        groups = random.choice((1, 1, 1, 1, 2, 3, 8, 16, 33, _size(random, 600)))
        batch, ins, outs = (_size_or_none(random, most) for most in (64, 512, 512))
        if patches:
            groups, ins, outs = 1, random.randint(1, 4), 64 * random.randint(1, 8)
        for scale in (1, 8, 512):
            few = [-(-size // scale) for size in (batch, ins, outs)]
            shapes = (few[0], groups * few[1], *x), (groups * few[2], few[1], *kernel), (few[0], groups * few[2], *y)
            if min(y) > 0 and prod(kernel) < TAP_LIMIT and all(map(_is_small, shapes)):
                return axes, groups, shapes


def _in_format(shape, is_filter, last):
    """A shape in NCX or OIX, or with the channels last."""
    if not last:
        return shape
    return (*shape[2:], shape[1], shape[0]) if is_filter else (shape[0], *shape[2:], shape[1])


def draw(random):
    """A ``Drawn``. Some are refused because their function does not take them, or an algorithm cannot compute them."""
    axes, groups, shapes = _problem(random)
    name, (channels_last, filter_last) = random.choice([*OPERATIONS]), random.choices((False, True), k=2)
    each = zip("xwy", shapes, (channels_last, filter_last, channels_last), strict=True)
    shapes = {tensor: _in_format(shape, tensor == "w", last) for tensor, shape, last in each}
    *_, stride, dilation, padding = zip(*axes, strict=True)
    keywords = {
        "stride": stride,
        "dilation": dilation,
        "padding": padding,
        "groups": groups,
        "data_format": "NXC" if channels_last else "NCX",
        "filter_format": "XIO" if filter_last else "OIX",
        "algorithm": random.choice(("auto", "auto", "direct", "winograd")),
    }
    asked = {"conv_backward_data": "x_shape", "conv_transpose": "output_shape"}.get(name, "w_shape")
    operation = OPERATIONS[name]
    if name not in ("conv", "conv_transpose_backward_data"):
        keywords[asked] = shapes[operation.makes]
    names = ("tile_rows", "tile_column_bytes", "vector_bytes", "multiplies_pairs")
    machine = dict(zip(names, random.choice(TILES), strict=True))
    machine["threads"] = random.choice((1, 2, 2, 7, 16, 64, 256))
    machine["scratch_bytes"] = random.choice((None, None, 0, 4096, 1 << 20))
    phases = prod(count_phases(axis.x, *axis[2:5], axis.padding[0]) for axis in axes) if operation.makes == "x" else 1
    taps = prod(axis.kernel for axis in axes) if operation.makes == "w" else 1
    read = tuple(shapes[part] for part in operation.reads)
    return Drawn(name, read, random.choice(NAMES), keywords, machine, phases, taps)
