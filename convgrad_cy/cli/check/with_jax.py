"""One gradient of a small network in JAX, by its own kernels and after ``convgrad_cy.jax.enable()``."""

import numpy as np

from . import frameworks

#: Filters in OIHW, and the keywords of the layer.
LAYERS = (
    ((32, 3, 3, 3), {"window_strides": (1, 1), "padding": "SAME"}),
    ((32, 1, 3, 3), {"window_strides": (1, 1), "padding": "SAME", "feature_group_count": 32}),
    ((48, 32, 3, 3), {"window_strides": (2, 2), "padding": "SAME"}),
    # A transposed convolution: the input has gaps.
    ((3, 48, 4, 4), {"window_strides": (1, 1), "padding": ((2, 2), (2, 2)), "lhs_dilation": (2, 2)}),
)


def _step(jax):
    """Name -> array: the loss, and the gradient of each filter and of the input."""
    random = np.random.default_rng(0)
    filters = [random.standard_normal(shape, np.float32) / np.prod(shape[1:]) ** 0.5 for shape, _ in LAYERS]
    images = random.standard_normal((4, 3, 24, 24), np.float32)

    def loss(filters, images):
        for w, (_, keywords) in zip(filters, LAYERS, strict=True):
            images = jax.lax.conv_general_dilated(jax.numpy.tanh(images), w, **keywords)
        return ((images - 1) ** 2).sum()

    # A function of its own for each call: it is compiled again, with the kernels of that time.
    value, (gradients, of_input) = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(filters, images)
    named = {f"gradient of layer {number}": array for number, array in enumerate(gradients)}
    arrays = {"loss": value, "gradient of the input": of_input, **named}
    return {name: np.asarray(array, np.float64) for name, array in arrays.items()}


def records():
    try:
        import jax
    except ImportError:
        yield frameworks.missing("JAX", "not installed")
        return
    with jax.default_device(jax.devices("cpu")[0]):
        own = _step(jax)
        try:
            from ... import jax as switch
        except ImportError as error:  # too old
            yield frameworks.missing("JAX", f"not checked: {error}")
            return
        switch.enable()
        ours = _step(jax)
    yield frameworks.record("JAX", jax.__version__, own, ours, switch.status().computed)
