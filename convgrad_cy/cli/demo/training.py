"""The demo from start to end: gradient checks, training, and a report of both."""

from statistics import median
from time import perf_counter

import numpy as np

from convgrad_cy.cli import output
from convgrad_cy.cli.demo import digits, gradient_check, plot
from convgrad_cy.cli.demo.network import Adam, Network

BATCH = 32
RATE = 4e-3
MINIMUM_ACCURACY = 0.97


def report_checks(checks):
    output.line("gradient check, float64, against central finite differences")
    output.line(f"  {'operation':<32}{'max relative error':<20}result")
    for check in checks:
        verdict = "pass" if check.passed else f"FAIL (allowed: {check.tolerance:.0e})"
        output.line(f"  {check.name:<32}{check.error:<20.1e}{verdict}")


def rmse(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


def evaluate(network, data):
    """``(accuracy, drawings)``."""
    scores, drawings = network.forward(data.images)
    return float(np.mean(scores.argmax(axis=1) == data.labels)), drawings


def train(network, train_set, test_set, epochs, rng):
    """``(history, seconds of each step)``."""
    optimizer = Adam(network.parameters)
    history = {"training loss": [], "test accuracy": [], "reconstruction RMSE": []}
    seconds = []
    steps = epochs * (len(train_set.labels) // BATCH)
    for epoch in range(1, epochs + 1):
        order = rng.permutation(len(train_set.labels))
        losses = []
        for begin in range(0, len(order) - BATCH + 1, BATCH):
            batch = order[begin : begin + BATCH]
            start = perf_counter()
            losses.append(network.loss(train_set.images[batch], train_set.labels[batch]))
            # The rate falls along half a cosine to zero, so that training ends at rest wherever the seed began it.
            optimizer.step(RATE * 0.5 * (1 + np.cos(np.pi * len(seconds) / steps)))
            seconds.append(perf_counter() - start)
        accuracy, drawings = evaluate(network, test_set)
        history["training loss"].append(float(np.mean(losses)))
        history["test accuracy"].append(accuracy)
        history["reconstruction RMSE"].append(rmse(drawings, test_set.images))
        reached = f"loss {np.mean(losses):.3f}  test accuracy {accuracy:.2%}"
        output.progress(epoch, epochs, f"epoch {epoch}/{epochs}  {reached}")
    output.clear_progress()
    return history, seconds


def demo(epochs, seed, plot_file=None):
    """Print the report; True if every gradient check passed and the accuracy is sufficient."""
    start = perf_counter()
    train_set, test_set = digits.load()
    few = digits.load(np.float64)[0]
    checks = [*gradient_check.check_operations(), gradient_check.check_network(few.images[:8], few.labels[:8])]
    report_checks(checks)

    rng = np.random.default_rng(seed)
    network = Network(rng)
    weights = sum(parameter.value.size for parameter in network.parameters)
    output.line(f"\ntraining on {len(train_set.labels)} handwritten digits, float32")
    output.line(f"  {weights} weights, {epochs} epochs, seed {seed}")
    history, seconds = train(network, train_set, test_set, epochs, rng)

    accuracy, drawings = evaluate(network, test_set)
    enough = accuracy >= MINIMUM_ACCURACY
    baseline = rmse(train_set.images.mean(axis=0), test_set.images)
    verdict = "" if enough else f", FAIL (required: {MINIMUM_ACCURACY:.0%})"
    output.line(f"  test accuracy          {accuracy:.2%} of {len(test_set.labels)} digits not trained on{verdict}")
    output.line(f"  reconstruction RMSE    {rmse(drawings, test_set.images):.3f} (the mean image: {baseline:.3f})")
    output.line(
        f"  time per step          {1e3 * median(seconds):.2f} ms (median of {len(seconds)} steps of {BATCH} digits)"
    )
    if plot_file is not None:
        plot.save(plot_file, history, test_set.images, drawings)
        output.line(f"  plot                   {plot_file}")
    output.line(f"  total time             {perf_counter() - start:.1f} s")
    return enough and all(check.passed for check in checks)
