"""Python in a process of its own: a deadlock ends after some time, and no other test has changed its state."""

import os
import subprocess
import sys
from pathlib import Path

import convgrad_cy

#: The package, and the modules that tests share.
PATHS = [str(Path(convgrad_cy.__file__).parents[1]), str(Path(__file__).parent)]


def run(folder, source, *, paths=(), timeout=120, **environment):
    """The lines that a script prints. ``paths`` come before all others in sys.path."""
    script = folder / "script.py"  # a file, since a spawned process reads it again
    script.write_text(source)
    path = os.pathsep.join([*map(str, paths), *PATHS, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
