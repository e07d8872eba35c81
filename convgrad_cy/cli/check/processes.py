"""The processes of the check, one after the other: their records, or a record of their end."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from threading import Timer

from .tally import Tally

#: Seconds without a record after which a process is ended. A record takes about one, and a minute in an emulator.
PATIENCE = 300


def _ended(status, said, is_late):
    """The reason why a process has sent no more records."""
    if is_late:
        return f"no answer for {PATIENCE} seconds"
    last = (said.strip().splitlines() or ["it printed nothing"])[-1]
    if status >= 0:
        return f"the process ended with status {status}: {last}"
    with suppress(ValueError):
        return f"the process ended by {signal.Signals(-status).name}"
    return f"the process ended by signal {-status}"


def records(part, name, **variables):
    """The records of a part, which runs in a process of its own, and a failure if the process does not end well.

    ``name`` is the part's name in that failure. ``variables`` are added to the environment.
    """
    command = [sys.executable, "-m", "convgrad_cy.cli.check.child", part]
    # The package is found where this process has found it. Threads that wait actively take the processors from other
    # programs: on a busy machine the check would take four times as long.
    paths = os.pathsep.join(filter(None, sys.path))
    environment = {"OMP_WAIT_POLICY": "passive", **os.environ, "PYTHONPATH": paths, **variables}
    late = []
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, env=environment, text=True)

        def end():
            late.append(True)
            process.kill()

        def watch():
            timer = Timer(PATIENCE, end)
            timer.daemon = True
            timer.start()
            return timer

        timer = watch()
        try:
            for line in process.stdout:
                timer.cancel()
                yield json.loads(line)
                timer = watch()
            status = process.wait()
        finally:
            timer.cancel()
            process.kill()
            process.wait()
            process.stdout.close()
        if status or late:
            said.seek(0)
            tally = Tally(name, "process")
            tally.check(False, _ended(status, said.read(), late))
            yield tally.record()
