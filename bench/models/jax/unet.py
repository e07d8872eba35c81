"""U-Net:

Ronneberger et al. 2015, padded and with four levels. A transposed convolution of 2×2 taps leads up a level.
"""

from jax import numpy as jnp
from jax.nn import relu

from .layers import conv, conv_transpose, max_pool

LEVELS = 4


def unet(model):
    def block(weights, x, channels):
        for _ in range(2):
            x = relu(conv(weights, x, channels, 3))
        return x

    def network(weights, x):
        *channels, deepest = (model.width << level for level in range(LEVELS))
        skipped = []
        for width in channels:
            skipped.append(block(weights, x, width))
            x = max_pool(skipped[-1], 2, 2)
        x = block(weights, x, deepest)
        for width in reversed(channels):
            x = conv_transpose(weights, x, width, 2, 2)
            x = block(weights, jnp.concatenate([x, skipped.pop()], -1), width)
        return conv(weights, x, model.classes, 1)

    return network
