"""Switching and forking while other threads compute or switch, each in an interpreter of its own."""

import os

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

import scripts  # noqa: E402

pytestmark = pytest.mark.torch

TOGGLED = """
import sys
import threading
import time
import warnings

warnings.simplefilter("ignore")
import torch
import convgrad_cy.torch as override

MODE, SECONDS = MODE_AND_SECONDS
torch.set_num_threads(1)
sys.setswitchinterval(1e-4)
x, w = torch.ones(1, 8, 12, 12), torch.ones(8, 8, 3, 3)
calls, errors, stop = [0] * 4, [], threading.Event()

def compute(index):
    while not stop.is_set():
        try:
            one = x.clone().requires_grad_()
            y = torch.conv2d(one, w)
            assert bool((y == 72).all())
            (dx,) = torch.autograd.grad(y.sum(), one)
            assert dx.amax() == 72
            calls[index] += 1
        except Exception as error:
            errors.append(repr(error))

def switch():
    if MODE == "switched":
        override.enable()
        time.sleep(0.0003)
        override.disable()
    elif MODE == "another algorithm":
        override.enable("direct")
        override.enable("auto")
    elif MODE == "blocks":
        with override.enabled():
            with override.enabled("direct"):
                time.sleep(0.0003)
    time.sleep(0.0003)

threads = [threading.Thread(target=compute, args=[index]) for index in range(4)]
for thread in threads:
    thread.start()
time.sleep(0.1)
toggles, end = 0, time.monotonic() + SECONDS
if MODE == "first":
    override.enable()
    toggles = 100
    time.sleep(SECONDS)
else:
    while time.monotonic() < end:
        switch()
        toggles += 1
stop.set()
for thread in threads:
    thread.join()
computed = override.status().computed
print(errors[:3], toggles > 20, min(calls) > 10, min(computed.values()) > 0)
"""


@pytest.mark.parametrize(
    "mode, seconds", [("switched", 5), ("another algorithm", 2), ("blocks", 3), ("first", 0.5)], ids=str
)
def test_switching_while_others_compute(tmp_path, mode, seconds):
    """Forward and backward in four threads must give right results, some of them ours, with no crash and no error."""
    source = TOGGLED.replace("MODE_AND_SECONDS", repr((mode, seconds)))
    assert scripts.run(tmp_path, source) == ["[] True True True"]


FORKED = """
import os
import signal
import threading

import torch
import convgrad_cy.torch as override
from convgrad_cy.torch import switch

x, w = torch.ones(1, 1, 4), torch.ones(1, 1, 2)
override.enable()
torch.conv1d(x, w)
holds, leave = threading.Event(), threading.Event()

forget = switch.forget

def hold():
    # within enable()
    holds.set()
    leave.wait(60)

def child():
    signal.alarm(30)  # ends a child that hangs
    switch.forget = forget
    for _ in range(2):
        override.disable()
        assert not override.is_enabled()
        with override.enabled("direct"):
            assert override.is_enabled()
            before = override.status().computed["_convolution"]
            assert torch.conv1d(x, w).tolist() == [[[2, 2, 2]]]
            assert override.status().computed["_convolution"] == before + 1
        override.enable()
    return 0

switch.forget = hold
thread = threading.Thread(target=override.enable, args=["direct"])
thread.start()
holds.wait(60)
pid = os.fork()
if pid == 0:
    code = 1
    try:
        code = child()
    finally:
        os._exit(code)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
leave.set()
thread.join()
override.disable()
print(override.is_enabled())
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fork_while_another_thread_switches(tmp_path):
    """The child must be able to switch, although it lacks the thread that switches."""
    assert scripts.run(tmp_path, FORKED) == ["0", "False"]
