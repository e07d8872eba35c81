"""The allowed distance between the loss of a step and its loss in float64, derived from the error of one convolution.

An element of a convolution's result may differ from the exact one by a share of the greatest element (verify.py). The
effect after tens of layers and several steps depends on the network, so it is measured. The same steps run with noise:
every result and every gradient of a convolution changes by that share, with random signs. The distance of these losses
from the undisturbed ones is the freedom that the kernels have. Both libraries must stay within it.

The runs with noise are in float32. Its own rounding, 6e-8, is negligible compared with a noise of 2e-5. Each framework
makes these runs in its own file noise.py.
"""

from math import fsum, isfinite, sqrt

#: Runs with noise. A loss's distance is a sum of many small random ones, so it is nearly normal. It almost never
#: exceeds four times the root of their mean square, even if a mean of three is too small by half.
DRAWS, SIGMAS = 3, 4.0


def distances(losses, runs):
    """The allowed distance of each step.

    Weights only drift apart, so no distance is less than the one of the step before.
    """
    allowed = []
    for i, loss in enumerate(losses):
        square = fsum((run[i] - loss) ** 2 for run in runs) / len(runs)
        allowed.append(max([SIGMAS * sqrt(square), *allowed[-1:]]))
    return allowed


def fault(losses, exact, allowed):
    """The fault in the losses, or None."""
    for step, (loss, right, distance) in enumerate(zip(losses, exact, allowed, strict=True)):
        if not isfinite(loss):
            return f"the loss of step {step} is {loss}"
        if not abs(loss - right) <= distance:
            return f"the loss of step {step} is {loss:.6g}; in float64 {right:.6g}, may be off by {distance:.1e}"
    return None
