"""A process that has the GPU and takes requests for one row after another, so that a broken row spoils no other.

``python -m bench.gpu.child NAME THREADS`` is such a process, with the ``Worker`` of ``bench.gpu.NAME``. ``Child`` is
its parent's side. The parent itself never touches the GPU.
"""

import os
import sys
from importlib import import_module
from importlib.util import find_spec

from ..processes import PATIENCE, Lost, Process
from ..worker import one_line, serve
from .launches import PREFIX, is_sticky, noted

#: The exit status of a process that has lost the GPU by an error.
STICKY = 3
#: Seconds in which it has to end.
_ENDING = 5.0


def missing(*packages):
    """The reason why nothing can run here, or None. ``packages`` are pairs of a name and its use."""
    for name, why in (("cupy", "our arrays"), ("ml_dtypes", "bfloat16"), *packages):
        if find_spec(name) is None:
            return f"{name} is not installed ({why})"
    import cupy

    return None if cupy.is_available() else "there is no CUDA GPU, or no driver for it"


class Answers:
    """A worker whose exceptions are replies, for ``worker.serve``.

    It also answers in this process, as a ``Child`` does.
    """

    def __init__(self, worker):
        self.worker = worker

    def answer(self, request):
        """The reply.

        ``failed`` is an exception's message, ``launch`` the last launch, ``exit`` means that the GPU is lost.
        """
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
    """The process of a worker. After it is lost or useless, the next request starts a new one."""

    def __init__(self, name, folder):
        folder.mkdir(parents=True, exist_ok=True)
        # As many threads as processors, so that the process is not pinned to some of them.
        self.process = Process(name, sys.executable, os.cpu_count(), folder, "bench.gpu.child")

    def ask(self, do, patience=PATIENCE, **fields):
        """The reply as of ``Answers``, with ``failed`` and ``launch`` also if the process ended or fell silent."""
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
