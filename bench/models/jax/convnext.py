"""A network like ConvNeXt (Liu et al. 2022) with two stages of two blocks of 7×7 depthwise convolutions."""

from jax.nn import gelu

from .layers import conv, dense, layer_norm

#: Channels of each stage, in multiples of the width, and its blocks.
STAGES = ((1, 2), (2, 2))


def block(weights, x):
    channels = x.shape[-1]
    y = layer_norm(weights, conv(weights, x, channels, 7, groups=channels))
    return x + dense(weights, gelu(dense(weights, y, 4 * channels)), channels)


def convnext(model):
    def network(weights, x):
        x = conv(weights, x, model.width, 4, 4)
        for factor, blocks in STAGES:
            if x.shape[-1] != factor * model.width:
                x = conv(weights, x, factor * model.width, 2, 2)
            for _ in range(blocks):
                x = block(weights, x)
        return dense(weights, x.mean((1, 2)), model.classes)

    return network
