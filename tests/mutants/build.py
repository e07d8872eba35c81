"""A copy of the package with all mutants in it, built once for one instruction set, with little optimisation."""

import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from mutants.schemata import with_mutants

#: For the C code of each compiled module. Several of its sources may include it. The Python code reads _mutant.py.
HEADER = """#pragma once
__attribute__((visibility("default"), weak)) int convgrad_mutant;
"""
DECLARATION = """cdef extern from "mutant.h" nogil:
    int convgrad_mutant
"""


def _write_mutants(root, folder, mutants):
    numbered = defaultdict(list)
    for number, mutant in enumerate(mutants, 1):
        numbered[mutant.file].append((number, mutant))
    for file, of_file in numbered.items():
        (folder / file).write_text(with_mutants((root / file).read_text(), file, of_file))
    (folder / "pyx/mutant.h").write_text(HEADER)
    (folder / "pyx/mutant.pxd").write_text(DECLARATION)
    (folder / "convgrad_cy/_mutant.py").write_text(f"number = 0\nnames = {[mutant.name for mutant in mutants]!r}\n")


def build(root, folder, mutants, isa):
    """Make the package in the folder. The number k, counted from 1, selects mutant k."""
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    for name in ("convgrad_cy", "pyx"):
        shutil.copytree(root / name, folder / name, ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(root / name, folder)
    _write_mutants(root, folder, mutants)
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    environment = {**os.environ, "CONVGRAD_CY_BUILD_ISAS": isa, "CONVGRAD_CY_OPTIMIZE": "1"}
    log = Path(folder, "build.log")
    with log.open("w") as file:
        made = subprocess.run(command, cwd=folder, env=environment, stdout=file, stderr=subprocess.STDOUT)
    if made.returncode != 0:
        raise SystemExit(f"{log.read_text()[-8000:]}\nthe mutants could not be built")
