"""ResNet-18: He et al. 2016, with group norm (Wu and He 2018), which keeps no running means."""

from jax.nn import relu

from .layers import conv, dense, group_norm, max_pool

#: Channels, in multiples of the width, and stride of each block.
BLOCKS = ((1, 1), (1, 1), (2, 2), (2, 1), (4, 2), (4, 1), (8, 2), (8, 1))
#: The first scale of a branch's last norm. With 1, gradients would grow so much on their way to the first layer that a
#: rounding error would decide the loss after the next step.
BRANCH = 0.25


def block(weights, x, channels, stride):
    y = relu(group_norm(weights, conv(weights, x, channels, 3, stride, bias=False)))
    y = group_norm(weights, conv(weights, y, channels, 3, bias=False), BRANCH)
    if x.shape != y.shape:
        x = group_norm(weights, conv(weights, x, channels, 1, stride, bias=False))
    return relu(x + y)


def resnet18(model):
    def network(weights, x):
        x = relu(group_norm(weights, conv(weights, x, model.width, 7, 2, bias=False)))
        x = max_pool(x, 3, 2, "SAME")
        for factor, stride in BLOCKS:
            x = block(weights, x, factor * model.width, stride)
        return dense(weights, x.mean((1, 2)), model.classes)

    return network
