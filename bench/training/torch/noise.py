"""Steps of PyTorch whose convolutions have results and gradients with the noise that ../agreement.py describes."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bench.training.agreement import DRAWS
from bench.verify import TOLERANCES

aten = torch.ops.aten
CONVOLUTIONS = (aten.convolution.default, aten.convolution_backward.default)
#: Further operators that autocast computes in bfloat16.
PRODUCTS = (aten.mm.default, aten.addmm.default, aten.bmm.default)
#: bfloat16's unit roundoff u. A rounded value is off by 0.42 u as root mean square: by u/√3 at 1, and by half of it at
#: 2. Autocast rounds both operands of a product. Half a roundoff with a random sign covers each of them; the error of
#: a weight is the same everywhere, so it does not cancel between positions. Autocast also rounds the result, its norm,
#: and the sum with a shortcut. Together these are 0.73 u; a whole roundoff covers them.
ROUNDOFF = 2.0**-8
#: Number of drawn signs, and distance between the beginnings of two results in them. The number is prime, so all signs
#: are in use before one comes again.
SIGNS, BEGINS = 1_000_003, 7919


class Noise(TorchDispatchMode):
    """A mode in which results of convolutions change by the error that a kernel for the type may have."""

    def __init__(self, dtype, seed):
        super().__init__()
        self.rounds = dtype == "bfloat16"
        # To draw a sign for each element would take longer than the steps. No two results begin at the same sign.
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
