"""The process that computes complaints: python -m bench.complaints.worker NAME THREADS, asked as bench/worker.py is."""

import time
from math import ceil

import jax
import numpy as np
from jax import numpy as jnp

from bench.peers import OURS
from bench.training.jax.trainer import SIDES, WAIT, about, set_up
from bench.verify import PEER_SLACK, TOLERANCES
from bench.worker import one_line, relative_error, serve
from convgrad_cy import jax as ours

from . import COMPLAINTS, cases

#: Calls that are shorter than this are timed several at once.
LEAST_SECONDS = 0.01


def drawn(dtype, seed=0):
    """A function that draws an array of random normals of a shape."""
    random = np.random.default_rng(seed)

    def draw(*shape):
        return jnp.asarray(random.standard_normal(shape), dtype)

    return draw


def compiled(function, operands):
    return jax.jit(function).lower(*operands).compile()


def timed(program, operands, calls):
    """Seconds of a call. The clock starts when the threads of the other side sleep."""
    time.sleep(WAIT)
    begin = time.perf_counter()
    for _ in range(calls):
        results = program(*operands)
    jax.block_until_ready(results)
    return (time.perf_counter() - begin) / calls


def error(results, expected):
    """The greatest relative error of the arrays of a result."""
    pairs = zip(jax.tree.leaves(results), jax.tree.leaves(expected), strict=True)
    return max(relative_error(np.asarray(result), np.asarray(right)) for result, right in pairs)


class Worker:
    def about(self):
        return about()

    def measure(self, complaint, seconds, pairs):
        """Compare both sides with our result in float64, then time them in turn, at least ``pairs`` times each."""
        about = COMPLAINTS[complaint]
        function, operands = getattr(cases, complaint)(drawn(about.dtype))
        exactly = [operand.astype("float64") for operand in operands]
        programs = {SIDES[0]: compiled(function, operands)}
        with ours.enabled():
            programs[OURS] = compiled(function, operands)
            expected = compiled(function, exactly)(*exactly)  # XLA would take minutes in float64
        found, calls = {"errors": {}}, {}
        for side, slack in zip(SIDES, (PEER_SLACK, 1), strict=True):
            begin = time.perf_counter()
            results = jax.block_until_ready(programs[side](*operands))
            calls[side] = ceil(LEAST_SECONDS / (time.perf_counter() - begin))
            found["errors"][side] = error(results, expected)
            allowed = slack * about.depth * TOLERANCES[about.dtype]
            if not found["errors"][side] <= allowed:
                return {**found, "wrong": f"{side}: off by {found['errors'][side]:.1e}, may be off by {allowed:.1e}"}
        found["seconds"], turn = {side: [] for side in SIDES}, 0
        end = time.perf_counter() + seconds
        while turn < pairs or time.perf_counter() < end:
            for side in SIDES[:: 1 if turn % 2 == 0 else -1]:
                found["seconds"][side].append(timed(programs[side], operands, calls[side]))
            turn += 1
        return {**found, "passed_on": ours.status().passed_on}

    def answer(self, request):
        """The reply to a decoded request. An error is a reply, too."""
        try:
            return getattr(self, request.pop("do"))(**request)
        except Exception as error:
            return {"failed": one_line(error)}


def worker(name, threads):
    set_up(threads)
    return Worker()


if __name__ == "__main__":
    serve(worker)
