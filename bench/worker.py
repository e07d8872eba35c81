"""A process that computes with one library: python -m bench.worker NAME THREADS.

It answers requests, one JSON object per line on standard input, each with one JSON object on a line. ``{"do": "load",
...}`` calls ``Worker.load`` with the other fields as arguments, and so on. The library's own output goes to standard
error. A worker runs in the environment of its library, so it needs only the standard library, NumPy and bench/case.py.
"""

import contextlib
import ctypes
import gc
import json
import os
import signal
import sys
import time
from importlib import import_module
from math import prod
from pathlib import Path

import numpy as np

from .case import Case, Unsupported


class Operands:
    """The files of one layer: x, w and y, and the results of the three kernels. All are float64, NCX and OIX."""

    def __init__(self, folder, case):
        self.folder = Path(folder)
        self.shapes = {"x": case.x, "w": case.w, "y": case.y, "fprop": case.y, "dgrad": case.x, "wgrad": case.w}

    def read(self, name):
        return np.memmap(self.folder / name, np.float64, "r", shape=self.shapes[name])

    def write(self, name, array):
        np.ascontiguousarray(array, np.float64).tofile(self.folder / name)

    def tensors(self):
        return self.read("x"), self.read("w"), self.read("y")


def relative_error(result, expected):
    """Greatest difference over the greatest expected value; NaN if any element of the result is NaN."""
    if result.shape != expected.shape:
        raise ValueError(f"the result has the shape {result.shape}, not {expected.shape}")
    difference, greatest = 0.0, 0.0
    for some, true in zip(result, expected, strict=True):  # one at a time: a difference of all is large
        # max() of Python would drop a NaN that comes second.
        difference = np.maximum(difference, np.abs(some.astype(np.float64) - true).max())
        greatest = max(greatest, np.abs(true).max())
    return float(difference / greatest) if greatest else float(difference)


def status_bytes(name):
    """A field of /proc/self/status that is written in kB; None if there is no such file."""
    with contextlib.suppress(OSError), open("/proc/self/status") as lines:
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":")), None)


def peak_memory(call):
    """The result of a call, and the rise of the process's memory in bytes during the call (None if unknown)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # memory that was freed and not given back would hide that it is used again
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the high-water mark is now the memory of the process
        before = status_bytes("VmRSS")
    except OSError:
        return call(), None
    result = call()
    return result, max(0, status_bytes("VmHWM") - before)


def shortest(call, seconds):
    """Call until the time is over, at least once: seconds of the fastest call, and the number of calls."""
    best, calls = float("inf"), 0
    gc.disable()
    try:
        end = time.perf_counter() + seconds
        while True:
            start = time.perf_counter()
            call()
            now = time.perf_counter()
            best, calls = min(best, now - start), calls + 1
            if now >= end:
                return best, calls
    finally:
        gc.enable()


def one_line(error):
    """The message of an exception with its type, or the message alone for an exception of this suite."""
    kind = "" if isinstance(error, Unsupported) else f"{type(error).__name__}: "
    return " ".join(f"{kind}{error}".split())[:300]


class Worker:
    def __init__(self, library):
        self.library = library
        self.call = None

    def about(self):
        return {"version": self.library.version, "python": sys.version.split()[0], "numpy": np.__version__}

    def load(self, folder, case, kernel):
        """Make the tensors of an operation. They replace the tensors of the previous operation."""
        self.call = None
        gc.collect()
        self.case, self.kernel = Case.from_message(case), kernel
        self.operands = Operands(folder, self.case)
        self.call = self.library.operation(self.case, kernel, *self.operands.tensors())
        return {}

    def run(self):
        """Call once and compare with the file of the expected result."""
        start = time.perf_counter()
        result, memory = peak_memory(self.call)
        seconds = time.perf_counter() - start
        error = relative_error(self.library.plain(self.case, self.kernel, result), self.operands.read(self.kernel))
        if memory is not None and self.library.allocates_result:
            memory = max(0, memory - prod(self.case.shape(self.kernel)) * self.case.itemsize)
        return {"seconds": seconds, "error": error, "memory": memory}

    def time(self, seconds):
        """The time of the fastest call within ``seconds``."""
        best, calls = shortest(self.call, seconds)
        return {"seconds": best, "calls": calls}

    def reference(self, folder, case, kernel):
        """Write the expected result of a kernel to its file. Only this package's worker can."""
        case = Case.from_message(case)
        operands = Operands(folder, case)
        operands.write(kernel, self.library.reference(case, kernel, *operands.tensors()))
        return {}

    def tile(self, dtype, seconds):
        return {"rate": self.library.tile(dtype, seconds)}

    def copy(self, seconds):
        return {"rate": self.library.copy(seconds)}

    def answer(self, request):
        """The reply to a decoded request. An error is a reply, too."""
        try:
            return getattr(self, request.pop("do"))(**request)
        except (Unsupported, *self.library.refusals) as reason:
            return {"unsupported": one_line(reason)}
        except Exception as error:
            return {"failed": one_line(error)}


def pin(threads):
    """Pin this process to the first ``threads`` processors that it may use."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def end_with_parent():
    """Have the system end this process with its parent: a stopped process cannot notice that its parent has ended."""
    with contextlib.suppress(OSError, AttributeError):
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def serve(make):
    """Answer requests until there are no more. ``make`` makes the object that answers them, from the arguments."""
    name, threads = sys.argv[1], int(sys.argv[2])
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends the workers
    pin(threads)
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker = make(name, threads)
    gc.freeze()  # a library's import leaves thousands of objects: each collection would take 0.1 s
    replies.write("{}\n")
    for line in sys.stdin:
        reply = worker.answer(json.loads(line))
        replies.write(json.dumps(reply) + "\n")
        if "exit" in reply:  # this process would fail in all further rows
            os._exit(reply["exit"])


if __name__ == "__main__":
    serve(lambda name, threads: Worker(import_module(f"bench.peers.{name}").Library(threads)))
