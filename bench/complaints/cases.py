"""The complaints as functions of JAX: each function here draws its operands and returns them with a function of them.

The shapes are those in the reports. They are smaller if a report's shapes would take minutes. Gradients are taken for a
given gradient of the result, so that the timed program has no loss.
"""

import jax
from jax import lax

CHANNELS_LAST = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC")}


def _same(x, w, groups=1):
    axes = w.ndim - 2
    return lax.conv_general_dilated(
        x, w, (1,) * axes, "SAME", dimension_numbers=CHANNELS_LAST[axes], feature_group_count=groups
    )


def _both_gradients(conv):
    return lambda x, w, dy: jax.vjp(conv, x, w)[1](dy)


def loop(draw):
    def twice(x, w):
        return lax.fori_loop(0, 2, lambda _, y: lax.conv(y, w, (1,), "VALID"), x)

    return twice, (draw(1, 1000, 1024), draw(1000, 1000, 1))


def groups(draw):
    x = draw(8, 28, 28, 128)
    return _both_gradients(lambda x, w: _same(x, w, 32)), (x, draw(3, 3, 4, 128), draw(*x.shape))


def depthwise(draw):
    x = draw(8, 1024, 512)
    return _both_gradients(lambda x, w: _same(x, w, 512)), (x, draw(5, 1, 512), draw(*x.shape))


def transposed_3d(draw):
    def conv(x, w):
        numbers = ("NCDHW", "DHWIO", "NCDHW")
        return lax.conv_general_dilated(
            x, w, (1, 1, 1), [(1, 2)] * 3, lhs_dilation=(2, 2, 2), dimension_numbers=numbers
        )

    def filter_gradient(x, w, dy):
        return jax.vjp(lambda w: conv(x, w), w)[1](dy)

    return filter_gradient, (draw(1, 64, 32, 32, 16), draw(3, 3, 3, 64, 1), draw(1, 1, 64, 64, 32))


def transposed_1d(draw):
    def conv(x, w):
        return lax.conv_transpose(x, w, (256,), "VALID", dimension_numbers=CHANNELS_LAST[1])

    return conv, (draw(16, 256, 512), draw(1024, 512, 1))


def bfloat16(draw):
    x = draw(4, 28, 28, 64)
    return _both_gradients(_same), (x, draw(3, 3, 64, 64), draw(*x.shape))


def examples(draw):
    def gradient(x, w, dy):
        return jax.vjp(lambda w: _same(x[None], w), w)[1](dy[None])

    x = draw(16, 28, 28, 16)
    return jax.vmap(gradient, in_axes=(0, None, 0)), (x, draw(3, 3, 16, 16), draw(*x.shape))


def chain(draw):
    def run(x, w):
        for _ in range(20):
            x = _same(x, w)
        return x

    return run, (draw(1, 8, 8, 4), draw(3, 3, 4, 4))
