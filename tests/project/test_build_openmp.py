"""A build whose compiler has no OpenMP: its last line says so, and the modules know why they have one thread."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("Cython")
pytest.importorskip("setuptools", "77")

pytestmark = [
    pytest.mark.checkout,
    pytest.mark.skipif(shutil.which("gcc") is None or os.name != "posix", reason="gcc is not installed"),
]

ROOT = Path(__file__).parents[2]
#: A module that prints the header's facts about the build.
TELLING = """
cdef extern from "parallel/threads.h" nogil:
    bint has_threads()
    bint lacks_threads()
    const char *threads_runtime()
def told():
    return bool(has_threads()), bool(lacks_threads()), threads_runtime().decode()
"""
#: A build of this module alone.
BUILD = """
import runpy
made = runpy.run_path("setup.py")
module = made["extension"]("_telling", ["pyx/telling.pyx", "pyx/parallel/shared.c"])
made["build"](module, name="convgrad_cy", script_args=["-q", "build_ext", "--build-lib", "lib", "--build-temp", "temp"])
"""
#: Prints the facts that a module knows.
TOLD = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("convgrad_cy._telling", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(*module.told(), sep="|")
"""


@pytest.fixture
def folder(tmp_path):
    """The files that setup.py reads to build the module."""
    (tmp_path / "setup.py").symlink_to(ROOT / "setup.py")
    (tmp_path / "convgrad_cy").symlink_to(ROOT / "convgrad_cy")
    (tmp_path / "pyx").mkdir()
    for name in ("setup", "winograd", "parallel", "base"):
        (tmp_path / "pyx" / name).symlink_to(ROOT / "pyx" / name)
    (tmp_path / "pyx/telling.pyx").write_text(TELLING)
    return tmp_path


def built(folder, **variables):
    """The lines of a build, and the facts that its module prints."""
    for name in ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "LDSHARED", "CONVGRAD_CY_NO_OPENMP"):
        variables.setdefault(name, "")
    environment = {name: value for name, value in (os.environ | variables).items() if value}
    command = [sys.executable, "-c", BUILD]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (module,) = folder.glob("lib/convgrad_cy/_telling*")
    told = subprocess.run([sys.executable, "-c", TOLD, module], capture_output=True, text=True, check=True).stdout
    return done.stdout.splitlines(), told.strip().split("|")


def test_what_is_said(folder):
    """A build must report a compiler that refuses the flag, a request to leave OpenMP out, and a build with OpenMP."""
    compiler = folder / "compiler"
    compiler.write_text('#!/bin/sh\nfor word; do [ "$word" = -fopenmp ] && exit 1; done\nexec gcc "$@"\n')
    compiler.chmod(0o755)
    for _ in range(2):  # also if all is built already
        lines, told = built(folder, CC=str(compiler))
        assert told == ["False", "True", "none: the compiler had no OpenMP"]
        assert lines[-1].startswith(
            f"convgrad_cy: WARNING: '{compiler}' has no OpenMP, so every call will have one thread"
        )
        assert "apt install libomp-dev" in lines[-1] and "--no-cache-dir" in lines[-1]
    lines, told = built(folder, CC=str(compiler), CONVGRAD_CY_NO_OPENMP="1")
    assert told == ["False", "False", "none: built with CONVGRAD_CY_NO_OPENMP"]
    assert "OpenMP" not in "".join(lines)
    lines, (has, lacks, runtime) = built(folder)
    assert (has, lacks) == ("True", "False") and runtime.startswith("OpenMP ")
    assert "WARNING" not in "".join(lines)


#: A compiler that has OpenMP, but refuses the plain flag and has no library: Apple's clang, played by GCC.
WITHOUT_LIBRARY = """#!/bin/bash
words=() last=
for word; do
    case $last,$word in
        -Xclang,-fopenmp) words+=(-fopenmp) ;;
        *,-fopenmp) exit 1 ;;
        *,-Xclang) ;;
        *,-lomp) words+=(-lgomp) ;;
        *) words+=("$word") ;;
    esac
    last=$word
done
exec gcc "${words[@]}"
"""


def test_a_libomp_elsewhere(folder):
    """With CONVGRAD_CY_LIBOMP, a compiler that refuses -fopenmp must build modules with threads."""
    compiler = folder / "compiler"
    compiler.write_text(WITHOUT_LIBRARY)
    compiler.chmod(0o755)
    lines, told = built(folder, CC=str(compiler))
    assert told == ["False", "True", "none: the compiler had no OpenMP"] and "WARNING" in lines[-1]
    lines, (has, lacks, runtime) = built(folder, CC=str(compiler), CONVGRAD_CY_LIBOMP=str(folder))
    assert (has, lacks) == ("True", "False") and runtime.startswith("OpenMP ")
    assert "WARNING" not in "".join(lines)
