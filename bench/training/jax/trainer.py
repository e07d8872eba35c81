"""Two programs of JAX in turn: the same function, compiled with our lowering rule and without it."""

import time

import jax

import convgrad_cy
from bench.peers import OURS
from bench.training.agreement import DRAWS
from convgrad_cy import cpu
from convgrad_cy import jax as ours

from .noise import Noisy, signs
from .steps import Steps

SIDES = ("jax", OURS)
#: Seconds before a side's turn. OpenMP's threads spin for some milliseconds after our last convolution. They must not
#: take processors from XLA's step.
WAIT = 0.02


def set_up(threads):
    # JAX has no setting for threads: it takes as many as the process has processors, and bench/worker.py has set these.
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)  # for the losses in float64
    convgrad_cy.set_num_threads(threads)


def about():
    return {"jax": {"version": jax.__version__}, OURS: {"version": f"{convgrad_cy.__version__}, {cpu.isa}"}}


def reference(model, count):
    """The first losses in float64, in float32, and in each run with noise."""
    noisy = Steps(model, weights_of=Noisy, extra=signs(0, 0))
    runs = [noisy.losses(count, [signs(seed, step) for step in range(count)]) for seed in range(DRAWS)]
    return Steps(model, "float64").losses(count), Steps(model).losses(count), {"float32": runs}


class Pair:
    """One network in two programs."""

    def __init__(self, model, dtype, layout, mode):
        ours.disable()
        self.steps = {"jax": Steps(model, dtype)}
        before = ours.status()
        with ours.enabled():
            self.steps[OURS] = Steps(model, dtype)
        after = ours.status()
        self.lowered = {name: count - before.lowered.get(name, 0) for name, count in after.lowered.items()}
        self.passed_on = {reason: count - before.passed_on.get(reason, 0) for reason, count in after.passed_on.items()}

    def losses(self, side, count):
        return self.steps[side].losses(count)

    def timed(self, side):
        time.sleep(WAIT)
        return self.steps[side].timed()

    def described(self):
        """Fields of a row that are known after it is timed."""
        parameters = sum(w.size for w in self.steps["jax"].weights)
        return {"parameters": parameters, "lowered": self.lowered, "passed_on": self.passed_on}
