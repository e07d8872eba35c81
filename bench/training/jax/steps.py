"""A network of JAX with its data: a step is forward, loss, backward and SGD, compiled as one program."""

import time

import jax
import numpy as np
from jax import numpy as jnp

from bench import models
from bench.models.jax.layers import Given, initial

SEED = 0


class Steps:
    """``losses`` begins at the first weights, and so does each step that ``timed`` measures.

    The constructor compiles the step for the kernels that are enabled at this time. With ``weights_of``, the network
    takes its weights from ``weights_of(weights, extra)``. Each step takes one array ``extra``.
    """

    def __init__(self, model, dtype="float32", weights_of=lambda weights, extra: Given(weights), extra=0.0):
        network = models.build(model)
        channels, *axes = model.inputs
        shape = (model.batch, *axes, channels)
        random = np.random.default_rng(SEED)
        x = random.standard_normal(shape, np.float32)
        targets = random.integers(model.classes, size=(model.batch, *(axes if model.dense else ())))
        data = initial(network, shape, SEED), x, np.eye(model.classes)[targets]
        self.weights, *self.data = jax.tree.map(lambda array: jnp.asarray(array, dtype), data)
        self.extra = jnp.asarray(extra)

        def loss(weights, x, targets, extra):
            logits = network(weights_of(weights, extra), x)
            return -(targets * jax.nn.log_softmax(logits)).sum(-1).mean()

        def step(weights, *data):
            value, gradients = jax.value_and_grad(loss)(weights, *data)
            return value, [w - model.rate * dw for w, dw in zip(weights, gradients, strict=True)]

        self.step = jax.jit(step).lower(self.weights, *self.data, self.extra).compile()

    def losses(self, count, extras=None):
        """The losses of the first steps. ``extras`` has one array for each."""
        losses, weights = [], self.weights
        for extra in extras or [self.extra] * count:
            loss, weights = self.step(weights, *self.data, jnp.asarray(extra))
            losses.append(float(loss))
        return losses

    def timed(self):
        """Seconds of a step from the first weights."""
        begin = time.perf_counter()
        jax.block_until_ready(self.step(self.weights, *self.data, self.extra))
        return time.perf_counter() - begin
