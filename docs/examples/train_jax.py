"""
Train with JAX
==============

A convolutional network learns handwritten digits twice: with XLA's own kernels and with convgrad_cy's. Both begin with
the same weights and see the same batches in the same order. The model is plain JAX. The only difference is ``with
convgrad_cy.jax.enabled():`` around its compilation.

Run it with ``python docs/examples/train_jax.py [--plot PICTURE.png]``. It needs JAX 0.7 or newer, tqdm and, for the
picture, matplotlib.
"""

import argparse
import sys
from contextlib import nullcontext
from statistics import median
from time import perf_counter

try:
    import jax
    import numpy as np
    from jax import lax
    from jax import numpy as jnp
    from tqdm import tqdm

    import convgrad_cy.jax
    from convgrad_cy.cli.demo import digits
except ImportError as error:
    sys.exit(f"{error}\nThis example needs JAX 0.7 or newer and tqdm: pip install 'PATH_OF_THE_CLONE[jax]' tqdm")

RATE, MOMENTUM = 0.02, 0.9


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", metavar="FILE", help="save a picture of losses and times (needs matplotlib)")
    parser.add_argument("--epochs", type=int, default=10, help="passes over the digits (default: 10)")
    parser.add_argument("--batch", type=int, default=32, help="digits in a step, at most 1347 (default: 32)")
    parser.add_argument("--width", type=int, default=64, help="channels of the first layer (default: 64)")
    return parser.parse_args()


def initial(width, random):
    """Filters (height, width, inputs, outputs) and their biases, then the last layer's."""
    shapes = (3, 3, 1, width), (3, 3, width, 2 * width), (3, 3, 2 * width, 2 * width), (2 * width * 4 * 4, 10)
    weights = []
    for shape in shapes:
        deviation = np.sqrt(2 / np.prod(shape[:-1]))
        weights.append(jnp.asarray(deviation * random.standard_normal(shape), "float32"))
        weights.append(jnp.zeros(shape[-1]))
    return weights


def logits(weights, x):
    *layers, last, bias = weights
    for number, stride in enumerate((1, 1, 2)):
        w, b = layers[2 * number : 2 * number + 2]
        x = lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x + b)
    return x.reshape(len(x), -1) @ last + bias


def loss(weights, images, labels):
    return -(jax.nn.one_hot(labels, 10) * jax.nn.log_softmax(logits(weights, images))).sum(-1).mean()


def step(weights, speeds, images, labels):
    value, gradients = jax.value_and_grad(loss)(weights, images, labels)
    speeds = jax.tree.map(lambda speed, gradient: MOMENTUM * speed - RATE * gradient, speeds, gradients)
    return value, jax.tree.map(jnp.add, weights, speeds), speeds


def right(weights, images, labels):
    return (logits(weights, images).argmax(-1) == labels).mean()


def train(program, weights, images, labels, order, options, title, losses, seconds):
    """Trains until the end of an epoch whenever it is asked for the next one, and gives the weights then.

    The loss and the time of each step are added to lists.
    """
    speeds = jax.tree.map(jnp.zeros_like, weights)
    for epoch in range(1, options.epochs + 1):
        # As many batches as are whole: a program is compiled for one shape.
        batches = order.permutation(len(images))[: len(images) // options.batch * options.batch]
        with tqdm(batches.reshape(-1, options.batch), desc=f"{title:<12} epoch {epoch}/{options.epochs}") as bar:
            for batch in bar:
                start = perf_counter()
                value, weights, speeds = program(weights, speeds, images[batch], labels[batch])
                losses.append(float(value))  # waits for the step
                seconds.append(perf_counter() - start)
                bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
        yield weights


def draw(path, losses, seconds):
    """Save the losses, each the mean of 20 steps, against the steps and against their time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for title, style in zip(losses, ("-", "--"), strict=True):
        count = min(20, len(losses[title]))
        means = np.convolve(losses[title], np.ones(count) / count, "valid")
        left.semilogy(means, style, label=title)
        right.semilogy(median(seconds[title]) * np.arange(len(means)), means, style, label=title)
    left.set(title="The losses are the same", xlabel="step", ylabel="loss, mean of 20 steps")
    right.set(title="The times are not", xlabel="steps × median time of a step (s)")
    left.legend()
    figure.savefig(path, dpi=110)


def main():
    options = arguments()
    # Channels last, as convolutions of Flax and Haiku have them.
    train_set, test_set = ((part.images.transpose(0, 2, 3, 1), part.labels) for part in digits.load())
    first = initial(options.width, np.random.default_rng(0))
    count, threads = sum(w.size for w in first), convgrad_cy.get_num_threads()
    print(f"{len(train_set[0])} digits, {count:,} weights, epochs: {options.epochs}, threads: {threads}")

    kernels = {"XLA": nullcontext, "convgrad_cy": convgrad_cy.jax.enabled}
    tests, losses, seconds, runs, trained = {}, {}, {}, {}, {}
    for title in kernels:
        with kernels[title]():  # a program keeps the kernels for which it is compiled
            batch = train_set[0][: options.batch], train_set[1][: options.batch]
            program = jax.jit(step).lower(first, first, *batch).compile()
            tests[title] = jax.jit(right).lower(first, *test_set).compile()
        losses[title], seconds[title], order = [], [], np.random.default_rng(0)
        runs[title] = train(program, first, *train_set, order, options, title, losses[title], seconds[title])
    # In turn, an epoch each, so that other programs on the machine slow down both.
    for _ in range(options.epochs):
        for title in kernels:
            trained[title] = next(runs[title])

    print(f"\n{'convolutions by':<18}{'all steps':>10}{'median step':>15}{'test accuracy':>16}")
    for title in kernels:
        accuracy = float(tests[title](trained[title], *test_set))
        print(f"{title:<18}{sum(seconds[title]):>8.2f} s{1e3 * median(seconds[title]):>12.2f} ms{accuracy:>16.2%}")
    theirs, ours = map(median, seconds.values())
    print(f"\nThe median step with convgrad_cy was {theirs / ours:.2f} times as fast as with XLA's own kernels.")
    status = convgrad_cy.jax.status()
    passed_on = sum(status.passed_on.values())
    print(f"convgrad_cy compiled {sum(status.lowered.values())} convolutions and left {passed_on} to XLA.")
    if options.plot:
        draw(options.plot, losses, seconds)


if __name__ == "__main__":
    main()
