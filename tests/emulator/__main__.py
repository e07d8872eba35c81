"""Runs Python with the kernels of x86_64_v4 without AVX-512: ``python tests/emulator -m pytest -q tests``.

Needs Linux, gcc, binutils and the package bochscpu-python. emulator.c explains the method. Only the instructions of the
kernels' module are emulated, at a few million in a second.
"""

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(arguments):
    """Run ``python *arguments`` with the emulator and return the exit status."""
    package = find_spec("bochscpu")
    if package is None:
        sys.exit("tests/emulator needs the package bochscpu-python in this Python's environment")
    bochs = next(Path(package.origin).parent.glob("_bochscpu.*.so"))
    paths = [str(HERE), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    with tempfile.TemporaryDirectory() as folder:
        emulator = Path(folder) / "emulator.so"
        flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        subprocess.run(["gcc", *flags, "-o", emulator, HERE / "emulator.c", "-ldl", "-lpthread"], check=True)
        environment = os.environ | {
            "LD_PRELOAD": str(emulator),
            "CONVGRAD_EMULATOR": str(bochs),
            "CONVGRAD_CY_ISA": "x86_64_v4",
            "PYTHONPATH": os.pathsep.join(paths),
        }
        return subprocess.run([sys.executable, *arguments], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
