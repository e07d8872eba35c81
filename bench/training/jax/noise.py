"""Steps of JAX whose convolutions have results and gradients with the noise that ../agreement.py describes."""

from math import prod

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from bench.models.jax.layers import Given
from bench.verify import TOLERANCES

#: Number of signs of a step, and distance between the beginnings of two results in them. The number is prime, so all
#: signs are in use before one comes again.
SIGNS, BEGINS = 1_000_003, 7919


def signs(seed, step):
    """The random signs of a step. (JAX's own generator takes minutes to compile, once for each result.)"""
    return np.random.default_rng((seed, step)).choice(np.float32([-1, 1]), SIGNS)


class Noisy(Given):
    """The weights of a list. Results and gradients of convolutions change by a share of their greatest element."""

    def __init__(self, weights, signs):
        super().__init__(weights)
        self.signs, self.begin = signs, 0

    def convolution(self, function, x, w):
        y = function(*(_with_noisy_gradient(operand, self._next(operand.shape)) for operand in (x, w)))
        return y + lax.stop_gradient(_noise(y, self._next(y.shape)))

    def _next(self, shape):
        self.begin = (self.begin + BEGINS) % SIGNS
        end = self.begin + prod(shape)
        return jnp.tile(self.signs, -(-end // SIGNS))[self.begin : end].reshape(shape)


def _noise(result, signs):
    return TOLERANCES["float32"] * jnp.abs(result).max() * signs


@jax.custom_vjp
def _with_noisy_gradient(x, signs):
    return x


_with_noisy_gradient.defvjp(lambda x, signs: (x, signs), lambda signs, dx: (dx + _noise(dx, signs), None))
