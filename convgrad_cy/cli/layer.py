"""A layer for ``python -m convgrad_cy explain``. The user describes it once for all of its functions."""

from typing import Any, NamedTuple

import convgrad_cy as cg

from ..checks.keywords import DATA_ORDERS, FILTER_ORDERS, Options, choice


class Layer(NamedTuple):
    """``y = forward(x, w, **keywords)``.

    Attributes
    ----------
    forward : str
        "conv" or "conv_transpose".
    x, w, y : tuple of int
        The shapes, in the order of the formats.
    keywords : dict
        All keywords of ``forward`` that describe a layer, with the defaults of omitted ones.
    """

    forward: str
    x: tuple
    w: tuple
    y: tuple
    keywords: dict[str, Any]

    def call(self, function):
        """The shapes of the arrays of one of the layer's functions, and its keywords."""
        own = {
            "conv": ((self.x, self.w), {}),
            "conv_backward_data": ((self.y, self.w), {"x_shape": self.x}),
            "conv_backward_filter": ((self.x, self.y), {"w_shape": self.w}),
            "conv_transpose": ((self.x, self.w), {}),
            "conv_transpose_backward_data": ((self.y, self.w), {}),
            "conv_transpose_backward_filter": ((self.x, self.y), {"w_shape": self.w}),
        }
        shapes, asked = own[function]
        return shapes, self.keywords | asked

    def explained(self, function, dtype):
        """The explanation of one of the layer's functions."""
        shapes, keywords = self.call(function)
        return cg.explain(function, shapes, dtype, **keywords)

    def described(self):
        """The layer as a dict, for JSON."""
        return {"forward": self.forward, "x": self.x, "w": self.w, "y": self.y, **self.keywords}

    def __str__(self):
        """The layer as text, with each value in the syntax of its option."""
        described = {name: spelled(value) for name, value in self.described().items() if value is not None}
        lines = [f"{name}: {value}" for name, value in described.items() if name != "forward"]
        return "\n  ".join([f"y = {self.forward}(x, w) with", *lines])


def spelled(value):
    """A shape, or the value of a keyword, in the syntax of the options."""
    if isinstance(value, (str, int)):
        return str(value)
    return ",".join(f"{each[0]}:{each[1]}" if isinstance(each, tuple) else str(each) for each in value)


def _in_format(sizes, given, name, orders):
    """Sizes in the order (batch, channels, spatial) or (out, in, spatial), brought into the order of a format."""
    order = choice(given, name, orders[len(sizes) - 2], any_case=True)
    return tuple([size for _, size in sorted(zip(order, sizes, strict=True))])


def of_shapes(forward, x, w, dtype, keywords):
    """The layer that a user describes in shapes and keywords. Illegal ones raise the functions' own errors."""
    # The algorithm may be legal only for another of the layer's functions, and the shape of y does not depend on it.
    y = cg.explain(forward, (x, w), dtype, **(keywords | {"algorithm": "direct"})).shape
    own = {"output_padding": 0} if forward == "conv_transpose" else {}
    return Layer(forward, x, w, y, Options()._asdict() | own | keywords)


def of_problem(forward, problem, dtype, keywords):
    """The layer that a user describes in the letters of benchdnn; ``keywords`` have no letters."""
    x, own = problem.x_shape, problem.keywords
    if forward == "conv_transpose":
        x, own = problem.y_shape, own | {"output_padding": problem.output_padding}
    formats = Options()._asdict() | keywords
    x = _in_format(x, formats["data_format"], "data_format", DATA_ORDERS)
    w = _in_format(problem.w_shape, formats["filter_format"], "filter_format", FILTER_ORDERS)
    return of_shapes(forward, x, w, dtype, own | keywords)
