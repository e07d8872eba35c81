"""How far the loss of a step may be from the one in float64: derived from what one convolution may be off.

An element of a convolution's result may differ from the exact one by a share of the greatest element (verify.py). What
becomes of that after tens of layers, and after several steps, depends on the network, so it is measured: the same steps
run with every result of a convolution, and every gradient of one, changed by that share with random signs. How far
these losses lie from the undisturbed ones is what the kernels' freedom does to a loss. Both libraries are held to it.

The runs with noise are in float32: its own rounding, 6e-8, is nothing beside a noise of 2e-5.
"""

from math import fsum, isfinite, sqrt

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bench.verify import TOLERANCES

aten = torch.ops.aten
CONVOLUTIONS = (aten.convolution.default, aten.convolution_backward.default)
#: What autocast computes in bfloat16 besides.
PRODUCTS = (aten.mm.default, aten.addmm.default, aten.bmm.default)
#: Runs with noise. A loss's distance is a sum of many small random ones, so nearly normal: four times the root of their
#: mean square is exceeded about never, even where a mean of three is too small by half.
DRAWS, SIGMAS = 3, 4.0
#: bfloat16's unit roundoff u. A value that is rounded is off by 0.42 u as root mean square: u/√3 at 1, half of that at
#: 2. Autocast rounds both operands of a product, each covered by half a roundoff with a random sign; a weight is off by
#: the same everywhere, so that does not cancel between positions. It rounds the result, the norm of it and the sum with
#: a shortcut: together 0.73 u, covered by a whole one.
ROUNDOFF = 2.0**-8
#: Signs that are drawn, and how far apart results begin in them: prime, so all are in use before one comes again.
SIGNS, BEGINS = 1_000_003, 7919


class Noise(TorchDispatchMode):
    """Results of convolutions are changed by what a kernel for the type may be off."""

    def __init__(self, dtype, seed):
        super().__init__()
        self.rounds = dtype == "bfloat16"
        # Drawing a sign for each element would take longer than the steps. No result begins where another one did.
        self.pool = torch.randn(SIGNS, generator=torch.Generator().manual_seed(seed)).sign()
        self.begin = 0

    def signs(self, result):
        self.begin = (self.begin + BEGINS) % SIGNS
        count = -(-(self.begin + result.numel()) // SIGNS)
        return self.pool.repeat(count)[self.begin : self.begin + result.numel()].view(result.shape)

    def changed(self, tensor, of_greatest, of_each=0.0):
        """Each element moves by a share of the greatest one and by a share of itself."""
        if tensor is None:
            return None
        return tensor + self.signs(tensor) * (of_greatest * tensor.abs().max() + of_each * tensor.abs())

    def rounded(self, operand):
        is_operand = isinstance(operand, torch.Tensor) and operand.ndim > 1
        return self.changed(operand, 0.0, ROUNDOFF / 2) if is_operand else operand

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if operation not in CONVOLUTIONS and not (self.rounds and operation in PRODUCTS):
            return operation(*args, **kwargs)
        if self.rounds:
            args = [self.rounded(arg) for arg in args]
        results = operation(*args, **kwargs)
        off = TOLERANCES["float32"], (ROUNDOFF if self.rounds else 0.0)
        if isinstance(results, torch.Tensor):
            return self.changed(results, *off)
        return tuple(self.changed(result, *off) for result in results)


def noisy(steps, dtype, count):
    """Losses of the first steps, a list for each draw."""
    runs = []
    for seed in range(DRAWS):
        with Noise(dtype, seed):
            runs.append(steps.losses(count))
    return runs


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
