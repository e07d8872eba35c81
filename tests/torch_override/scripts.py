"""Python in a process of its own, which a deadlock ends after a time, and whose state no other test has changed."""

import os
import subprocess
import sys
from pathlib import Path

import convgrad_cy

HERE = Path(__file__).parent
#: Of this package, and of the tests' own modules.
PATHS = [str(Path(convgrad_cy.__file__).parents[1]), str(HERE.parent), str(HERE)]


def run(folder, source, *, paths=(), timeout=120, **environment):
    """What a script prints, line by line. ``paths`` come before all others in sys.path."""
    script = folder / "script.py"  # a file: what is spawned reads it again
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
