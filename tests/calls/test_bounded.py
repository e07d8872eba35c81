"""Caches are bounded in bytes for any plans. The oldest entry goes first, and no thread disturbs another."""

import os
import signal
import threading
from collections import OrderedDict
from time import sleep

import numpy as np
import pytest

import convgrad_cy as cg
from convgrad_cy import calls, cpu, dtypes
from convgrad_cy.cpu.direct.plan import PLANS_BYTES, plan
from convgrad_cy.cpu.plan.job import Job
from convgrad_cy.memo import bounded
from convgrad_cy.memo.bounded import ENTRY_BYTES, MOST_BYTES, Bounded
from convgrad_cy.problem import DGRAD, ConvProblem

LONG, LONGER = 700, 720  # strides whose plans are much larger than an entry


def inputs(stride):
    return np.ones((1, 1, 2), np.float32), np.ones((1, 1, stride), np.float32)


def problem_of(stride):
    taps = (1, 1, stride)
    return ConvProblem(1, 1, 1, 1, (1, 1, 2 * stride - 1), (1, 1, 2), taps, taps, pad_begin=(0, 0, 1))


def transposed(stride):
    """Call conv_transpose with a plan of ``stride`` walks."""
    y, w = inputs(stride)
    result = cg.conv_transpose(y, w, stride=stride, padding=[(1, 0)], algorithm="direct")
    assert result.shape == (1, 1, 2 * stride - 1) and (result == 1).all()


def test_the_oldest_goes_first():
    cache = Bounded(4 * ENTRY_BYTES)
    for key in range(6):
        cache.keep(key, str(key), 0)
        assert cache.get(key) == str(key)
    assert list(cache.entries) == [2, 3, 4, 5]
    cache.keep(2, "again", 0)  # the newest now
    cache.keep(6, "6", ENTRY_BYTES)  # replaces two
    assert cache.entries == {5: "5", 2: "again", 6: "6"}
    assert cache.bytes == 4 * ENTRY_BYTES
    assert cache.get(3) is None


def test_too_large_for_itself_alone():
    cache = Bounded(4 * ENTRY_BYTES)
    for key in range(2):
        cache.keep(key, key, 0)
    cache.keep(1, "large", 4 * ENTRY_BYTES)
    assert cache.entries == {0: 0}
    assert cache.bytes == ENTRY_BYTES
    cache.clear()
    assert (len(cache), cache.bytes) == (0, 0)


def test_many_threads():
    """Threads that keep, find and clear at once, each in the midst of another's work, must leave a correct sum."""

    class Slow(OrderedDict):
        def pop(self, *arguments):
            sleep(0)
            return super().pop(*arguments)

    cache, failed = Bounded(9 * ENTRY_BYTES), []
    cache._sizes = Slow()

    def work(first):
        try:
            for i in range(400):
                cache.keep((first + i) % 23, i, i % 5 * ENTRY_BYTES)
                cache.get(i % 23)
                if i % 97 == first:
                    cache.clear()
        except Exception as error:  # any error fails the test
            failed.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert cache.entries.keys() == cache._sizes.keys()
    assert cache.bytes == sum(cache._sizes.values()) <= cache.most


@pytest.mark.parametrize("function", ("pop", "popitem", "__setitem__"))
def test_cleared_from_within(function):
    """A cache cleared from within must stay correct: a signal handler may change a setting while a plan is kept."""
    cache, handlers = Bounded(4 * ENTRY_BYTES), []

    class Interrupted(OrderedDict):
        pass

    def interrupted(*arguments, **options):
        result = getattr(OrderedDict, function)(*arguments, **options)
        if handlers:
            handlers.pop()()
        return result

    setattr(Interrupted, function, interrupted)
    cache._sizes = Interrupted()
    for first in range(3):
        for key in range(6):
            cache.keep((first, key), key, 0, cache.generation)
        handlers.append(cache.clear)
        cache.keep("old", 1, 0, cache.generation)
        assert handlers == [] and cache.get("old") is None
    for key in range(9):
        cache.keep(key, key, 0, cache.generation)
        assert cache.get(key) == key and len(cache) <= 5


def test_a_generation_that_is_over():
    cache = Bounded()
    before = cache.generation
    cache.clear()
    cache.keep(1, "old", 0, before)
    assert cache.get(1) is None
    cache.keep(1, "new", 0, cache.generation)
    cache.keep(1, "old", 0, before)
    assert cache.get(1) == "new"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_does_not_wait_for_the_parents_thread():
    holds, ends = threading.Event(), threading.Event()

    def hold():
        with bounded._lock.held:
            holds.set()
            ends.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait()
    child = os.fork()
    if child == 0:  # the child ends by itself, or by the signal
        signal.alarm(20)
        Bounded().keep(1, 1, 0)
        os._exit(0)
    ends.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_calls_know_their_plans(monkeypatch):
    """The size of an entry must include the bytes of both algorithms' steps if there are two."""
    monkeypatch.setattr(calls, "_KNOWN", Bounded())
    kept, ready = [], Job.ready

    def noted(job, numbers):
        kept.append(job.plan)
        return ready(job, numbers)

    monkeypatch.setattr(Job, "ready", noted)
    x, w = np.ones((1, 8, 20, 20), np.float32), np.ones((8, 8, 3, 3), np.float32)
    for call in (lambda: transposed(LONG), lambda: cg.conv(x, w, algorithm="winograd")):
        kept.clear()
        calls.forget()
        call()
        assert calls._KNOWN.bytes == ENTRY_BYTES + sum(plan.steps.nbytes for plan in kept) > ENTRY_BYTES
    assert len(kept) == 2


@pytest.mark.parametrize("fresh", (True, False))
def test_large_plans_go(monkeypatch, fresh):
    """As many calls with large plans must stay as fit, whether or not their plans are remembered."""
    largest = plan(DGRAD, problem_of(LONGER), dtypes.TABLE[2], True, cpu.this_machine())
    monkeypatch.setattr(calls, "_KNOWN", Bounded(6 * (largest.steps.nbytes + ENTRY_BYTES)))
    for _ in range(2):
        for stride in range(LONG, LONGER):
            if fresh:
                plan.cache_clear()
            transposed(stride)
            assert calls._KNOWN.bytes <= calls._KNOWN.most
    assert len(calls._KNOWN) == 6


def test_plans_are_bounded():
    plan.cache_clear()
    for stride in range(4000, 4040):
        found = plan(DGRAD, problem_of(stride), dtypes.TABLE[2], True, cpu.this_machine())
        assert found.steps.nbytes + ENTRY_BYTES <= plan.known.bytes <= PLANS_BYTES
    assert len(plan.known) < 20
    plan.cache_clear()


def test_the_bounds_are_those_of_the_document():
    assert (MOST_BYTES, PLANS_BYTES) == (64 << 20, 16 << 20)
    assert calls._KNOWN.most == MOST_BYTES
