"""setup.py makes the files that depend on a change, once for all users."""

import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from setup_runs import child

pytest.importorskip("Cython")
pytest.importorskip("setuptools", "77")

pytestmark = [
    pytest.mark.checkout,
    pytest.mark.skipif(shutil.which("gcc") is None or os.name != "posix", reason="gcc is not installed"),
]

ROOT = Path(__file__).parents[2]

#: Sources instead of the kernels, translated and compiled in seconds. One names its instruction set.
KERNELS = """
cdef extern from "level.h":
    int level()
cdef extern:
    int answer_of_part()
def tell():
    return answer_of_part(), level()
"""
#: A part that takes from a .pxd, and one that does not.
WINOGRAD = """
from shared cimport answer
cdef public int answer_of_part():
    return answer()
"""
OTHER = "cdef int nothing = 0"
SHARED = """
cdef inline int answer():
    return 41
"""
LEVEL = """
static inline int level(void)
{
#if defined(__AVX512F__)
    return 4;
#elif defined(__AVX2__)
    return 3;
#else
    return 2;
#endif
}
"""
#: Prints the name of a module, and its fact.
TOLD = """
import importlib.util, sys
name = "convgrad_cy." + sys.argv[1].split("/")[-1].split(".")[0]
spec = importlib.util.spec_from_file_location(name, sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module.__name__, *module.tell())
"""


@pytest.fixture
def small_kernels(folder):
    """Kernels of a few lines, for x86_64. One of the two parts reads a .pxd, the main one a header."""
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("the rows are for x86_64")
    (folder / "pyx").unlink()
    (folder / "pyx").mkdir()
    for name in ("parts", "tile"):
        (folder / "pyx" / name).mkdir()
    for name in ("setup", "winograd", "cpu_features.h"):
        (folder / "pyx" / name).symlink_to(ROOT / "pyx" / name)
    texts = {"kernels.pyx": KERNELS, "shared.pxd": SHARED, "level.h": LEVEL}
    texts |= {"tile/ukernel.c": "int tile;", "tile/slide.c": LEVEL}
    texts |= {"parts/winograd.pyx": WINOGRAD, "parts/direct_wgrad.pyx": OTHER}
    for name, text in texts.items():
        (folder / "pyx" / name).write_text(text)
    return folder


def made(*options, **variables):
    """The files that a build makes, each with its folder and name. The build does not optimise, to take less time."""
    variables = {"CONVGRAD_CY_BUILD_ISAS": "x86_64_v2,x86_64_v3", "CONVGRAD_CY_OPTIMIZE": "0"} | variables
    done = child("kernels", "lib", *options, variables=variables)
    assert done.returncode == 0, done.stderr
    return sorted(
        line.split()[1].partition(".cpython")[0] for line in done.stdout.splitlines() if line.startswith("made ")
    )


MODULES = ["convgrad_cy/_kernels_x86_64_v2", "convgrad_cy/_kernels_x86_64_v3"]
TRANSLATED = [f"cython/{name}.c" for name in ("kernels", "direct_wgrad", "winograd")]
COMPILED = [f"cython/{name}.o" for name in ("kernels", "direct_wgrad", "winograd")] * 2
PART, KERNEL = ["cython/winograd.o"] * 2, ["cython/kernels.o"] * 2
C_SOURCES = ["tile/slide.o", "tile/ukernel.o"] * 2


def told():
    """The fact that the first module prints."""
    (file,) = Path().glob(f"lib/{MODULES[0]}.*")
    done = subprocess.run([sys.executable, "-c", TOLD, file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def changed(path, old, new):
    time.sleep(0.02)  # with a coarse clock, the source would be as old as its target
    path.write_text(path.read_text().replace(old, new))


def test_a_build_makes_what_has_changed(small_kernels):
    """One translation must serve all rows. A change must be compiled for its readers only, and nothing made twice."""
    pyx = small_kernels / "pyx"
    everything = sorted([*MODULES, *TRANSLATED, *COMPILED, *C_SOURCES])
    assert made() == everything
    assert made() == []
    changed(pyx / "shared.pxd", "41", "42")
    assert made() == sorted([*MODULES, "cython/winograd.c", *PART])
    changed(pyx / "level.h", "return 2", "return 1")
    assert made() == sorted([*MODULES, *KERNEL])
    changed(pyx / "tile/ukernel.c", "tile", "tiles")
    assert made() == sorted([*MODULES, *["tile/ukernel.o"] * 2])
    one_row = {"CONVGRAD_CY_BUILD_ISAS": "x86_64_v2"}  # takes half the time
    compiled = {*COMPILED, *C_SOURCES}
    assert made(**one_row, CONVGRAD_CY_OPTIMIZE="1") == sorted([MODULES[0], *compiled])  # other flags
    assert made("--force", **one_row, CONVGRAD_CY_OPTIMIZE="1") == sorted([MODULES[0], *TRANSLATED, *compiled])
    assert told() == "convgrad_cy._kernels_x86_64_v2 42 1\n"


def test_a_step_that_fails_is_made_again(small_kernels):
    """A step that fails must be repeated: its module is never linked with older files.

    C sources suffice to see this.
    """
    for source in small_kernels.glob("pyx/**/*.pyx"):
        source.unlink()
    slide, one_row = small_kernels / "pyx/tile/slide.c", {"CONVGRAD_CY_BUILD_ISAS": "x86_64_v2"}
    assert made(**one_row) == [MODULES[0], "tile/slide.o", "tile/ukernel.o"]
    changed(slide, "return 2;", "return 2")
    for _ in range(2):
        done = child("kernels", "lib", variables=one_row)
        assert done.returncode == 1 and "slide.c" in done.stderr
    changed(slide, "return 2", "return 2;")
    assert made(**one_row)[:2] == [MODULES[0], "tile/slide.o"]


def test_builds_share_what_they_make(small_kernels):
    """A second folder must only link.

    A change must be compiled for its readers, and be found again when it comes back.
    """
    for name in ("parts/direct_wgrad.pyx", "tile/ukernel.c", "tile/slide.c"):
        (small_kernels / "pyx" / name).unlink()
    shared, header = small_kernels / "pyx/shared.pxd", small_kernels / "pyx/level.h"
    store = {"CONVGRAD_CY_BUILD_ISAS": "x86_64_v2", "CONVGRAD_CY_OBJECTS": "store"}
    linked, compiled = MODULES[:1], ["cython/kernels.o", "cython/winograd.o"]
    assert made(**store) == sorted([*linked, "cython/kernels.c", "cython/winograd.c", *compiled])
    for folder in ("build", "temp", "lib"):
        shutil.rmtree(folder)
    assert made(**store) == linked
    assert made(**store) == []
    changed(shared, "41", "42")
    changed(header, "return 2", "return 1")
    assert made(**store) == sorted([*linked, "cython/winograd.c", *compiled])
    assert told() == "convgrad_cy._kernels_x86_64_v2 42 1\n"
    changed(shared, "42", "41")
    assert made(**store) == linked
    assert told() == "convgrad_cy._kernels_x86_64_v2 41 1\n"
    assert made(**store, CONVGRAD_CY_OPTIMIZE="1") == [*linked, *compiled]  # other flags
