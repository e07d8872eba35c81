"""Slow kernels for tests of ``enable(benchmark=...)``: a sleep that is much longer than any call of these tests."""

import time

import torch

import convgrad_cy.torch as override
from convgrad_cy.calls import prepared
from convgrad_cy.torch import choices, kernels

SLEEP = 0.1


class _Slow:
    """The work of a plan after a pause."""

    def __init__(self, work):
        self._work = work

    def run(self, *addresses):
        time.sleep(SLEEP)
        return self._work.run(*addresses)


def slow_ours(monkeypatch, *names):
    """Let our functions with these names pause."""
    original = prepared.prepare

    def prepare(function, *rest):
        work = original(function, *rest)
        return _Slow(work) if function.name in names else work

    monkeypatch.setattr(prepared, "prepare", prepare)


def slow_theirs(monkeypatch, operator, is_slow=lambda *call: True, before=lambda: None):
    """Let PyTorch's kernel pause at the calls for which ``is_slow`` holds. ``before`` is called first."""
    with override.enabled():
        pass  # the kernels are registered, so they know the earlier ones
    kernel = kernels.KERNELS[operator]
    original = kernel.previous

    def previous(*call):
        before()
        if is_slow(*call):
            time.sleep(SLEEP)
        return original(*call)

    monkeypatch.setattr(kernel, "previous", previous)


def forget():
    """Drop all choices and plans of this process."""
    choices._opened.clear()
    kernels.forget()


def settled(call, expected=None):
    """The result of the first call after the choice. All results must be ``expected``, the exact one."""
    for _ in range(100):
        result = call()
        if expected is not None:
            assert all(map(torch.equal, result, expected))
        if override.status().benchmark.measuring == 0:
            return call()
    raise AssertionError("no choice after 100 calls")
