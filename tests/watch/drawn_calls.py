"""Legal calls of all functions and shims on small problems, drawn at random, each with its required result."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from operations import DTYPES, OPERATIONS, PAIRS, dtype_of, to_formats
from problems import Problem

import convgrad_cy as cg
from convgrad_cy.shims import cupy_cudnn, mindspore, onednn, tensorflow

#: Exceptions that each library may raise. All of them document TypeError and ValueError.
CORE = (TypeError, ValueError)
MINDSPORE = (TypeError, ValueError, RuntimeError)
TENSORFLOW = (TypeError, ValueError, tensorflow.errors.OpError)
ONEDNN = (onednn.GraphError,)
CUDNN = (TypeError, ValueError)
MOST_PRODUCTS, MORE_PRODUCTS = 200_000, 6_000_000


@dataclass
class DrawnCall:
    """A call that has not been made yet.

    ``construct``: keywords with which a shim's operation is made first. ``makes``: the part of the convolution that is
    the result, in the order ``formats``. ``out`` is the array that the result is written to, or None.
    """

    name: str
    function: Callable
    raises: tuple
    problem: Problem
    tensors: dict  # x, w, y in NCX and OIX
    makes: str
    formats: tuple
    args: list = field(default_factory=list)
    keywords: dict = field(default_factory=dict)
    construct: dict | None = None
    out: Any = None
    changes: list = field(default_factory=list)  # the changes that make the call different from a legal one
    exact: bool = True  # the direct algorithm
    exchanged: bool = False  # the result's channel axes

    def run(self):
        function = self.function if self.construct is None else self.function(**self.construct)
        result = function(*self.args, **self.keywords)
        return self.out if result is None else result

    def slots(self):
        """All arguments: (the list or dict, the key)."""
        for values in (self.args, self.keywords, self.construct or {}):
            keys = range(len(values)) if isinstance(values, list) else list(values)
            yield from ((values, key) for key in keys)


def _integer(random, most, least=1):
    return least + min(random.randrange(most - least + 1), random.randrange(most - least + 1))


def draw_problem(random, rank, symmetric=False):
    """A problem of few products; one in fifty has many more."""
    many = random.random() < 0.02
    while True:
        taps = 5 if rank < 3 else 3
        kernel, stride, dilation = ([_integer(random, most) for _ in range(rank)] for most in (taps, 4, 3))
        y = [_integer(random, 40 if many else 9) for _ in range(rank)]
        begin = [_integer(random, 5, 0) for _ in range(rank)]
        end = begin if symmetric else [_integer(random, 5, 0) for _ in range(rank)]
        extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        rest = [random.randrange(s) for s in stride]
        parts = zip(y, stride, extent, begin, end, rest, strict=True)
        x = [(n - 1) * s + e - b - f + r for n, s, e, b, f, r in parts]
        groups = random.choice((1, 1, 1, 1, 2, 3, 8, 16, 33))
        ins, outs = (_integer(random, 64 if many else 9 if groups < 8 else 3) for _ in range(2))
        batch = 0 if random.random() < 0.02 else _integer(random, 4)
        products = max(1, batch) * groups * ins * outs * prod(y) * prod(kernel)
        if min(x) >= 1 and products <= (MORE_PRODUCTS if many else MOST_PRODUCTS) and prod(x) * groups < 100_000:
            padding = tuple(zip(begin, end, strict=True))
            shapes = (tuple(x), tuple(y), tuple(kernel), tuple(stride), tuple(dilation))
            return Problem("drawn", batch, groups, groups * ins, groups * outs, *shapes, padding)


def draw_tensors(problem, dtype, seed):
    """x, w and y by name."""
    numbers, scale = np.random.default_rng(seed), 10 if dtype == "int32" else 1
    shapes = {"x": problem.x_shape, "w": problem.w_shape, "y": problem.y_shape}
    kind = dtype_of(dtype) if isinstance(dtype, str) else dtype

    def drawn(shape):
        return (numbers.standard_normal(shape) * scale).astype(kind)

    tensors = {part: drawn(shape) for part, shape in shapes.items()}
    if kind.kind == "c":
        tensors = {part: (array + 1j * drawn(array.shape)).astype(kind) for part, array in tensors.items()}
    return tensors


def _array(call, part, filter_format=None):
    array = call.tensors[part]
    formats = (call.formats[0], filter_format or call.formats[1])
    return np.ascontiguousarray(to_formats(part, array, *formats))


def _target(array):
    """An array like this one, for a result."""
    made = np.empty(array.shape, array.dtype)
    made.view(np.uint8)[...] = 0xA5
    return made


def _spelling(random, values):
    """One integer for all axes if they are equal, or a tuple or a list."""
    if len(set(values)) == 1 and not isinstance(values[0], tuple) and random.random() < 0.5:
        return values[0]
    return random.choice((tuple, list))(values)


def draw_core(random, seed):
    """One of the functions of the core."""
    name = random.choice((*OPERATIONS, *PAIRS))
    problem = draw_problem(random, random.choice((1, 2, 2, 2, 3)))
    dtype = random.choice(DTYPES)
    operation = OPERATIONS.get(name)
    formats = random.choice(("NCX", "NXC")), random.choice(("OIX", "XIO"))
    makes = operation.makes if operation else PAIRS[name][1:]
    call = DrawnCall(name, getattr(cg, name), CORE, problem, draw_tensors(problem, dtype, seed), makes, formats)
    call.args = [_array(call, part) for part in (operation.reads if operation else PAIRS[name])]
    made = [_target(_array(call, part)) for part in call.makes]
    if name in ("conv_backward_data", "conv_backward_filter", "conv_transpose_backward_filter"):
        call.args.append(random.choice((tuple, list))(made[0].shape))
    padding = [b if b == e and random.random() < 0.5 else (b, e) for b, e in problem.padding]
    if any(isinstance(pad, tuple) for pad in padding):
        padding = problem.padding
    call.keywords = {
        "stride": _spelling(random, problem.stride),
        "padding": _spelling(random, padding),
        "dilation": _spelling(random, problem.dilation),
        "groups": problem.groups,
        "data_format": formats[0],
        "filter_format": formats[1],
    }
    if name.startswith("conv_transpose") and (name == "conv_transpose" or random.random() < 0.5):
        call.keywords["output_shape"] = _array(call, "x").shape
    if random.random() < 0.2:
        call.keywords["precision"] = random.choice(("ieee", "high"))
    if random.random() < 0.8:
        call.keywords["algorithm"] = random.choice((None, "auto", "direct", "direct"))
    call.exact = call.keywords.get("algorithm") == "direct"
    if random.random() < 0.5:
        call.out = made if name in PAIRS else made[0]
        call.keywords["out"] = call.out
    return call


def draw_mindspore(random, seed):
    name = random.choice(("Conv2DBackpropInput", "Conv2DTranspose"))
    problem = draw_problem(random, 2)
    dtype = random.choice(DTYPES)
    data_format = random.choice(("NCHW", "NHWC"))
    formats = (data_format, "OIX")
    call = DrawnCall(
        name, getattr(mindspore, name), MINDSPORE, problem, draw_tensors(problem, dtype, seed), "x", formats
    )
    weight = call.tensors["w"] if data_format == "NCHW" else np.moveaxis(call.tensors["w"], 1, -1)
    size = to_formats("x", np.broadcast_to(0, problem.x_shape), *formats).shape
    call.args = [_array(call, "y"), np.ascontiguousarray(weight), random.choice((tuple, list, np.array))(size)]
    call.construct = {
        "out_channel": problem.y_channels,
        "kernel_size": problem.kernel,
        "pad_mode": "pad",
        "pad": sum(problem.padding, ()),
        "stride": problem.stride,
        "dilation": problem.dilation,
        "group": problem.groups,
        "data_format": data_format,
    }
    return call


def draw_tensorflow(random, seed):
    name = random.choice(("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"))
    problem = draw_problem(random, 2)
    dtype = random.choice(DTYPES)
    if name == "Conv2DBackpropFilter" and dtype == "int32":
        dtype = "float32"
    formats = (random.choice(("NCHW", "NHWC")), "XIO")
    makes = {"Conv2D": "y", "Conv2DBackpropInput": "x", "Conv2DBackpropFilter": "w"}[name]
    function = getattr(tensorflow.raw_ops, name)
    call = DrawnCall(name, function, TENSORFLOW, problem, draw_tensors(problem, dtype, seed), makes, formats)

    def placed(values, outside):
        return [outside, outside, *values] if formats[0] == "NCHW" else [outside, *values, outside]

    arrays = {"input": "x", "filter": "w", "out_backprop": "y"}
    sizes = {"x": "input_sizes", "w": "filter_sizes"}
    call.keywords = {key: _array(call, part) for key, part in arrays.items() if part != makes}
    if makes in sizes:
        call.keywords[sizes[makes]] = random.choice((list, np.array))(_array(call, makes).shape)
    call.keywords |= {
        "strides": placed(problem.stride, 1),
        "padding": "EXPLICIT",
        "explicit_paddings": [end for pair in placed(problem.padding, (0, 0)) for end in pair],
        "dilations": placed(problem.dilation, 1),
        "data_format": formats[0],
    }
    return call


def draw_onednn(random, seed):
    kind = getattr(onednn, random.choice([name for name in onednn.__all__ if not name.startswith("Graph")]))
    problem = draw_problem(random, random.choice((1, 2, 2, 3)))
    dtype = random.choice([name for name in DTYPES if name in ("float32", "float16", "bfloat16")])
    layout_row = kind.schema["filter_format"]
    spelling = random.choice(list(layout_row.choices))
    layout = layout_row.choices[spelling]
    formats = (random.choice(("NCX", "NXC")), layout.core)
    call = DrawnCall(kind.__name__, kind, ONEDNN, problem, draw_tensors(problem, dtype, seed), kind.makes, formats)
    call.exchanged = layout.exchanged

    def given(part):
        array = _array(call, part)
        return np.ascontiguousarray(exchange(array, formats[1])) if part == "w" and layout.exchanged else array

    call.args = [given(part) for part in kind.takes]
    begin, end = zip(*problem.padding, strict=True)
    call.construct = {
        "strides": list(problem.stride),
        "pads_begin": list(begin),
        "pads_end": list(end),
        "dilations": list(problem.dilation),
        "groups": problem.groups,
        "data_format": formats[0],
        layout_row.name: spelling,
    }
    if kind.shape:
        shape = given(kind.makes).shape
        if random.random() < 0.5:
            call.construct[kind.shape] = list(shape)
        else:
            call.args.append(np.array(shape, np.int32))
    elif kind.makes == "x":
        bare = [
            (y - 1) * s + (k - 1) * d + 1 - b - e
            for y, s, k, d, (b, e) in zip(
                problem.y, problem.stride, problem.kernel, problem.dilation, problem.padding, strict=True
            )
        ]
        call.construct["output_padding"] = [n - m for n, m in zip(problem.x, bare, strict=True)]
    return call


def exchange(array, filter_format):
    """A filter with its two channel axes exchanged."""
    return array.swapaxes(0, 1) if filter_format == "OIX" else array.swapaxes(-1, -2)


def draw_cudnn(random, seed):
    name, reads, makes = random.choice(
        (
            ("convolution_forward", "xw", "y"),
            ("convolution_backward_data", "wy", "x"),
            ("convolution_backward_filter", "xy", "w"),
        )
    )
    rank = random.choice((1, 2, 2, 3))
    problem = draw_problem(random, rank, symmetric=True)
    dtype = np.dtype(random.choice(("float16", "float32", "float64", "complex64", "complex128")))
    last = [rank == 2 and random.random() < 0.3 for _ in range(2)]
    # In CuPy's layout, a filter with channels last is (O, *kernel, I).
    formats = ("NXC" if last[0] else "NCX", "OXI" if last[1] else "OIX")
    call = DrawnCall(
        name, getattr(cupy_cudnn, name), CUDNN, problem, draw_tensors(problem, dtype, seed), makes, formats
    )

    def given(part):
        if part == "w":
            return np.ascontiguousarray(np.moveaxis(call.tensors["w"], 1, -1) if last[1] else call.tensors["w"])
        return _array(call, part, "OIX")

    call.out = _target(given(makes))
    bias = [] if makes == "w" else [None]
    pad = tuple(begin for begin, _ in problem.padding)
    call.args = [*map(given, reads), *bias, call.out, pad, problem.stride, problem.dilation, problem.groups]
    call.keywords = {"auto_tune": True, "tensor_core": "auto", "d_layout": int(last[0]), "w_layout": int(last[1])}
    if makes != "y":
        call.keywords["deterministic"] = random.random() < 0.5
    return call


_DRAWS = (draw_core, draw_core, draw_core, draw_mindspore, draw_tensorflow, draw_onednn, draw_cudnn)


def draw(random, seed):
    """A legal call."""
    return random.choice(_DRAWS)(random, seed)
