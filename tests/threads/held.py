"""Forks while a thread is in the midst of something: ``python held.py WHERE``.

Prints the exit statuses of the children: 0 where a child computes what the parent does, and its cache is consistent.
"""

import os
import signal
import sys
import threading
import warnings
from collections import OrderedDict

import numpy as np

import convgrad_cy as cg
from convgrad_cy import calls
from convgrad_cy.calls import prepared
from convgrad_cy.cpu.machine import RegisterTile
from convgrad_cy.memo import bounded
from convgrad_cy.settings import algorithm

warnings.simplefilter("ignore", DeprecationWarning)  # Python's own warning that a process with threads forks

RANDOM = np.random.default_rng(0)


def integers(*shape):
    return RANDOM.integers(-4, 5, shape).astype(np.float32)


X, W = integers(2, 32, 40, 40), integers(32, 32, 3, 3)
#: As channels that are summed over many positions: a call takes memory that is kept for the next one.
LARGE = integers(2, 128, 128, 128)
inside, leave = threading.Event(), threading.Event()


def conv(i):
    """One of several calls that are planned each for itself."""
    return cg.conv(X[:, :, i:], W, algorithm="direct").tobytes()


def large():
    return cg.conv(LARGE, np.ones((128, 128, 3, 3), np.float32), algorithm="winograd").tobytes()


class Sizes(OrderedDict):
    """Those of a cache's entries, in which a thread can stop."""


#: Where the other thread stops, in a function of an object, and how it gets there.
STOPS = {
    "keep": (Sizes, "__setitem__", lambda: conv(20)),
    "clear": (Sizes, "clear", calls.forget),
    "property": (RegisterTile, "pairs", lambda: conv(20)),
    "planning": (prepared, "prepare", lambda: conv(20)),
    "setter": (algorithm, "changed", lambda: cg.set_default_algorithm("auto")),
}


def stop(owner, name, act):
    """Let all threads but the main one stop at the end of a function, until the main one has forked; and get there."""
    function = getattr(owner, name)

    def stopping(*arguments):
        result = function(*arguments)
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            leave.wait()
        return result

    setattr(owner, name, stopping)
    act()


def hold_lock():
    with bounded._lock.held:
        inside.set()
        leave.wait()


def compute():
    """Large calls, without an end: most of the time in a kernel, whose memory is taken and given back."""
    while not leave.is_set():
        large()
        inside.set()


def resize():
    """Teams of threads, each larger than the one before."""
    while not leave.is_set():
        for number in range(1, 9):
            with cg.num_threads(number):
                conv(20)
        inside.set()


def fork(work):
    """The exit status of a child that does some work, which says whether it is right."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # ends a child that hangs
        os._exit(0 if work() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def while_another_thread(act, forks, computation):
    calls._KNOWN._sizes, calls._KNOWN.most = Sizes(), 8 * bounded.ENTRY_BYTES
    expected = computation()
    thread = threading.Thread(target=act)
    thread.start()
    inside.wait()

    def work():
        cache, same = calls._KNOWN, all(computation() == expected for _ in range(2))
        return same and cache.bytes == sum(cache._sizes.values()) and cache.entries.keys() == cache._sizes.keys()

    statuses = {fork(work) for _ in range(forks)}
    leave.set()
    thread.join()
    return statuses


def while_this_one_plans():
    """As a signal handler may; then both processes go on with the call."""
    expected, prepare, children = conv(0), prepared.prepare, []

    def forking(*arguments):
        children.append(os.fork())
        signal.alarm(30 if children == [0] else 0)
        return prepare(*arguments)

    prepared.prepare = forking
    calls.forget()
    with cg.num_threads(3):
        same = conv(0) == expected
    if children == [0]:
        os._exit(0 if same else 1)
    return {os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]), 0 if same else 1}


def small():
    return [conv(i) for i in range(12)]


if __name__ == "__main__":
    where = sys.argv[1]
    if where == "fork in planning":
        statuses = while_this_one_plans()
    elif where in STOPS:
        statuses = while_another_thread(lambda: stop(*STOPS[where]), 1, small)
    else:
        others = {"lock": (hold_lock, 1, small), "kernel": (compute, 3, large), "team": (resize, 20, small)}
        statuses = while_another_thread(*others[where])
    print(*sorted(statuses))
