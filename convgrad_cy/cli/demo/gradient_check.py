"""Every operation against central finite differences, in float64.

Each operation is the gradient of a scalar product that contains another one, so each can be checked. For example,
``conv`` is the gradient of ``<conv_backward_data(dy, w), x>`` with respect to ``dy``.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

import convgrad_cy as cg
from convgrad_cy.cli.demo.network import Network

#: Largest error allowed, relative to the largest entry of the gradient. The scalar products are linear, so
#: their differences have only rounding errors (about 1e-14). The network's differences also have a term of third order.
OPERATION_TOLERANCE = 1e-11
NETWORK_TOLERANCE = 1e-6


class Check(NamedTuple):
    name: str
    error: float
    tolerance: float

    @property
    def passed(self):
        return self.error <= self.tolerance  # false for NaN


def finite_differences(function, point, step):
    """The gradient of a scalar function at ``point``, one central difference for each element."""
    gradient = np.empty_like(point)
    for index in np.ndindex(point.shape):
        here = point[index]
        point[index] = here + step
        above = function()
        point[index] = here - step
        below = function()
        point[index] = here
        gradient[index] = (above - below) / (2 * step)
    return gradient


def relative_error(actual, expected):
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


def scalar_product(function, factor):
    return np.vdot(function(), factor)


def check_operations():
    """All operations, on a problem with stride, dilation, groups and a different padding on every side."""
    rng = np.random.default_rng(0)
    geometry = {"stride": (2, 1), "padding": ((1, 2), (0, 1)), "dilation": (1, 2), "groups": 2}
    x = rng.standard_normal((2, 4, 5, 5))
    w = rng.standard_normal((6, 2, 3, 2))
    dy = rng.standard_normal((2, 6, 3, 4))
    # The transposed convolution takes dy to x: the same three arrays in other roles. A stride of two leads to the
    # same dy from four rows and from five; the output padding says five.
    transposed = geometry | {"output_padding": (1, 0)}

    def conv():
        return cg.conv(x, w, **geometry)

    def conv_backward_data():
        return cg.conv_backward_data(dy, w, x.shape, **geometry)

    def conv_backward_filter():
        return cg.conv_backward_filter(x, dy, w.shape, **geometry)

    def conv_backward():
        return cg.conv_backward(dy, x, w, **geometry)

    def conv_transpose():
        return cg.conv_transpose(dy, w, **transposed)

    def conv_transpose_backward_data():
        return cg.conv_transpose_backward_data(x, w, **transposed)

    def conv_transpose_backward_filter():
        return cg.conv_transpose_backward_filter(dy, x, w.shape, **transposed)

    def conv_transpose_backward():
        return cg.conv_transpose_backward(x, dy, w, **transposed)

    # Each row: the operation; the one that its scalar product contains, with the other factor; the variables.
    rows = [
        (conv, conv_backward_data, x, [dy]),
        (conv_backward_data, conv, dy, [x]),
        (conv_backward_filter, conv, dy, [w]),
        (conv_backward, conv, dy, [x, w]),
        (conv_transpose, conv_transpose_backward_data, dy, [x]),
        (conv_transpose_backward_data, conv_transpose, x, [dy]),
        (conv_transpose_backward_filter, conv_transpose, x, [w]),
        (conv_transpose_backward, conv_transpose, x, [dy, w]),
    ]
    checks = []
    for operation, inner, factor, variables in rows:
        results = operation() if len(variables) > 1 else [operation()]
        # The difference of a linear function is exact for any step, and a large step loses the fewest digits.
        product = partial(scalar_product, inner, factor)
        errors = [
            relative_error(result, finite_differences(product, variable, step=1.0))
            for result, variable in zip(results, variables, strict=True)
        ]
        checks.append(Check(operation.__name__, max(errors), OPERATION_TOLERANCE))
    return checks


def check_network(images, labels):
    """The whole network: its loss along one random direction of each parameter."""
    rng = np.random.default_rng(0)
    network = Network(rng, np.float64)
    # Biases of zero would put ReLU exactly at its kink wherever an image is blank, and there is no gradient there.
    for parameter in network.parameters:
        parameter.value += 0.1 * rng.standard_normal(parameter.value.shape)
    step = 1e-6
    network.loss(images, labels)
    gradients = [parameter.gradient for parameter in network.parameters]
    actual, expected = [], []
    for parameter, gradient in zip(network.parameters, gradients, strict=True):
        direction = rng.standard_normal(gradient.shape)
        direction /= np.linalg.norm(direction)
        here = parameter.value
        losses = []
        for sign in (1, -1):
            parameter.value = here + sign * step * direction
            losses.append(network.loss(images, labels))
        parameter.value = here
        actual.append(np.vdot(gradient, direction))
        expected.append((losses[0] - losses[1]) / (2 * step))
    error = relative_error(np.array(actual), np.array(expected))
    return Check("the whole network", error, NETWORK_TOLERANCE)
