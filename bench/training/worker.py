"""The process that trains one configuration: python -m bench.training.worker NAME THREADS, asked as bench/worker.py is.

PyTorch's kernels and ours take turns in it, in one network with one optimizer, so all else is the same.
"""

import contextlib
import time
from statistics import median

import torch

import convgrad_cy
from bench import models
from bench.peers import OURS
from bench.worker import one_line, serve
from convgrad_cy import cpu

from . import DTYPES, agreement
from .steps import steps_of

#: Steps whose losses are compared; after them each library is warm.
CHECKED = 3
#: Steps of each library that the profiler sees.
PROFILED = 3
#: Turns go ABBA, so that neither library is always the one that runs first.
SIDES = ("torch", OURS)
#: The operators as the profiler names them: those that do not lie in each other, and those that our kernels are of.
WHOLE = ("aten::convolution", "aten::convolution_backward")
PARTS = ("aten::_convolution", "aten::convolution_backward")


def kernels(side):
    """The context in which a library's kernels compute. Only the worker of a row needs this package's."""
    if side == "torch":
        return contextlib.nullcontext()
    from convgrad_cy import torch as ours

    return ours.enabled()


def passed_on():
    """Of our kernels' calls, those that went to PyTorch's: "operator: reason" -> number."""
    from convgrad_cy import torch as ours

    return {f"{operator}: {reason}": count for (operator, reason), count in ours.status().passed_on.items()}


def timed(steps, side):
    """Seconds of a step from the first weights: a network that has diverged computes with what is not finite."""
    steps.restart()
    with kernels(side):
        begin = time.perf_counter()
        steps.step()
        return time.perf_counter() - begin


def convolutions(steps, side):
    """The parts of a step's time that convolutions take, forward and backward, and that biases take in ours."""
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
    # PyTorch's kernels add the bias inside; ours leave it to these two operators.
    return found if side == "torch" else {**found, "bias": share(("aten::add_", "aten::sum"), PARTS)}


def typical(shares):
    """Of each field the median."""
    shares = list(shares)
    return {field: median(share[field] for share in shares) for field in shares[0]}


class Worker:
    def about(self):
        return {
            "torch": {"version": f"{torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"},
            OURS: {"version": f"{convgrad_cy.__version__}, {cpu.isa}"},
        }

    def reference(self, model, small=False):
        """Losses in float64, and for each type how far from them a loss may be."""
        model = models.chosen(model, small)
        exact = steps_of(model, dtype="float64").losses(CHECKED)
        steps = steps_of(model)
        losses = steps.losses(CHECKED)
        allowed = {dtype: agreement.distances(losses, agreement.noisy(steps, dtype, CHECKED)) for dtype in DTYPES}
        return {"exact": exact, "allowed": allowed}

    def measure(self, model, dtype, layout, mode, exact, allowed, seconds, pairs, small=False):
        """Check the losses of both libraries, then time them in turn: for ``seconds``, and at least ``pairs`` pairs."""
        steps = steps_of(models.chosen(model, small), dtype=dtype, layout=layout, mode=mode)
        found = {"losses": {}, "parameters": sum(p.numel() for p in steps.network.parameters())}
        for side in SIDES:
            with kernels(side):
                found["losses"][side] = steps.losses(CHECKED)
            if fault := agreement.fault(found["losses"][side], exact, allowed):
                return {**found, "wrong": f"{side}: {fault}"}
        found["seconds"] = {side: [] for side in SIDES}
        end = time.perf_counter() + seconds
        while len(found["seconds"]["torch"]) < pairs or time.perf_counter() < end:
            turn = len(found["seconds"]["torch"])
            for side in SIDES[:: 1 if turn % 2 == 0 else -1]:
                found["seconds"][side].append(timed(steps, side))
        found["convolutions"] = {side: typical(convolutions(steps, side) for _ in range(PROFILED)) for side in SIDES}
        return {**found, "passed_on": passed_on()}

    def answer(self, request):
        """The reply to a decoded request; what goes wrong is a reply too."""
        try:
            return getattr(self, request.pop("do"))(**request)
        except Exception as error:
            return {"failed": one_line(error)}


def trainer(name, threads):
    torch.set_num_threads(threads)
    return Worker()


if __name__ == "__main__":
    serve(trainer)
