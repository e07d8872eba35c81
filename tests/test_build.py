"""setup.py: no flag from outside makes the mathematics inexact, and what is missing is said at once."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import pytest

pytest.importorskip("Cython")
pytest.importorskip("setuptools", "77")

pytestmark = [
    pytest.mark.checkout,
    pytest.mark.skipif(shutil.which("gcc") is None or os.name != "posix", reason="gcc is not installed"),
]

HERE = Path(__file__).parent
FAST = [
    *("-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-mdaz-ftz", "-ffinite-math-only", "-fassociative-math"),
    *("-freciprocal-math", "-fno-signed-zeros", "-ffp-model=fast", "-fdenormal-fp-math=positive-zero"),
    "/usr/lib/gcc/x86_64-linux-gnu/12/crtfastmath.o",
]
#: Prints what a subnormal number becomes, before and after the import of a module from its file.
SUBNORMAL = """
import importlib.util, sys
tiny = 5e-324
print(tiny * 1.0)
spec = importlib.util.spec_from_file_location("convgrad_cy._cpu_features", sys.argv[1])
spec.loader.exec_module(importlib.util.module_from_spec(spec))
print(tiny * 1.0)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """What setup.py reads, in a folder of its own; nothing of a developer's in the environment."""
    for name in ("setup.py", "pyx", "convgrad_cy"):
        (tmp_path / name).symlink_to(HERE.parent / name)
    for name in ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "LDSHARED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def child(*arguments, variables=None, text=None):
    command = [sys.executable, HERE / "build_child.py", *arguments]
    environment = os.environ | (variables or {})
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, input=text)


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_no_variable_brings_fast_mathematics(folder):
    """Each flag in each variable; what else is in it stays."""
    environments = [
        {variable: f"{'gcc ' if variable == 'CC' else ''}-DKEPT {flag} -DALSO"}
        for variable in ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "LDSHARED")
        for flag in FAST
    ]
    done = child("commands", text=json.dumps([{}, *environments]))
    assert done.returncode == 0, done.stderr
    plain, *commands = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(commands) == len(environments) and "-O3" in plain
    for environment, words in zip(environments, commands, strict=True):
        assert {"-DKEPT", "-DALSO"} <= set(words), environment
        assert not set(words) & set(FAST), environment
    assert done.stdout.count("convgrad_cy: built without ") == len(environments)


def test_a_build_with_fast_mathematics_everywhere(folder):
    """Neither compiler nor linker is told, and an import leaves the processor's state as it was."""
    log = folder / "log"
    compiler = script(folder / "compiler", f'echo "$@" >> {log}\nexec gcc "$@"')
    fast = "-ffast-math -Ofast -funsafe-math-optimizations"
    variables = {"CC": f"{compiler} {fast}", "CFLAGS": fast, "CPPFLAGS": fast, "LDFLAGS": fast}
    done = child("build", "lib", variables=variables)
    assert done.returncode == 0, done.stderr
    assert "convgrad_cy: built without -Ofast -ffast-math -funsafe-math-optimizations, " in done.stdout
    lines = log.read_text().splitlines()
    assert any("cpu_features.c" in line for line in lines) and any("-shared" in line for line in lines)
    assert [line for line in lines if any(flag in line.split() for flag in fast.split())] == []
    (module,) = folder.glob("lib/**/_cpu_features*")
    done = subprocess.run([sys.executable, "-c", SUBNORMAL, module], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "5e-324\n5e-324\n"), done.stderr


def refused(variables):
    """What a build says that does not begin, within seconds and before anything is translated."""
    begin = perf_counter()
    done = child("build", "lib", variables=variables)
    assert done.returncode == 1
    assert perf_counter() - begin < 30
    assert not list(Path().glob("build/cython/*"))
    assert "OpenMP" not in done.stdout + done.stderr and "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


INSTALL = ("apt install gcc python3-dev", "dnf install gcc python3-devel", "xcode-select --install", "Windows: ")


@pytest.mark.parametrize("missing", ["CC", "PATH", "broken"])
def test_no_compiler(missing, folder):
    variables = {"CC": {"CC": "/nonexistent -O2"}, "PATH": {"PATH": str(folder)}, "broken": {"CC": "false"}}[missing]
    said = refused(variables)
    assert said.startswith("error: convgrad_cy needs a C compiler, and ")
    if missing == "CC":
        assert "'/nonexistent' cannot be run" in said
    assert [words for words in INSTALL if words not in said] == []


def test_no_header_of_python(folder):
    compiler = script(
        folder / "compiler",
        'for word; do case $word in *.c) grep -q Python.h "$word" && exit 1;; esac; done\nexec gcc "$@"',
    )
    said = refused({"CC": compiler})
    assert said.startswith("error: convgrad_cy needs Python.h, which ") and "apt install gcc python3-dev" in said


def test_a_compiler_that_is_fast_by_itself(folder):
    """Where no flag can be dropped, the build is refused."""
    said = refused({"CC": script(folder / "compiler", 'exec gcc -ffast-math "$@"')})
    assert said.startswith("error: convgrad_cy must be compiled without -ffast-math and the like, which ")
