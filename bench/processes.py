"""The worker processes as the parent sees them: start, ask, stop, end.

Each library has its own process. In one process, two libraries would share an OpenMP runtime and its number of threads,
or have two runtimes whose waiting threads take processors from each other. (This package, built from source, shares
PyTorch's `libgomp.so.1`.) Only the process that was asked runs. A signal stops the others, so that threads that still
spin take no processor.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: A worker that is silent for longer than this is ended.
PATIENCE = 180.0


class Lost(Exception):
    """A worker process ended or fell silent; the text says how."""


def python_of(name, given=None):
    """The interpreter that has a library: the given one, one from the environment, or this one."""
    variable = f"CONVGRAD_CY_BENCH_PYTHON_{name.upper()}"
    return (given or {}).get(name) or os.environ.get(variable) or sys.executable


def has_library(python, name):
    """Whether an interpreter finds a library. The library is not imported."""
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({name!r}) is None)"
    try:
        # Run elsewhere than in the checkout: its folders could be taken for packages.
        return subprocess.run([python, "-c", code], cwd="/", stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def environment(threads):
    """The environment of a worker. Libraries that read their number of threads from the environment find it."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NPROC")
    return {**os.environ, **dict.fromkeys(names, str(threads)), "TF_CPP_MIN_LOG_LEVEL": "2", "GLOG_v": "3"}


class Process:
    """The worker of one library. It starts with the first request, and again after it was lost."""

    def __init__(self, name, python, threads, log, module="bench.worker"):
        self.name = name
        self.command = [python, "-m", module, name, str(threads)]
        self.threads = threads
        self.log = Path(log) / f"{name}.log"
        self.child = None

    def start(self):
        with self.log.open("ab") as log:
            self.child = subprocess.Popen(
                self.command,
                cwd=ROOT,
                env=environment(self.threads),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._read(PATIENCE)  # the greeting: the library is imported

    def ask(self, do, patience=PATIENCE, **fields):
        """The reply to one request. The process runs only until it has replied."""
        if self.child is None:
            self.start()
        self._signal("SIGCONT")
        try:
            self.child.stdin.write(json.dumps({"do": do, **fields}).encode() + b"\n")
            self.child.stdin.flush()
        except OSError:
            raise self._lost("ended") from None
        reply = self._read(patience)
        self._signal("SIGSTOP")
        return reply

    def _read(self, patience):
        end, line = time.monotonic() + patience, b""
        pipe = self.child.stdout.fileno()
        while not line.endswith(b"\n"):
            if not select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
                raise self._lost(f"gave no answer in {patience:.0f} s")
            piece = os.read(pipe, 65536)
            if not piece:
                raise self._lost("ended")
            line += piece
        return json.loads(line)

    def _signal(self, name):
        if hasattr(signal, name):
            self.child.send_signal(getattr(signal, name))

    def _lost(self, what):
        """End the process and return the exception that tells how it was lost."""
        # A process that has closed its pipe is about to end by itself: its status says why.
        status = self._gone(patience=5.0 if what == "ended" else 0.0)
        lines = self.log.read_text(errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "").strip()
        how = f"{what} with status {status}" if what == "ended" else what
        return Lost(f"the process {how}; last on its standard error: {last[:200]}")

    def _gone(self, patience=0.0):
        """The exit status of the process. The process is killed if it still runs after ``patience`` seconds."""
        child, self.child = self.child, None
        try:
            child.wait(patience)
        except subprocess.TimeoutExpired:
            child.kill()
        child.stdout.close()
        with contextlib.suppress(OSError):  # a request that was never read
            child.stdin.close()
        return child.wait()

    def end(self, patience=0.0):
        """End the process, stopped or not, and return its exit status.

        It may take ``patience`` seconds to exit itself.
        """
        if self.child is None:
            return None
        if patience:
            self._signal("SIGCONT")
        return self._gone(patience)


def asked_once(name, module, threads, folder, do, patience, **fields):
    """The reply of a process that is started for one request. An error is a reply, too."""
    process = Process(name, sys.executable, threads, folder, module)
    try:
        return process.ask(do, patience, **fields)
    except Lost as lost:
        return {"failed": str(lost)}
    finally:
        process.end()
