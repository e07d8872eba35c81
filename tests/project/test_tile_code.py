"""Each compiler unrolls the loops of the register tile, and forms its products and sums in one instruction."""

import platform
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.checkout

PYX = Path(__file__).parents[2] / "pyx"
TILE = """
#include "tile/ukernel.h"
#define STREAM_VECTOR(to, vector) (void)(*(to) = (vector))
#define TYPE float
#define TILE tile_f32
#include "tile/ukernel_template.h"
"""
#: Machine -> compiler flag, a product added in one instruction, a product of its own.
CODE = {
    "x86_64": ("-march=x86-64-v3", r"\tvfmadd\w+ps\s", r"\tvmulps\s"),
    "aarch64": ("-march=armv8-a", r"\tfmla\s", r"\tfmul\s"),
}


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_tile_stays_in_registers(compiler, tmp_path):
    if shutil.which(compiler) is None or platform.machine() not in CODE:
        pytest.skip(f"{compiler} is not installed, or the machine is neither x86-64 nor arm64")
    machine_flag, fused, single = CODE[platform.machine()]
    source, target = tmp_path / "tile.c", tmp_path / "tile.s"
    source.write_text(TILE)
    program = SimpleNamespace(compiler_so=[compiler])
    flags = runpy.run_path(str(PYX / "setup/compiler.py"))["product_flags"](program)
    assert bool(flags) == (compiler == "gcc")
    command = [compiler, "-std=gnu11", "-O3", *flags, machine_flag, "-fPIC", f"-I{PYX}", "-S", source, "-o", target]
    subprocess.run(command, check=True)
    text = target.read_text()
    # Rolled loops have 102 at most: one for each number of rows and vectors.
    assert len(re.findall(fused, text)) > 200
    assert not re.search(single, text)
