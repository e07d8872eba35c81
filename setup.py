"""Build of convgrad_cy: its modules and their flags. pyproject.toml has the metadata, pyx/setup/links.py its links.

Variables for developers (a user needs none of them):

    CONVGRAD_CY_BUILD_ISAS=x86_64_v3      build only these rows of ISA_TABLE (comma separated), or "all". If not set, an
                                          editable install builds this machine's best row, and other builds all
    CONVGRAD_CY_NO_OPENMP=1               build as with a compiler that has no OpenMP
    CONVGRAD_CY_WIDE=1                    build with the vectors and registers of AVX-512 for any row: slow, to test the
                                          code of x86_64_v4 on machines that cannot run it
    CONVGRAD_CY_TILE_MODEL=1              build a model of the tile registers of AMX (tests/amx) instead of their
                                          instructions, and choose x86_64_amx on any machine with x86_64_v4: a test
    CONVGRAD_CY_SANITIZE=address,undefined   add -fsanitize=...; Python must then run under LD_PRELOAD=libasan.so
    CONVGRAD_CY_OPTIMIZE=1                -O1 instead of -O3. Wide and sanitized builds have -O1 by default. With 0, a
                                          sanitized build is 5x faster, but its tests take twice as long
    CONVGRAD_CY_LIBOMP=/opt/homebrew/opt/libomp   take OpenMP from this libomp, for a clang without one of its own
    CONVGRAD_CY_OBJECTS=/tmp/objects      a folder that builds in several checkouts share. A build takes translations
                                          and object files from it if another build has made the same
"""

import os
import runpy
import subprocess
import sys
import sysconfig
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import SetupError

build_compiler, build_links, build_steps, build_store = (
    SimpleNamespace(**runpy.run_path(f"pyx/setup/{name}.py")) for name in ("compiler", "links", "steps", "store")
)

# machine -> {instruction set: its compiler flags}. KERNELS are compiled once per row. pyx/cpu_features.h tests whether
# a machine runs a row.
ISA_TABLE = {
    "x86_64": {
        "x86_64_v2": ["-march=x86-64-v2"],
        "x86_64_v3": ["-march=x86-64-v3"],
        "x86_64_v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
    },
    "aarch64": {
        # One row: compiled for armv8.2-a+fp16 or armv8.6-a+bf16, tiles and conversions are the same machine code. The
        # functions that multiply pairs of bfloat16 allow their instructions themselves (tile/ukernel.h).
        # GCC's first scheduling moves loads up until vectors do not fit into registers. On x86-64 it is off by default.
        "aarch64": ["-march=armv8-a", "-fno-schedule-insns", "-Wno-ignored-optimization-argument"],
    },
}
SAME_MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}

#: The sources of each row's module. Each part is translated once for all rows, and again only if it has changed.
PARTS = [f"pyx/parts/{part}.pyx" for part in ("direct_correlate", "direct_wgrad", "small_groups", "winograd")]
KERNELS = ["pyx/tile/slide.c", "pyx/tile/ukernel.c", "pyx/tile/matrix.c", "pyx/copy/transpose.c"]
KERNELS += ["pyx/long_sums/dots.c", *PARTS, "pyx/kernels.pyx", "pyx/parallel/shared.c"]

#: Cython's utility code (mostly for memoryviews), once for all parts instead of in each module.
CYUTILITY = "build/cython/_cyutility.c"

NO_OPENMP = os.environ.get("CONVGRAD_CY_NO_OPENMP", "0") not in ("", "0")
TILE_MODEL = os.environ.get("CONVGRAD_CY_TILE_MODEL", "0") not in ("", "0")
SANITIZE = os.environ.get("CONVGRAD_CY_SANITIZE", "")
OBJECTS = os.environ.get("CONVGRAD_CY_OBJECTS", "")
LIBOMP = os.environ.get("CONVGRAD_CY_LIBOMP", "")
WIDE = os.environ.get("CONVGRAD_CY_WIDE", "0") not in ("", "0")
# If vectors are wider than registers, -O3 takes ten minutes or more.
OPTIMIZE = os.environ.get("CONVGRAD_CY_OPTIMIZE") or ("1" if WIDE or SANITIZE else "3")

# No -ffast-math: NaN and infinity must reach exactly the outputs that the definition says.
COMPILE_FLAGS = ["-std=gnu11", f"-O{OPTIMIZE}", "-fno-math-errno", "-fwrapv", "-fvisibility=hidden", "-g0"]
COMPILE_FLAGS += ["-Wno-unused-function"]  # Cython writes functions for all types, whether called or not
#: Flags of modules without kernels: a wheel becomes 0.04 MB smaller, and calls take as long.
WITHOUT_KERNELS = ["-O2"] if OPTIMIZE == "3" else []
LINK_FLAGS = []
if NO_OPENMP:
    COMPILE_FLAGS += ["-DCONVGRAD_NO_OPENMP"]  # no warning for a user who asks for one thread
if WIDE:
    COMPILE_FLAGS += ["-DCONVGRAD_WIDE", "-Wno-psabi"]  # such vectors are never passed between source files
if TILE_MODEL:
    COMPILE_FLAGS += ["-DCONVGRAD_TILE_MODEL", "-Itests/amx"]
if SANITIZE:
    LINK_FLAGS = [f"-fsanitize={SANITIZE}"]
    COMPILE_FLAGS += [*LINK_FLAGS, "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1"]

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "freethreading_compatible": True,
}

TRANSFORMS = "build/generated/winograd_transforms.h"

#: The oldest NumPy that is supported, as pyproject.toml has it.
NUMPY_MACROS = [("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION"), ("NPY_TARGET_VERSION", "NPY_1_23_API_VERSION")]


def write_transforms():
    """Write the header with the transforms of Winograd's algorithm, made from their exact matrices."""
    text = runpy.run_path("pyx/winograd/transform_code.py")["header"](runpy.run_path("pyx/winograd/cook_toom.py"))
    path = Path(TRANSFORMS)
    if not path.exists() or path.read_text() != text:  # an unchanged file keeps its timestamp
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def rows():
    """The rows of this machine's ISA table."""
    machine = sysconfig.get_platform().rsplit("-", 1)[-1].lower()
    machine = SAME_MACHINE.get(machine, machine)
    if machine not in ISA_TABLE:
        raise SetupError(
            f"convgrad_cy has no kernels for the platform {sysconfig.get_platform()!r} "
            f"(known machines: {', '.join(ISA_TABLE)}; with a universal Python for macOS, set ARCHFLAGS='-arch arm64')"
        )
    return ISA_TABLE[machine]


def wanted_isas():
    """The rows that CONVGRAD_CY_BUILD_ISAS names, or None if it is not set."""
    wanted = [name for name in os.environ.get("CONVGRAD_CY_BUILD_ISAS", "").split(",") if name]
    if wanted == ["all"]:
        return list(rows())
    unknown = sorted(set(wanted) - set(rows()))
    if unknown:
        raise SetupError(f"CONVGRAD_CY_BUILD_ISAS names {', '.join(unknown)}; this machine has {', '.join(rows())}")
    return wanted or None


def extension(module, sources, isa=None):
    """A compiled module with its Cython and C sources, for one row or for all machines."""
    ext = Extension(
        f"convgrad_cy.{module}",
        sources,
        include_dirs=["pyx", "convgrad_cy/include", str(Path(TRANSFORMS).parent), np.get_include()],
        define_macros=list(NUMPY_MACROS),
        extra_compile_args=[*COMPILE_FLAGS, *(rows()[isa] if isa else WITHOUT_KERNELS)],
        extra_link_args=list(LINK_FLAGS),
    )
    ext.isa = isa
    if isa:  # Cython names the init function after the source, but Python looks for the module's name
        ext.define_macros.append(("PyInit__kernels", f"PyInit_{module}"))
    return ext


class BuildExt(build_ext):
    """Add OpenMP if it works. Translate, compile and link changed sources and modules in parallel."""

    #: A text to print at the end, because pip shows little of a build and users read only its end.
    last_words = None

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()
        if self.editable_mode:  # fixed folders, so that another `pip install -e` compiles only changed files
            platform = f"{self.plat_name}-{sys.implementation.cache_tag}"
            self.build_lib, self.build_temp = f"build/lib.{platform}", f"build/temp.{platform}"
        write_transforms()

    def build_extensions(self):
        build_compiler.drop_fast_math(self.compiler)
        build_compiler.check(self.compiler)
        if self.editable_mode and wanted_isas() is None:
            self.drop_isas()
        openmp = [], []
        if not NO_OPENMP:
            flags = build_compiler.openmp_flags(LIBOMP)
            if build_compiler.has_openmp(self.compiler, flags):
                openmp = flags
            else:
                BuildExt.last_words = build_compiler.WITHOUT_OPENMP.format(
                    " ".join(build_compiler.command(self.compiler))
                )
        products = build_compiler.product_flags(self.compiler)
        for ext in self.extensions:
            ext.extra_compile_args += [*openmp[0], *products]
            ext.extra_link_args += openmp[1]
        store = build_store.Store(OBJECTS) if OBJECTS else None
        build_steps.run_all(self.steps(), self.parallel, self.force, store)

    def steps(self):
        """The steps of all modules. Translations come first, because other steps wait for them."""
        self.compiled_with = np.__version__, sys.version, build_compiler.version(self.compiler)
        translations, others = {}, []
        for ext in self.extensions:
            objects, folder = [], f"{self.build_temp}/{ext.name}"  # modules share sources, but not object files
            for source in ext.sources:
                if source.endswith(".pyx") or source == CYUTILITY:
                    translations[source] = self.translation(source)
                    source = translations[source].target
                objects += self.compiler.object_filenames([source], output_dir=folder)
                others.append(self.compilation(ext, source, folder, objects[-1]))
            link = partial(self.link, ext, objects)
            others.append(build_steps.Step(self.get_ext_fullpath(ext.name), objects, link))
        return [*translations.values(), *others]

    def translation(self, source):
        """The step from Cython to C, once for all modules that have this source."""
        utility = f"convgrad_cy.{Path(CYUTILITY).stem}"
        if source == CYUTILITY:
            return self.cython(source, [], ["--module-name", utility, f"--generate-shared={source}"])
        target = f"build/cython/{Path(source).stem}.c"
        options = ["-M", "-I", "pyx", "--module-name", f"convgrad_cy._{Path(source).stem}"]
        if source in KERNELS:
            options += ["--shared", utility]
        return self.cython(target, [source], [*options, source, "-o", target])

    def cython(self, target, sources, options):
        """A step that runs Cython, in a separate process because threads would not run it in parallel."""
        import Cython

        options = ["-X", ",".join(f"{name}={value}" for name, value in DIRECTIVES.items()), *options]
        make = partial(subprocess.run, [sys.executable, "pyx/setup/translate.py", *options], check=True)
        return build_steps.Step(target, sources, make, repr((Cython.__version__, *options)))

    def compilation(self, ext, source, folder, target):
        """The step from C to an object file of one module."""
        make = partial(
            self.compiler.compile,
            [source],
            output_dir=folder,
            macros=ext.define_macros,
            include_dirs=ext.include_dirs,
            debug=self.debug,
            extra_postargs=[*ext.extra_compile_args, "-MMD", "-MF", f"{target}.dep"],
        )
        flags = (self.compiler.compiler_so, ext.define_macros, ext.extra_compile_args, ext.extra_link_args)
        return build_steps.Step(target, [source], make, repr((*self.compiled_with, *flags)))

    def link(self, ext, objects):
        """Link object files to a module, as setuptools does."""
        ext.sources, ext.extra_objects, ext.depends = [], objects, objects
        super().build_extension(ext)

    def drop_isas(self):
        """Keep only the machine's best instruction set, and modules that exist, because these would become outdated."""
        best = next((isa for isa in reversed(rows()) if build_compiler.runs_isa(self.compiler, isa)), None)
        if best is not None:
            self.extensions = [
                ext
                for ext in self.extensions
                if ext.isa in (None, best) or Path(self.get_ext_filename(ext.name)).exists()
            ]


def build(*extensions, **options):
    """Build some modules and print the warnings at the end."""
    setup(ext_modules=list(extensions), cmdclass={"build_ext": BuildExt}, **options)
    if BuildExt.last_words:
        print(BuildExt.last_words)


if __name__ == "__main__":
    build(
        *(extension(f"_kernels_{isa}", KERNELS, isa) for isa in wanted_isas() or rows()),
        extension("_cyutility", [CYUTILITY]),
        extension("_aten", ["pyx/aten.pyx"]),
        extension("_xla_ffi", ["pyx/xla_ffi.pyx"]),
        extension("_cpu_features", ["pyx/cpu_features.pyx"]),
        extension("_repeat", ["pyx/repeat.pyx", "pyx/parallel/shared.c"]),
        **build_links.metadata(),
    )
