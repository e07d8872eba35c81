"""Prints the newest CPython on this machine that is newer than the one that runs this; nothing where there is none."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

#: Fails where an environment cannot be made, or Python.h is missing.
WORKS = """
import ensurepip, os, sys, sysconfig, venv
assert sys.implementation.name == "cpython" and sys.version_info.releaselevel == "final"
assert not sysconfig.get_config_var("Py_GIL_DISABLED")
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
print(sys.version_info.minor)
"""


def minor_version(python):
    """3.13 gives 13; None where this Python cannot build the package."""
    done = subprocess.run([python, "-c", WORKS], capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else None


def main():
    installed = [shutil.which(f"python3.{minor}") for minor in range(sys.version_info.minor + 1, 30)]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = [*filter(None, installed), *map(str, pyenv.glob("versions/3.*/bin/python3"))]
    newest = max(((minor_version(python) or 0, python) for python in found), default=(0, ""))
    if newest[0] > sys.version_info.minor:
        print(newest[1])


if __name__ == "__main__":
    main()
