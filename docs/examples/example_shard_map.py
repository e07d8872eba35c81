"""
JAX's shard_map on two devices of the CPU
=========================================

Divide a training step between devices with JAX's shard_map, on the CPU kernels of convgrad_cy.

    python docs/examples/example_shard_map.py --devices 2

Each device computes the gradients for its part of the batch, and ``psum`` adds them. The program makes the CPU look
like several devices. On several machines, ``jax.distributed.initialize`` adds theirs, and the step stays as it is.
"""

import argparse
import os
import sys


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=2, help="devices that the CPU is divided into (default: 2)")
    parser.add_argument("--steps", type=int, default=20, help="steps of training (default: 20)")
    parser.add_argument("--batch", type=int, default=64, help="images in a step (default: 64)")
    return parser.parse_args()


OPTIONS = arguments()
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={OPTIONS.devices}"  # read when JAX is imported

try:
    import jax
    import numpy as np
    from jax import lax
    from jax import numpy as jnp
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    import convgrad_cy.jax
    from convgrad_cy.cli.demo import digits
except ImportError as error:
    sys.exit(f"{error}\nThis example needs JAX 0.7 or newer: pip install 'PATH_OF_THE_CLONE[jax]'")


def loss(weights, images, labels):
    first, second, last = weights
    numbers = ("NHWC", "HWIO", "NHWC")
    x = jax.nn.relu(lax.conv_general_dilated(images, first, (1, 1), "SAME", dimension_numbers=numbers))
    x = jax.nn.relu(lax.conv_general_dilated(x, second, (2, 2), "SAME", dimension_numbers=numbers))
    scores = x.reshape(len(x), -1) @ last
    return -(jax.nn.one_hot(labels, 10) * jax.nn.log_softmax(scores)).sum(-1).mean()


def gradients(weights, images, labels):
    """The loss and the gradients of a device's part, averaged over all devices."""
    return lax.pmean(jax.value_and_grad(loss)(weights, images, labels), "batch")


def main():
    convgrad_cy.jax.enable()
    mesh = jax.make_mesh((OPTIONS.devices,), ("batch",))
    parts, copies = NamedSharding(mesh, P("batch")), NamedSharding(mesh, P())
    divided = jax.jit(
        jax.shard_map(
            gradients, mesh=mesh, in_specs=(P(), P("batch"), P("batch")), out_specs=(P(), P()), check_vma=False
        )
    )
    whole = jax.jit(jax.value_and_grad(loss))

    random = np.random.default_rng(0)
    shapes = (3, 3, 1, 16), (3, 3, 16, 32), (32 * 4 * 4, 10)
    weights = [
        jnp.asarray(random.standard_normal(shape) * (2 / np.prod(shape[:-1])) ** 0.5, "float32") for shape in shapes
    ]
    (images, labels), _ = digits.load()
    images = images.transpose(0, 2, 3, 1)
    for step in range(OPTIONS.steps):
        chosen = random.choice(len(images), OPTIONS.batch, replace=False)
        batch = images[chosen], labels[chosen]
        inputs = jax.device_put(weights, copies), *(jax.device_put(part, parts) for part in batch)
        # Wait for the devices, which wait for each other: another program might take the last of XLA's threads.
        value, found = jax.block_until_ready(divided(*inputs))
        if step == 0:
            _, wanted = whole(weights, *batch)
            errors = [
                float(abs(np.asarray(one) - other).max() / abs(other).max())
                for one, other in zip(found, wanted, strict=True)
            ]
            print(f"gradients of {OPTIONS.devices} devices and of one differ by {max(errors):.1e} of the largest")
        weights = [w - 0.2 * np.asarray(gradient) for w, gradient in zip(weights, found, strict=True)]
        if step % 5 == 4:
            print(f"step {step + 1}/{OPTIONS.steps}: loss {float(value):.3f}", flush=True)
    status = convgrad_cy.jax.status()
    passed_on = sum(status.passed_on.values())
    print(
        f"{len(jax.devices())} devices: convgrad_cy computed {status.computed} convolutions, left {passed_on} to XLA."
    )


if __name__ == "__main__":
    main()
