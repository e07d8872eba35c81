"""A network like VGG (Simonyan and Zisserman 2015) with eight convolutions and one dense layer."""

import jax

from .layers import conv, dense, max_pool

#: Channels, in multiples of the width, of the layers between two poolings.
STAGES = ((1,), (2,), (4, 4), (8, 8), (8, 8))


def vgg(model):
    def network(weights, x):
        for stage in STAGES:
            for factor in stage:
                x = jax.nn.relu(conv(weights, x, factor * model.width, 3))
            x = max_pool(x, 2, 2)
        return dense(weights, x.reshape(len(x), -1), model.classes)

    return network
