"""Checks of the compiler and of its flags."""

import os
import re
import subprocess
import tempfile
from itertools import takewhile
from pathlib import Path

from setuptools.errors import CompileError, LinkError, SetupError

#: Packages to install if there is no compiler or no Python.h.
COMPILERS = (
    "Debian, Ubuntu: apt install gcc python3-dev; Fedora: dnf install gcc python3-devel; "
    "macOS: xcode-select --install; Windows: build in WSL, as on Ubuntu. A wheel needs none (packaging/README.md)"
)

#: Printed at the end of a build, because nobody reads the lines before.
WITHOUT_OPENMP = (
    "convgrad_cy: WARNING: {!r} has no OpenMP, so every call will have one thread. To use more, install clang's libomp "
    "(Debian, Ubuntu: apt install libomp-dev; Fedora: dnf install libomp-devel), or set CC to gcc, or on macOS run "
    "'brew install libomp' and set CONVGRAD_CY_LIBOMP=/opt/homebrew/opt/libomp; then install again with "
    "--force-reinstall --no-cache-dir. If one thread is enough, CONVGRAD_CY_NO_OPENMP=1 removes this warning"
)

#: Flags that a user may set for all compilations, and that must not reach these modules. With the first four, the
#: linker adds code that makes the whole process flush subnormal numbers to zero when a module is imported. The others
#: let the compiler ignore NaN, infinity and the order of sums.
FAST_MATH = re.compile(
    r"-ffast-math|-Ofast|-funsafe-math-optimizations|-mdaz-ftz|-ffp-model=(fast|aggressive)|-ffinite-math-only"
    r"|-fassociative-math|-freciprocal-math|-fno-signed-zeros|-fno-honor-(nans|infinities)|-fapprox-func"
    r"|-fcx-limited-range|-fsingle-precision-constant|-fdenormal-fp-math(-f32)?=.*|(.*/)?crtfastmath\.o"
)

#: GCC 16 (12 does not) tunes for processors on which a chain of fused operations is slow: it then rounds some products
#: before it adds them. The same sum in another tile would have other bits. 0 turns this off.
FUSED_PRODUCTS = "--param=avoid-fma-max-bits=0"

EMPTY_PROGRAM = """
int main(void) { return 0; }
"""

#: Fails to compile if fast mathematics is still on, by the compiler's default or by a script around the compiler.
EXACT_PROGRAM = """
#if defined __FAST_MATH__ || defined __ASSOCIATIVE_MATH__ || defined __RECIPROCAL_MATH__ || __FINITE_MATH_ONLY__
#error fast mathematics
#endif
int main(void) { return 0; }
"""

#: Fails to compile without Python's own headers.
PYTHON_PROGRAM = """
#include <Python.h>
int main(void) { return 0; }
"""

#: Fails to run if the machine lacks the instructions of a row of setup.py's table.
ISA_PROGRAM = """
#include "cpu_features.h"
int main(void) { return !runs_%s(); }
"""

OPENMP_PROGRAM = """
#include <omp.h>
int main(void) {
    int n = 0;
    #pragma omp parallel for reduction(+:n)
    for (int i = 0; i < 4; i++) n += omp_get_num_threads() > 0;
    return n != 4;
}
"""


def drop_fast_math(compiler):
    """Remove the flags of fast mathematics from the commands that CC, CFLAGS, CPPFLAGS and LDFLAGS have made."""
    dropped = set()
    for name in compiler.executables:
        command = getattr(compiler, name, None)
        if command:
            kept = [word for word in command if not FAST_MATH.fullmatch(word)]
            dropped.update(set(command) - set(kept))
            setattr(compiler, name, kept)
    if dropped:
        print(f"convgrad_cy: built without {' '.join(sorted(dropped))}, because these flags change results")


def command(compiler):
    """The words that start the compiler, without flags."""
    return list(takewhile(lambda word: not word.startswith("-"), compiler.compiler_so))


def version(compiler):
    """The first line of the compiler's ``--version``."""
    done = subprocess.run([*command(compiler), "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0]


def check(compiler):
    """Raise SetupError if something is missing. Done first, because translating to C takes a minute."""
    name = " ".join(command(compiler))
    if not compiles(compiler, EMPTY_PROGRAM):
        raise SetupError(f"convgrad_cy needs a C compiler, and {name!r} cannot be run, or fails. {COMPILERS}")
    if not compiles(compiler, EXACT_PROGRAM):
        raise SetupError(
            f"convgrad_cy must be compiled without -ffast-math and similar flags, but {name!r} turns them on by itself:"
            " set CC to another compiler"
        )
    if not compiles(compiler, PYTHON_PROGRAM):
        raise SetupError(f"convgrad_cy needs Python.h, which {name!r} does not find. {COMPILERS}")


def openmp_flags(libomp):
    """The flags of OpenMP: for compiling, and for linking. ``libomp`` is the folder of a libomp, or empty."""
    if libomp:  # Apple's clang refuses the plain flag, but has the code behind it
        return ["-Xclang", "-fopenmp", f"-I{libomp}/include"], [f"-L{libomp}/lib", "-lomp"]
    return ["-fopenmp"], ["-fopenmp"]


def has_openmp(compiler, flags):
    """Whether the compiler compiles and links a small OpenMP program."""
    return compiles(compiler, OPENMP_PROGRAM, *flags)


def product_flags(compiler):
    """The flags with which GCC from 9 on fuses each product with its sum. Other compilers need none."""
    macros = [*command(compiler), "-dM", "-E", "-x", "c", os.devnull]
    defined = subprocess.run(macros, capture_output=True, text=True, check=False).stdout
    known = re.search(r"__GNUC__ (9|\d\d+)\b", defined) and "__clang__" not in defined
    return [FUSED_PRODUCTS] if known else []


def compiles(compiler, program, flags=(), link_flags=(), run=False):
    """Whether a small program compiles and links and, with ``run``, exits with 0. The compiler prints its errors."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "program.c")
        source.write_text(program)
        try:
            objects = compiler.compile([str(source)], output_dir=folder, extra_postargs=[*flags])
            compiler.link_executable(objects, "program", output_dir=folder, extra_postargs=[*link_flags])
        except (CompileError, LinkError):
            return False
        return not run or subprocess.run([Path(folder, "program")], check=False).returncode == 0


def runs_isa(compiler, isa):
    """Whether this machine has the instructions of a row of setup.py's table."""
    return compiles(compiler, ISA_PROGRAM % isa, ["-Ipyx"], run=True)
