"""The process that trains one configuration: python -m bench.training.worker FRAMEWORK THREADS.

It takes requests as bench/worker.py does. ``FRAMEWORK/trainer.py`` has everything that depends on the framework:
`set_up`, `about`, `reference`, the two `SIDES`, and `Pair`, which trains one network with either side.
"""

import time
from importlib import import_module

from bench import models
from bench.worker import one_line, serve

from . import agreement

#: Steps whose losses are compared. After them, each side is warm.
CHECKED = 3


class Worker:
    def __init__(self, framework):
        self.trainer = import_module(f"bench.training.{framework}.trainer")

    def about(self):
        return self.trainer.about()

    def reference(self, model, small=False):
        """Losses in float64, and the allowed distance of a loss for each type."""
        exact, losses, runs = self.trainer.reference(models.chosen(model, small), CHECKED)
        return {"exact": exact, "allowed": {dtype: agreement.distances(losses, runs[dtype]) for dtype in runs}}

    def measure(self, model, dtype, layout, mode, exact, allowed, seconds, pairs, small=False):
        """Check the losses of both sides, then time them in turn: for ``seconds``, and at least ``pairs`` pairs."""
        pair, sides = self.trainer.Pair(models.chosen(model, small), dtype, layout, mode), self.trainer.SIDES
        losses = {}
        for side in sides:
            losses[side] = pair.losses(side, CHECKED)
            if fault := agreement.fault(losses[side], exact, allowed):
                return {"losses": losses, "wrong": f"{side}: {fault}"}
        found, turn = {side: [] for side in sides}, 0
        end = time.perf_counter() + seconds
        while turn < pairs or time.perf_counter() < end:
            for side in sides[:: 1 if turn % 2 == 0 else -1]:  # ABBA, so that neither is always first
                found[side].append(pair.timed(side))
            turn += 1
        return {"losses": losses, "seconds": found, **pair.described()}

    def answer(self, request):
        """The reply to a decoded request. An error is a reply, too."""
        try:
            return getattr(self, request.pop("do"))(**request)
        except Exception as error:
            return {"failed": one_line(error)}


def trainer(framework, threads):
    worker = Worker(framework)
    worker.trainer.set_up(threads)
    return worker


if __name__ == "__main__":
    serve(trainer)
