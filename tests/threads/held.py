"""Forks while a thread is in the midst of some work: ``python held.py WHERE``.

Prints the exit statuses of the children. A status is 0 if a child has the parent's results and a consistent cache.
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

warnings.simplefilter("ignore", DeprecationWarning)  # Python warns that a process with threads forks

RANDOM = np.random.default_rng(0)


def integers(*shape):
    return RANDOM.integers(-4, 5, shape).astype(np.float32)


X, W = integers(2, 32, 40, 40), integers(32, 32, 3, 3)
#: Channels that are summed over many positions: a call takes memory that is kept for the next one.
LARGE = integers(2, 128, 128, 128)
inside, leave = threading.Event(), threading.Event()


def conv(i):
    """One of several calls, each with its own plan."""
    return cg.conv(X[:, :, i:], W, algorithm="direct").tobytes()


def large():
    return cg.conv(LARGE, np.ones((128, 128, 3, 3), np.float32), algorithm="winograd").tobytes()


class Sizes(OrderedDict):
    """The sizes of a cache's entries. A thread can stop in it."""


#: The places where the other thread stops, in a function of an object, and the ways to get there.
STOPS = {
    "keep": (Sizes, "__setitem__", lambda: conv(20)),
    "clear": (Sizes, "clear", calls.forget),
    "property": (RegisterTile, "pairs", lambda: conv(20)),
    "planning": (prepared, "prepare", lambda: conv(20)),
    "setter": (algorithm, "changed", lambda: cg.set_default_algorithm("auto")),
}


def stop(owner, name, act):
    """Run a thread into a function that stops all threads but the main one at its end, until that one has forked."""
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
    """Repeat large calls without an end. Most of the time is spent in a kernel, which takes and returns memory."""
    while not leave.is_set():
        large()
        inside.set()


def resize():
    """Start teams of threads, each larger than the one before."""
    while not leave.is_set():
        for number in range(1, 9):
            with cg.num_threads(number):
                conv(20)
        inside.set()


def fork(work):
    """The exit status of a child that does some work. It is 0 if the work is right."""
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
    """Fork within a plan, as a signal handler may. Both processes then continue the call."""
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
