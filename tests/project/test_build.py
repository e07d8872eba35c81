"""setup.py: no flag makes the mathematics inexact, missing tools are reported at once, an install has one row."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from time import perf_counter

import pytest
from setup_runs import child

from convgrad_cy import _cpu_features

pytest.importorskip("Cython")
pytest.importorskip("setuptools", "77")

pytestmark = [
    pytest.mark.checkout,
    pytest.mark.skipif(shutil.which("gcc") is None or os.name != "posix", reason="gcc is not installed"),
]

ROOT = Path(__file__).parents[2]
FAST = [
    *("-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-mdaz-ftz", "-ffinite-math-only", "-fassociative-math"),
    *("-freciprocal-math", "-fno-signed-zeros", "-ffp-model=fast", "-fdenormal-fp-math=positive-zero"),
    "/usr/lib/gcc/x86_64-linux-gnu/12/crtfastmath.o",
]
#: Prints the value of a subnormal number before and after the import of a module from its file.
SUBNORMAL = """
import importlib.util, sys
tiny = 5e-324
print(tiny * 1.0)
spec = importlib.util.spec_from_file_location("convgrad_cy._cpu_features", sys.argv[1])
spec.loader.exec_module(importlib.util.module_from_spec(spec))
print(tiny * 1.0)
"""


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_no_variable_brings_fast_mathematics(folder):
    """Each flag must be dropped from each variable. The rest of the variable must stay."""
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
    """Compiler and linker must not get the flag. An import must leave the processor's state as it was."""
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
    """The message of a build that does not begin, within seconds and before anything is translated."""
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
    """A build must be refused if no flag can be dropped."""
    said = refused({"CC": script(folder / "compiler", 'exec gcc -ffast-math "$@"')})
    assert said.startswith("error: convgrad_cy must be compiled without -ffast-math and similar flags, but ")


def modules_of_an_install(**variables):
    done = child("editable", variables=variables)
    assert done.returncode == 0, done.stderr
    return [name.partition("_kernels_")[2] for name in json.loads(done.stdout) if "_kernels_" in name]


def test_an_editable_install_has_the_best_instruction_set(folder):
    """An editable install must have this machine's best set, all sets on request, and the sets that the checkout has.

    The last ones would be out of date otherwise.
    """
    best = _cpu_features.supported()[-1]
    (folder / "convgrad_cy").unlink()
    (folder / "convgrad_cy").mkdir()
    (folder / "convgrad_cy/include").symlink_to(ROOT / "convgrad_cy/include")
    assert modules_of_an_install(CONVGRAD_CY_BUILD_ISAS="") == [best]
    every = modules_of_an_install(CONVGRAD_CY_BUILD_ISAS="all")
    assert set(every) >= set(_cpu_features.supported())
    assert modules_of_an_install(CONVGRAD_CY_BUILD_ISAS=every[0]) == every[:1]
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    (folder / f"convgrad_cy/_kernels_{every[0]}{suffix}").touch()
    assert set(modules_of_an_install(CONVGRAD_CY_BUILD_ISAS="")) == {every[0], best}


#: A function of a storage type and a compute type in a .pxd. Cython writes all combinations if one is called.
FUSED = """
from base.scalar cimport compute, scalar
cdef inline int sizes(scalar *of, compute kind):
    return sizeof(scalar) + sizeof(compute)
"""
CALL = """
from base.scalar cimport f16
from fused cimport sizes
def tell():
    return sizes(<f16 *>NULL, <float>0)
"""


def test_only_types_that_occur_are_translated(folder):
    """Each storage type must be translated only with the type of its sums. All pairs would be fifteen."""
    (folder / "fused.pxd").write_text(FUSED)
    (folder / "call.pyx").write_text(CALL)
    command = [sys.executable, "pyx/setup/translate.py", "-3", "-I", "pyx", "call.pyx", "-o", "call.c"]
    subprocess.run(command, check=True)
    functions = set(re.findall(r"__pyx_fuse_(\d_\d)__pyx_f_\w*sizes", (folder / "call.c").read_text()))
    assert functions == {"0_0", "1_0", "2_0", "3_1", "4_2"}
