"""Children of the tests in this folder: the work of one at its death, and the libraries preloaded to them."""

import mmap
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import convgrad_cy

HERE = Path(__file__).parent
#: The variable with the file in which a child notes its work. The file's memory is shared, so it outlives any death.
_NOTE = "WATCH_NOTE"
_NOTE_BYTES = 1 << 14

needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
#: A loaded machine takes its time. On an idle one, no child needs this many seconds.
MOST_SECONDS = 540


class Note:
    """The child's note of its work. Without a parent, it goes nowhere."""

    def __init__(self):
        path = os.environ.get(_NOTE)
        self.memory = bytearray(_NOTE_BYTES)
        if path:
            with open(path, "r+b") as file:
                self.memory = mmap.mmap(file.fileno(), _NOTE_BYTES)

    def __call__(self, text):
        text = text.encode()[: _NOTE_BYTES - 1] + b"\0"
        self.memory[: len(text)] = text


class Ended:
    """The end of a child: its return code, its output, and the note that it left."""

    def __init__(self, code, stdout, stderr, note):
        self.code, self.stdout, self.stderr, self.note = code, stdout, stderr, note

    def __str__(self):
        """A description of a death."""
        how = f"status {self.code}" if self.code >= 0 else signal.Signals(-self.code).name
        return f"{how} during: {self.note}\n{self.stderr[-4000:]}{self.stdout[-2000:]}"


def run_child(folder, script, *arguments, preload=None, seconds=MOST_SECONDS, **environment):
    """Run a script of this folder. ``preload`` is a library for it. Warnings are errors there, as here."""
    note = Path(folder) / f"note of {Path(script).stem}"
    note.write_bytes(bytes(_NOTE_BYTES))
    tests = [str(Path(convgrad_cy.__file__).parents[1]), str(HERE.parent), str(HERE)]
    path = os.pathsep.join(filter(None, [*tests, os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, _NOTE: str(note), **environment}
    if preload is not None:
        environment["LD_PRELOAD"] = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(preload)]))
    command = [sys.executable, "-W", "error", "-X", "faulthandler", str(HERE / script), *map(str, arguments)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            stdout, stderr = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            stdout, stderr = child.communicate()
            stderr += f"\nstill at work after {seconds} s"
    return Ended(child.returncode, stdout, stderr, note.read_bytes().partition(b"\0")[0].decode(errors="replace"))


def built(source, folder):
    """A library of this folder's C, to be preloaded. The test is skipped if this is impossible."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc)")
    library = Path(folder) / Path(source).with_suffix(".so").name
    command = [compiler, "-shared", "-fPIC", "-O1", "-fno-builtin", str(HERE / source), "-o", str(library)]
    run = subprocess.run([*command, "-Wl,-z,defs"], capture_output=True, text=True)
    if run.returncode:
        pytest.skip(f"not GNU's C library: {run.stderr[-200:]}")
    return library
