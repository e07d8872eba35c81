"""Random convolutions of JAX, and all functions derived from one."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

#: For each number of spatial axes, the orders in which lhs, rhs and out are stored; C is the feature axis.
LAYOUTS = (
    lambda axes: ("NC" + axes, "OI" + axes, "NC" + axes),
    lambda axes: ("N" + axes + "C", axes + "IO", "N" + axes + "C"),
    lambda axes: ("C" + axes + "N", "I" + axes + "O", axes + "NC"),
)


@dataclass
class Convolution:
    """The arguments of ``lax.conv_general_dilated`` with operands of small integers."""

    lhs: np.ndarray
    rhs: np.ndarray
    keywords: dict

    def __call__(self, lhs, rhs):
        return jax.lax.conv_general_dilated(lhs, rhs, **self.keywords)


def draw(rng):
    """A convolution with a result that is not empty."""
    while True:
        drawn = _draw(rng)
        try:
            shape = jax.eval_shape(drawn, drawn.lhs, drawn.rhs).shape
        except (TypeError, ValueError):
            continue
        if 0 not in shape:
            return drawn


def _draw(rng):
    axes = "DHW"[-int(rng.integers(1, 4)) :]

    def each(least, most):
        return [int(value) for value in rng.integers(least, most + 1, len(axes))]

    groups, batch_groups = (int(value) for value in rng.choice([(1, 1), (1, 1), (2, 1), (3, 1), (1, 2)]))
    batch, inputs, outputs = (int(value) for value in rng.integers(1, 4, 3))
    transposed = rng.random() < 0.4
    padding = rng.choice(["SAME", "VALID", "numbers"])
    if padding == "numbers" or (transposed and rng.random() < 0.5):
        padding = list(zip(each(-1, 3), each(-1, 3), strict=True))
    layout = LAYOUTS[int(rng.integers(3))](axes)
    sizes = {"N": batch * batch_groups, "C": inputs * groups, "O": outputs * groups * batch_groups, "I": inputs}
    lhs = sizes | dict(zip(axes, each(4, 12), strict=True))
    rhs = sizes | dict(zip(axes, each(1, 4), strict=True))
    return Convolution(
        rng.integers(-3, 4, [lhs[axis] for axis in layout[0]]).astype(float),
        rng.integers(-3, 4, [rhs[axis] for axis in layout[1]]).astype(float),
        {
            "window_strides": [1] * len(axes) if transposed else each(1, 3),
            "padding": padding if isinstance(padding, list) else str(padding),
            "lhs_dilation": each(1, 3) if transposed else [1] * len(axes),
            "rhs_dilation": each(1, 2),
            "dimension_numbers": layout,
            "feature_group_count": groups,
            "batch_group_count": batch_groups,
        },
    )


def derived(convolution, lhs, rhs):
    """Value, both gradients, gradients of these, forward mode, and batches of lhs and of rhs."""

    def loss(lhs, rhs):
        result = convolution(lhs, rhs)
        return (jnp.sin(result) * jnp.arange(1, result.size + 1).reshape(result.shape)).sum()

    def of_gradients(lhs, rhs):
        return sum((gradient**2).sum() for gradient in jax.grad(loss, argnums=(0, 1))(lhs, rhs))

    return {
        "value": convolution(lhs, rhs),
        "gradients": jax.grad(loss, argnums=(0, 1))(lhs, rhs),
        "second order": jax.grad(of_gradients, argnums=(0, 1))(lhs, rhs),
        "jvp": jax.jvp(convolution, (lhs, rhs), (rhs.sum() * lhs, lhs.sum() * rhs))[1],
        "vmap of lhs": jax.vmap(lambda lhs: jax.grad(loss, argnums=1)(lhs, rhs))(jnp.stack([lhs, 2 * lhs])),
        "vmap of rhs": jax.vmap(lambda rhs: convolution(lhs, rhs))(jnp.stack([rhs, -rhs])),
        "vmap of both": jax.vmap(convolution)(jnp.stack([lhs, 2 * lhs]), jnp.stack([rhs, -rhs])),
    }


def distance(found, wanted):
    """The greatest difference of two trees of arrays, each relative to the greatest element of the wanted array."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
    return max(_distance(np.asarray(one, float), np.asarray(other, float)) for one, other in pairs)


def _distance(found, wanted):
    assert found.shape == wanted.shape
    return np.abs(found - wanted).max() / (np.abs(wanted).max() or 1)
