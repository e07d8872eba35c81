"""Build of convgrad_cy: which modules exist, and with which flags. The metadata is in pyproject.toml.

Variables for developers (a user needs none of them):

    CONVGRAD_CY_BUILD_ISAS=x86_64_v3      build these rows only, comma separated
    CONVGRAD_CY_NO_OPENMP=1               build as with a compiler that has no OpenMP
    CONVGRAD_CY_WIDE=1                    build with the vectors and registers of AVX-512, in the instructions of a row:
                                          slow, for tests of what x86_64_v4 does on machines that cannot run it
    CONVGRAD_CY_SANITIZE=address,undefined   add -fsanitize=...; Python must then run under LD_PRELOAD=libasan.so
    CONVGRAD_CY_SANITIZE_LEVEL=0          with -O0 in the place of -O1: a fifth of the build's time, twice that of tests
"""

import os
import re
import runpy
import subprocess
import sys
import sysconfig
import tempfile
from itertools import takewhile
from pathlib import Path

import numpy as np
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError, SetupError
from setuptools.modified import newer_group

# machine -> {instruction set: its compiler flags}; pyx/kernels.pyx is compiled once per row.
ISA_TABLE = {
    "x86_64": {
        "x86_64_v2": ["-march=x86-64-v2"],
        "x86_64_v3": ["-march=x86-64-v3"],
        "x86_64_v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
    },
    "aarch64": {
        "aarch64": ["-march=armv8-a"],
    },
}
SAME_MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}

NO_OPENMP = os.environ.get("CONVGRAD_CY_NO_OPENMP", "0") not in ("", "0")
SANITIZE = os.environ.get("CONVGRAD_CY_SANITIZE", "")
SANITIZE_LEVEL = os.environ.get("CONVGRAD_CY_SANITIZE_LEVEL", "1")

# No -ffast-math: NaN and infinity must reach exactly the outputs that the definition says.
COMPILE_FLAGS = ["-std=gnu11", "-O3", "-fno-math-errno", "-fwrapv", "-fvisibility=hidden", "-g0"]
COMPILE_FLAGS += ["-Wno-unused-function"]  # Cython writes every combination of fused types
LINK_FLAGS = []
if os.environ.get("CONVGRAD_CY_WIDE", "0") not in ("", "0"):
    # Wider vectors than registers never cross a module's border. More optimisation takes ten minutes and more.
    COMPILE_FLAGS += ["-DCONVGRAD_WIDE", "-Wno-psabi", "-O1"]
if SANITIZE:
    LINK_FLAGS = [f"-fsanitize={SANITIZE}"]
    COMPILE_FLAGS += [*LINK_FLAGS, "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1"]
    COMPILE_FLAGS += [f"-O{SANITIZE_LEVEL}"]

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "freethreading_compatible": True,
}

HEADERS = sorted(
    str(path)
    for top in ("pyx", "convgrad_cy/include")
    for path in Path(top).rglob("*")
    if path.suffix in (".h", ".pxd")
)

#: What to install where there is no compiler, or no Python.h.
COMPILERS = (
    "Debian, Ubuntu: apt install gcc python3-dev; Fedora: dnf install gcc python3-devel; "
    "macOS: xcode-select --install; Windows: build in WSL, as on Ubuntu. A wheel needs none (packaging/README.md)"
)

TRANSFORMS = "build/generated/winograd_transforms.h"

#: The oldest NumPy that is supported, as pyproject.toml has it.
NUMPY_MACROS = [("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION"), ("NPY_TARGET_VERSION", "NPY_1_23_API_VERSION")]

#: Flags of a user, for everything that is compiled, which must not reach these modules. The first four make the linker
#: add code that switches the whole process to flushing subnormal numbers to zero when a module is imported; the others
#: let the compiler take NaN, infinity and the order of sums for nothing.
FAST_MATH = re.compile(
    r"-ffast-math|-Ofast|-funsafe-math-optimizations|-mdaz-ftz|-ffp-model=(fast|aggressive)|-ffinite-math-only"
    r"|-fassociative-math|-freciprocal-math|-fno-signed-zeros|-fno-honor-(nans|infinities)|-fapprox-func"
    r"|-fcx-limited-range|-fsingle-precision-constant|-fdenormal-fp-math(-f32)?=.*|(.*/)?crtfastmath\.o"
)

EMPTY_PROGRAM = """
int main(void) { return 0; }
"""

#: Fails to compile where fast mathematics is still in force: by a compiler's own default, or a script in its place.
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

OPENMP_PROGRAM = """
#include <omp.h>
int main(void) {
    int n = 0;
    #pragma omp parallel for reduction(+:n)
    for (int i = 0; i < 4; i++) n += omp_get_num_threads() > 0;
    return n != 4;
}
"""


def write_transforms():
    """The header with the transforms of Winograd's algorithm, made from their exact matrices."""
    text = runpy.run_path("pyx/transform_code.py")["header"](runpy.run_path("pyx/cook_toom.py"))
    path = Path(TRANSFORMS)
    if not path.exists() or path.read_text() != text:  # its time says when it has changed
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def rows():
    """The rows of the ISA table that this build compiles."""
    machine = sysconfig.get_platform().rsplit("-", 1)[-1].lower()
    machine = SAME_MACHINE.get(machine, machine)
    if machine not in ISA_TABLE:
        raise SetupError(
            f"convgrad_cy has no kernels for the platform {sysconfig.get_platform()!r} "
            f"(known machines: {', '.join(ISA_TABLE)}; with a universal Python for macOS, set ARCHFLAGS='-arch arm64')"
        )
    table = ISA_TABLE[machine]
    wanted = [name for name in os.environ.get("CONVGRAD_CY_BUILD_ISAS", "").split(",") if name] or list(table)
    unknown = sorted(set(wanted) - set(table))
    if unknown:
        raise SetupError(f"CONVGRAD_CY_BUILD_ISAS names {', '.join(unknown)}; this machine has {', '.join(table)}")
    return {name: table[name] for name in wanted}


def extension(module, source, isa_flags=()):
    """One compiled module: a Cython source and the flags of its row."""
    return Extension(
        f"convgrad_cy.{module}",
        [source],
        include_dirs=["pyx", "convgrad_cy/include", str(Path(TRANSFORMS).parent), np.get_include()],
        depends=[*HEADERS, TRANSFORMS],
        define_macros=NUMPY_MACROS,
        extra_compile_args=[*COMPILE_FLAGS, *isa_flags],
        extra_link_args=list(LINK_FLAGS),
    )


class BuildExt(build_ext):
    """Add OpenMP where it works; translate each module in its own folder and compile it, the modules in parallel."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()
        if self.editable_mode:  # no temporary folders: another `pip install -e` compiles only what has changed
            platform = f"{self.plat_name}-{sys.implementation.cache_tag}"
            self.build_lib, self.build_temp = f"build/lib.{platform}", f"build/temp.{platform}"
        write_transforms()

    def build_extensions(self):
        self.drop_fast_math()
        self.check_compiler()
        openmp = [] if NO_OPENMP or not self.has_openmp() else ["-fopenmp"]
        for ext in self.extensions:
            ext.extra_compile_args += openmp
            ext.extra_link_args += openmp
        super().build_extensions()

    def build_extension(self, ext):
        self.translate(ext)
        super().build_extension(ext)

    def translate(self, ext):
        """Cython to C. Modules made from one source must share neither C nor object file, so each has a folder."""
        import Cython

        folder = Path("build", "cython", ext.name)
        folder.mkdir(parents=True, exist_ok=True)
        # Timestamps do not see a change of flags: what the module was built with is a file that it depends on.
        stamp = folder / "built_with.txt"
        flags = (self.compiler.compiler_so, ext.extra_compile_args, ext.extra_link_args)
        built_with = repr((Cython.__version__, np.__version__, DIRECTIVES, *flags))
        if not stamp.exists() or stamp.read_text() != built_with:
            stamp.write_text(built_with)
        ext.depends = [*ext.depends, *ext.sources, str(stamp)]
        source, translated = ext.sources[0], folder / Path(ext.sources[0]).with_suffix(".c").name
        if self.force or newer_group(ext.depends, str(translated)):
            # In a process of its own: Cython takes a good part of the build, and threads would not run it in parallel.
            directives = ",".join(f"{name}={value}" for name, value in DIRECTIVES.items())
            command = [sys.executable, "-m", "cython", "--module-name", ext.name, "-I", "pyx", "-X", directives]
            subprocess.run([*command, source, "-o", str(translated)], check=True)
        ext.sources = [str(translated)]

    def drop_fast_math(self):
        """Take the flags of fast mathematics out of the commands that CC, CFLAGS, CPPFLAGS and LDFLAGS have made."""
        dropped = set()
        for name in self.compiler.executables:
            command = getattr(self.compiler, name, None)
            if command:
                kept = [word for word in command if not FAST_MATH.fullmatch(word)]
                dropped.update(set(command) - set(kept))
                setattr(self.compiler, name, kept)
        if dropped:
            print(f"convgrad_cy: built without {' '.join(sorted(dropped))}, which would change results, or the process")

    def check_compiler(self):
        """Say at once what is missing: translating to C alone takes a minute."""
        command = " ".join(takewhile(lambda word: not word.startswith("-"), self.compiler.compiler_so))
        if not self.compiles(EMPTY_PROGRAM):
            raise SetupError(f"convgrad_cy needs a C compiler, and {command!r} cannot be run, or fails. {COMPILERS}")
        if not self.compiles(EXACT_PROGRAM):
            raise SetupError(
                f"convgrad_cy must be compiled without -ffast-math and the like, which {command!r} has by itself:"
                " set CC to another compiler"
            )
        if not self.compiles(PYTHON_PROGRAM):
            raise SetupError(f"convgrad_cy needs Python.h, which {command!r} does not find. {COMPILERS}")

    def has_openmp(self):
        """Whether the compiler compiles and links a small OpenMP program."""
        if self.compiles(OPENMP_PROGRAM, "-fopenmp"):
            return True
        print("convgrad_cy: this compiler has no OpenMP; the kernels will use one thread")
        return False

    def compiles(self, program, *flags):
        """Whether a small program can be compiled and linked; if not, the compiler has said why."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "program.c")
            source.write_text(program)
            try:
                objects = self.compiler.compile([str(source)], output_dir=folder, extra_postargs=[*flags])
                self.compiler.link_executable(objects, "program", output_dir=folder, extra_postargs=[*flags])
            except (CompileError, LinkError):
                return False
        return True


if __name__ == "__main__":
    setup(
        ext_modules=[
            extension("_aten", "pyx/aten.pyx"),
            extension("_cpu_features", "pyx/cpu_features.pyx"),
            extension("_repeat", "pyx/repeat.pyx"),
            *(extension(f"_kernels_{isa}", "pyx/kernels.pyx", flags) for isa, flags in rows().items()),
        ],
        cmdclass={"build_ext": BuildExt},
    )
