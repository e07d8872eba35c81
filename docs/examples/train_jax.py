"""Train a convolutional network with JAX on a CPU twice: with XLA's own kernels and with convgrad_cy's.

    python docs/examples/train_jax.py

It reads handwritten digits: 1,347 to learn from and 450 to be tested on. Both begin with the same weights and see the
same batches in the same order. The model is plain JAX. The only difference is ``with convgrad_cy.jax.enabled():``
around its compilation.
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
    def positive(text):
        if int(text) < 1:
            raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
        return int(text)

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=positive, default=10, help="passes over the digits (default: 10)")
    parser.add_argument("--batch", type=positive, default=32, help="digits in a step, at most 1347 (default: 32)")
    parser.add_argument("--width", type=positive, default=64, help="channels of the first layer (default: 64)")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and of the order (default: 0)")
    options = parser.parse_args()
    if options.batch > 1347:
        parser.error(f"--batch must be at most 1347, not {options.batch}")
    return options


def initial(width, random):
    """Filters (height, width, inputs, outputs) and their biases, then the last layer's."""
    shapes = (3, 3, 1, width), (3, 3, width, 2 * width), (3, 3, 2 * width, 2 * width), (2 * width * 4 * 4, 10)
    weights = []
    for shape in shapes:
        deviation = np.sqrt(2 / np.prod(shape[:-1]))
        weights.append(jnp.asarray(deviation * random.standard_normal(shape), "float32"))
        weights.append(jnp.zeros(shape[-1]))
    return weights


def logits(weights, images):
    *layers, last, bias = weights
    x = images
    for number, stride in enumerate((1, 1, 2)):
        w, b = layers[2 * number : 2 * number + 2]
        x = lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x + b)
    return x.reshape(len(x), -1) @ last + bias


def loss(weights, images, labels):
    chosen = jax.nn.one_hot(labels, 10) * jax.nn.log_softmax(logits(weights, images))
    return -chosen.sum(-1).mean()


def step(weights, speeds, images, labels):
    """SGD with momentum."""
    value, gradients = jax.value_and_grad(loss)(weights, images, labels)
    speeds = jax.tree.map(lambda speed, gradient: MOMENTUM * speed - RATE * gradient, speeds, gradients)
    return value, jax.tree.map(jnp.add, weights, speeds), speeds


def right(weights, images, labels):
    """The part of the images whose digit is recognised."""
    return (logits(weights, images).argmax(-1) == labels).mean()


def train(program, weights, images, labels, order, options, title, seconds):
    """Trains until the end of an epoch whenever it is asked for the next one, and gives the weights then.

    The time of each step is added to a list.
    """
    speeds = jax.tree.map(jnp.zeros_like, weights)
    for epoch in range(1, options.epochs + 1):
        # As many batches as are whole: a program is compiled for one shape.
        batches = order.permutation(len(images))[: len(images) // options.batch * options.batch]
        with tqdm(batches.reshape(-1, options.batch), desc=f"{title:<12} epoch {epoch}/{options.epochs}") as bar:
            for batch in bar:
                start = perf_counter()
                value, weights, speeds = program(weights, speeds, images[batch], labels[batch])
                value = float(value)  # waits for the step
                seconds.append(perf_counter() - start)
                bar.set_postfix(loss=f"{value:.3f}", refresh=False)
        yield weights


def main():
    options = arguments()
    # Channels last, as convolutions of Flax and Haiku have them.
    train_set, test_set = ((part.images.transpose(0, 2, 3, 1), part.labels) for part in digits.load())
    first = initial(options.width, np.random.default_rng(options.seed))
    count = sum(w.size for w in first)
    threads = convgrad_cy.get_num_threads()
    print(f"{len(train_set[0])} digits, {count:,} weights, epochs: {options.epochs}, threads: {threads}")

    kernels = {"XLA": nullcontext, "convgrad_cy": convgrad_cy.jax.enabled}
    tests, seconds, runs, trained = {}, {}, {}, {}
    for title in kernels:
        with kernels[title]():  # a program keeps the kernels for which it is compiled
            batch = train_set[0][: options.batch], train_set[1][: options.batch]
            program = jax.jit(step).lower(first, first, *batch).compile()
            tests[title] = jax.jit(right).lower(first, *test_set).compile()
        seconds[title], order = [], np.random.default_rng(options.seed)
        runs[title] = train(program, first, *train_set, order, options, title, seconds[title])
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


if __name__ == "__main__":
    main()
