"""How far the loss of a step may be from the one in float64: derived from what one convolution may be off.

An element of a convolution's result may differ from the exact one by a share of the greatest element (verify.py). What
becomes of that after tens of layers, and after several steps, depends on the network, so it is measured: the same steps
run with every result of a convolution, and every gradient of one, changed by that share with random signs. How far
these losses lie from the undisturbed ones is what the kernels' freedom does to a loss. Both libraries are held to it.

The runs with noise are in float32: its own rounding, 6e-8, is nothing beside a noise of 2e-5. Each framework makes them
in its own file noise.py.
"""

from math import fsum, isfinite, sqrt

#: Runs with noise. A loss's distance is a sum of many small random ones, so nearly normal: four times the root of their
#: mean square is exceeded about never, even where a mean of three is too small by half.
DRAWS, SIGMAS = 3, 4.0


def distances(losses, runs):
    """The allowed distance of each step. Weights only drift apart, so no step is held closer than the one before."""
    allowed = []
    for i, loss in enumerate(losses):
        square = fsum((run[i] - loss) ** 2 for run in runs) / len(runs)
        allowed.append(max([SIGMAS * sqrt(square), *allowed[-1:]]))
    return allowed


def fault(losses, exact, allowed):
    """What is wrong with the losses, or None."""
    for step, (loss, right, distance) in enumerate(zip(losses, exact, allowed, strict=True)):
        if not isfinite(loss):
            return f"the loss of step {step} is {loss}"
        if not abs(loss - right) <= distance:
            return f"the loss of step {step} is {loss:.6g}; in float64 {right:.6g}, may be off by {distance:.1e}"
    return None
