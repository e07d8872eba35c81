"""Times our kernel and PyTorch's for a shape, and chooses: ``enable(benchmark=True)``.

Each call of a shape is computed by one *candidate*, and the candidates take turns. So no call is computed twice, and
each candidate finds the caches as it will find them later. A forward call has two candidates. A backward call with both
gradients has four, because the two gradients may have different owners.
"""

from threading import Lock
from time import perf_counter

import torch
from torch.fx import _symbolic_trace

from .._aten import Untraced
from .choices_file import OURS, THEIRS, Choice

#: Calls of each candidate before the first that counts. They make caches, and PyTorch compiles code for a new shape.
_UNCOUNTED = 1
#: Counted calls after which a candidate that is `_CLEARLY` slower than the fastest is left out, and most of them.
_FEWEST, _MOST = 3, 9
_CLEARLY = 1.25
#: A candidate that is less slow than this, compared with the fastest, is as fast. The first of these is chosen.
_TIE = 1.02

#: The reasons of calls that PyTorch computes because of a trial.
MEASURED = "a measurement of PyTorch's kernel"
SLOWER = "PyTorch's kernel was measured to be faster"


def _candidates(plan, mask):
    """Name -> plan of each candidate, in the order in which ties are broken.

    ``plan`` is ours, and ``mask`` tells which of (dx, dw, gradient of the bias) a backward call wants.
    """
    found = {OURS: plan}
    if mask is not None and mask[0] and mask[1]:
        data, filter, _ = plan
        found[f"{OURS}+{THEIRS}"] = data, None, [False, True, mask[2]]
        found[f"{THEIRS}+{OURS}"] = None, filter, [True, False, False]
    return {**found, THEIRS: SLOWER}


def may_measure():
    """Whether no graph is being recorded, and PyTorch has not been asked for equal results in each run."""
    return not (
        torch.compiler.is_compiling()
        or getattr(_symbolic_trace, "_is_fx_tracing_flag", False)
        or torch._guards.TracingContext.try_get() is not None
        or torch.are_deterministic_algorithms_enabled()
    )


class Trial:
    """The calls of one shape until its candidate is chosen.

    ``keep(plan)`` keeps the plan for later calls. One thread measures at a time: the calls of others would disturb the
    measurement, so ours computes them, untimed.
    """

    def __init__(self, plans, choices, key, keep):
        self._plans, self._choices, self._key, self._keep = plans, choices, key, keep
        self._times = {name: [] for name in plans}
        self._left = list(plans)
        self._lock = Lock()

    def __call__(self, kernel, key, call):
        """The result of a call."""
        choice = self._choices.get(self._key)
        if choice is not None:
            return kernel.run(self._kept(choice), key, call)
        if not may_measure() or not self._lock.acquire(blocking=False):
            return kernel.run(self._plans[OURS], key, call)
        try:
            return self._measured(kernel, key, call)
        finally:
            self._lock.release()

    def _measured(self, kernel, key, call):
        name = min(self._left, key=lambda name: len(self._times[name]))
        plan = MEASURED if name == THEIRS else self._plans[name]
        begin = perf_counter()
        result = kernel.run(plan, key, call)
        self._times[name].append(perf_counter() - begin)
        chosen = self._chosen()
        if chosen is not None:
            times = {name: round(1e6 * self._shortest(name), 3) for name in self._plans}
            self._kept(self._choices.decide(self._key, Choice(chosen, times)))
        return result

    def _shortest(self, name):
        """The shortest counted time of a candidate: other programs only add to it."""
        return min(self._times[name][_UNCOUNTED:])

    def _chosen(self):
        """The name of the chosen candidate after a full round, or None while more calls are needed."""
        counted = {len(self._times[name]) - _UNCOUNTED for name in self._left}
        if len(counted) > 1 or min(counted) < _FEWEST:
            return None
        times = {name: self._shortest(name) for name in self._left}
        fastest = min(times.values())
        self._left = [name for name in self._left if times[name] <= _CLEARLY * fastest]
        if len(self._left) > 1 and min(counted) < _MOST:
            return None
        return next(name for name in self._left if times[name] <= _TIE * fastest)

    def _kept(self, choice):
        """The plan of a choice, which is kept for later calls."""
        plan = self._plans[choice.candidate]
        self._keep(plan)
        return plan


def of(plan, mask, choices, key, keep):
    """The plan to keep for a new call: the plan of its choice, or an untraced `Trial`.

    ``plan`` and ``mask`` are as in `_candidates`; ``key`` is the call in `Choices`, and ``keep`` as in `Trial`.
    """
    if not choices.accepts(key) or (mask is not None and not any(mask[:2])):
        return plan
    plans, choice = _candidates(plan, mask), choices.get(key)
    return Untraced(Trial(plans, choices, key, keep)) if choice is None else plans[choice.candidate]
