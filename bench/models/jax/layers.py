"""Layers of JAX, and the sources of a network's weights."""

from math import sqrt

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

FORMATS = ("NHWC", "HWIO", "NHWC")


class Drawn:
    """Weights that are drawn when a network asks for them, and kept in ``all``."""

    def __init__(self, seed):
        self.random, self.all = np.random.default_rng(seed), []

    def normal(self, shape, deviation):
        return self._kept(deviation * self.random.standard_normal(shape))

    def constant(self, shape, value):
        return self._kept(np.full(shape, value))

    def _kept(self, array):
        self.all.append(array.astype(np.float32))
        return self.all[-1]

    def convolution(self, function, x, w):
        return function(x, w)


class Given:
    """The weights of a list, in its order."""

    def __init__(self, weights):
        self.weights = iter(weights)

    def normal(self, shape, deviation):
        return next(self.weights)

    def constant(self, shape, value):
        return next(self.weights)

    def convolution(self, function, x, w):
        return function(x, w)


def initial(network, shape, seed):
    """First weights of a network for batches of a shape."""
    drawn = Drawn(seed)
    jax.eval_shape(lambda x: network(drawn, x), jax.ShapeDtypeStruct(shape, "float32"))
    return drawn.all


def _he(weights, shape, fan):
    """Weights by He et al. 2015.

    Values keep their size from layer to layer, so the loss depends on all layers at once.
    """
    return weights.normal(shape, sqrt(2 / fan))


def conv(weights, x, channels, kernel, stride=1, groups=1, padding="SAME", bias=True):
    inputs = x.shape[-1] // groups
    w = _he(weights, (kernel, kernel, inputs, channels), kernel**2 * inputs)

    def function(x, w):
        strides = (stride, stride)
        return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=FORMATS, feature_group_count=groups)

    y = weights.convolution(function, x, w)
    return y + weights.constant((channels,), 0.0) if bias else y


def conv_transpose(weights, x, channels, kernel, stride):
    w = _he(weights, (kernel, kernel, x.shape[-1], channels), x.shape[-1])

    def function(x, w):
        return lax.conv_transpose(x, w, (stride, stride), "SAME", dimension_numbers=FORMATS)

    return weights.convolution(function, x, w) + weights.constant((channels,), 0.0)


def dense(weights, x, channels):
    w = _he(weights, (x.shape[-1], channels), x.shape[-1])
    return x @ w + weights.constant((channels,), 0.0)


def _normalised(x, axes):
    mean = x.mean(axes, keepdims=True)
    variance = jnp.square(x - mean).mean(axes, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-6)


def layer_norm(weights, x):
    channels = x.shape[-1:]
    return _normalised(x, -1) * weights.constant(channels, 1.0) + weights.constant(channels, 0.0)


def group_norm(weights, x, scale=1.0, groups=8):
    channels = x.shape[-1:]
    grouped = x.reshape(*x.shape[:-1], groups, -1)
    x = _normalised(grouped, (1, 2, 4)).reshape(x.shape)
    return x * weights.constant(channels, scale) + weights.constant(channels, 0.0)


def max_pool(x, size, stride, padding="VALID"):
    return lax.reduce_window(x, -np.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), padding)
