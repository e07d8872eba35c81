"""PyTorch's kernels and ours in turn, in one network with one optimizer, so that all else is equal."""

import contextlib
import time
from statistics import median

import torch

import convgrad_cy
from bench.peers import OURS
from bench.training import FRAMEWORKS
from convgrad_cy import cpu

from .noise import noisy
from .steps import steps_of

DTYPES = FRAMEWORKS["torch"].dtypes
#: Steps of each library that the profiler sees.
PROFILED = 3
SIDES = ("torch", OURS)
#: The operators as the profiler names them: the ones that do not contain each other, and the ones that our kernels are
#: part of.
WHOLE = ("aten::convolution", "aten::convolution_backward")
PARTS = ("aten::_convolution", "aten::convolution_backward")


def set_up(threads):
    torch.set_num_threads(threads)


def about():
    return {
        "torch": {"version": f"{torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"},
        OURS: {"version": f"{convgrad_cy.__version__}, {cpu.isa}"},
    }


def reference(model, count):
    """The first losses in float64, in float32, and, for each type, in each run with noise."""
    exact, steps = steps_of(model, dtype="float64").losses(count), steps_of(model)
    return exact, steps.losses(count), {dtype: noisy(steps, dtype, count) for dtype in DTYPES}


def kernels(side):
    """The context in which a library's kernels compute. Only the worker of a row needs this package."""
    if side == "torch":
        return contextlib.nullcontext()
    from convgrad_cy import torch as ours

    return ours.enabled()


def passed_on():
    """The calls of our kernels that went to PyTorch's: "operator: reason" -> number."""
    from convgrad_cy import torch as ours

    return {f"{operator}: {reason}": count for (operator, reason), count in ours.status().passed_on.items()}


class Pair:
    """One network that both sides train."""

    def __init__(self, model, dtype, layout, mode):
        self.steps = steps_of(model, dtype=dtype, layout=layout, mode=mode)

    def losses(self, side, count):
        with kernels(side):
            return self.steps.losses(count)

    def timed(self, side):
        """Seconds of a step from the first weights: a network that has diverged would compute with NaN."""
        self.steps.restart()
        with kernels(side):
            begin = time.perf_counter()
            self.steps.step()
            return time.perf_counter() - begin

    def described(self):
        """Fields of a row that are known after it is timed."""
        return {
            "parameters": sum(p.numel() for p in self.steps.network.parameters()),
            "convolutions": {side: typical(convolutions(self.steps, side) for _ in range(PROFILED)) for side in SIDES},
            "passed_on": passed_on(),
        }


def convolutions(steps, side):
    """The share of a step's time that convolutions take, forward and backward, and that our kernels' biases take."""
    steps.restart()
    with torch.profiler.profile() as profile, kernels(side):
        begin = time.perf_counter()
        steps.step()
        seconds = time.perf_counter() - begin

    def share(names, parents=None):
        events = (event for event in profile.events() if event.name in names)
        parents_of = (event for event in events if parents is None or getattr(event.cpu_parent, "name", "") in parents)
        return 1e-6 * sum(event.cpu_time_total for event in parents_of) / seconds

    found = {"all": share(WHOLE)}
    # PyTorch's kernels add the bias themselves; ours leave it to these two operators.
    return found if side == "torch" else {**found, "bias": share(("aten::add_", "aten::sum"), PARTS)}


def typical(shares):
    """The median of each field."""
    shares = list(shares)
    return {field: median(share[field] for share in shares) for field in shares[0]}
