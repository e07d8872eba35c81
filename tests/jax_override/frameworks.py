"""Unchanged models of other libraries: the number of convolutions that convgrad_cy lowers, and why not the others.

    python tests/jax_override/frameworks.py [NAME ...]

prints a line for each library, as JSON. The libraries are Flax, Haiku, Equinox and Keras, as far as they are installed.
"""

import json
import os
import sys
from importlib.util import find_spec

#: Name -> the package that it needs.
PACKAGES = {
    "flax_linen": "flax",
    "flax_nnx": "flax",
    "haiku_resnet18": "haiku",
    "equinox": "equinox",
    "keras_mobilenet_v2": "keras",
}


def flax_linen():
    import jax
    from flax import linen as nn

    model = nn.Sequential(
        [
            nn.Conv(16, (3, 3), strides=(2, 2)),
            nn.relu,
            nn.Conv(16, (7, 7), feature_group_count=16),
            nn.GroupNorm(4),
            nn.Conv(32, (3, 3), feature_group_count=4, kernel_dilation=(2, 2)),
            nn.relu,
            nn.ConvTranspose(8, (4, 4), strides=(2, 2)),
            nn.Conv(3, (1, 1)),
        ]
    )
    x = jax.numpy.ones((2, 32, 32, 3))
    weights = model.init(jax.random.PRNGKey(0), x)
    return jax.jit(jax.grad(lambda weights: (model.apply(weights, x) ** 2).mean()))(weights)


def flax_nnx():
    import jax
    from flax import nnx

    model = nnx.Sequential(
        nnx.Conv(3, 8, (3, 3), rngs=nnx.Rngs(0)),
        nnx.ConvTranspose(8, 4, (4, 4), strides=(2, 2), rngs=nnx.Rngs(0)),
        nnx.Conv(4, 8, (3, 3), feature_group_count=2, rngs=nnx.Rngs(0)),
    )
    x = jax.numpy.ones((2, 32, 32, 3))
    return nnx.jit(nnx.grad(lambda model: (model(x) ** 2).mean()))(model)


def haiku_resnet18():
    import haiku as hk
    import jax

    network = hk.transform_with_state(lambda x: hk.nets.ResNet18(10)(x, is_training=True))
    x = jax.numpy.ones((2, 64, 64, 3))
    weights, state = network.init(jax.random.PRNGKey(0), x)
    return jax.jit(jax.grad(lambda weights: (network.apply(weights, state, None, x)[0] ** 2).mean()))(weights)


def equinox():
    import equinox as eqx
    import jax

    keys = iter(jax.random.split(jax.random.PRNGKey(0), 4))
    model = eqx.nn.Sequential(
        [
            eqx.nn.Conv2d(3, 8, 3, stride=2, key=next(keys)),
            eqx.nn.ConvTranspose2d(8, 4, 4, stride=2, padding=1, groups=2, key=next(keys)),
            eqx.nn.Conv2d(4, 4, 3, groups=4, key=next(keys)),
            eqx.nn.Conv2d(4, 4, 3, dilation=2, key=next(keys)),
        ]
    )
    x = jax.numpy.ones((2, 3, 32, 32))
    return eqx.filter_jit(eqx.filter_grad(lambda model: (jax.vmap(model)(x) ** 2).mean()))(model)


def keras_mobilenet_v2():
    os.environ["KERAS_BACKEND"] = "jax"
    import keras
    import numpy as np

    model = keras.applications.MobileNetV2(weights=None, input_shape=(64, 64, 3), classes=10)
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(np.ones((4, 64, 64, 3), np.float32), np.zeros(4), epochs=1, verbose=0)
    return model.trainable_weights[0].numpy()


def run(name):
    """The counts of `status` after the gradients of a model. The gradients must be finite."""
    import jax

    import convgrad_cy.jax

    convgrad_cy.jax.enable()
    for leaf in jax.tree.leaves(globals()[name]()):
        assert jax.numpy.isfinite(jax.numpy.asarray(leaf)).all()
    status = convgrad_cy.jax.status()
    return {"lowered": status.lowered, "passed_on": status.passed_on, "computed": status.computed}


def main(names):
    for name in names or PACKAGES:
        if find_spec(PACKAGES[name]) is None:
            print(json.dumps({"name": name, "absent": PACKAGES[name]}))
        elif len(names) == 1:
            print(json.dumps({"name": name, **run(name)}))
        else:  # a process for each library, because the counts belong to a process
            os.spawnv(os.P_WAIT, sys.executable, [sys.executable, __file__, name])


if __name__ == "__main__":
    main(sys.argv[1:])
