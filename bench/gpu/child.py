"""A process that has the GPU and is asked for one row after another, so that what one breaks is whole for the next.

``python -m bench.gpu.child NAME THREADS`` is such a process, with the ``Worker`` of ``bench.gpu.NAME``; ``Child`` is
what its parent sees of it. The parent itself never touches the GPU.
"""

import os
import sys
from importlib import import_module
from importlib.util import find_spec

from ..processes import PATIENCE, Lost, Process
from ..worker import one_line, serve
from .launches import PREFIX, is_sticky, noted

#: The status with which a process ends that an error has taken the GPU from.
STICKY = 3
#: Seconds that it has for that.
_ENDING = 5.0


def missing(*packages):
    """Why nothing can be run here, or None; of packages, pairs of a name and what it is for."""
    for name, why in (("cupy", "our arrays"), ("ml_dtypes", "bfloat16"), *packages):
        if find_spec(name) is None:
            return f"{name} is not installed ({why})"
    import cupy

    return None if cupy.is_available() else "there is no CUDA GPU, or no driver for it"


class Answers:
    """A worker whose exceptions are replies, for ``worker.serve``; also asked in this process, as a ``Child`` is."""

    def __init__(self, worker):
        self.worker = worker

    def answer(self, request):
        """The reply. ``failed`` is what an exception says, ``launch`` the last one, ``exit`` that this was the end."""
        noted.forget()
        try:
            return getattr(self.worker, request.pop("do"))(**request)
        except Exception as error:
            found = {"failed": one_line(error), "launch": noted.last}
            return {**found, "exit": STICKY} if is_sticky() else found

    def ask(self, do, patience=None, **fields):
        return self.answer({"do": do, **fields})

    def end(self):
        pass


class Child:
    """The process of a worker. Where it is lost or of no more use, the next question has a new one."""

    def __init__(self, name, folder):
        folder.mkdir(parents=True, exist_ok=True)
        # As many threads as there are processors, so that it is not kept to some of them.
        self.process = Process(name, sys.executable, os.cpu_count(), folder, "bench.gpu.child")

    def ask(self, do, patience=PATIENCE, **fields):
        """The reply, as of ``Answers``; ``failed`` and ``launch`` too where the process ended or fell silent."""
        log = self.process.log
        before = log.stat().st_size if log.exists() else 0
        try:
            reply = self.process.ask(do, patience, **fields)
        except Lost as lost:
            return {"failed": str(lost), "launch": self._last_launch(before)}
        if "exit" in reply:
            reply["exit"] = self.process.end(_ENDING)
        return reply

    def _last_launch(self, before):
        lines = self.process.log.read_bytes()[before:].decode(errors="replace").splitlines()
        return next((line.removeprefix(PREFIX) for line in reversed(lines) if line.startswith(PREFIX)), None)

    def end(self):
        self.process.end()


def _made(name, threads):
    noted.log = sys.stderr
    return Answers(import_module(f"bench.gpu.{name}").Worker())


if __name__ == "__main__":
    serve(_made)
