"""tests/arm_code.py finds the loop of a full tile in a listing, and refuses one that is slow or uses the stack."""

import subprocess
import sys
from pathlib import Path

import pytest
from arm_code import ROWS, TILES, VECTORS

SCRIPT = Path(__file__).parents[1] / "arm_code.py"
ELEMENTS = {"fmla": ("4s", "s[0]"), "bfdot": ("8h", "2h[0]")}


def listing(function, name, others, rows=ROWS, vectors=VECTORS):
    """objdump's listing of a function whose loop has the products of a tile, and some other instructions."""
    lanes, element = ELEMENTS[name]
    products = [
        f"{name}\tv{r * vectors + v}.4s, v{rows * vectors + v}.{lanes}, v31.{element}"
        for r in range(rows)
        for v in range(vectors)
    ]
    loop = [*others, *products, "b.ne\t4 <" + function + "+0x4>"]
    code = ["mov\tx1, #0x0", *loop, "ret"]
    return "\n".join([f"0000 <{function}>:", *(f"   {4 * i:x}:\t{step}" for i, step in enumerate(code)), ""])


def run(*listings):
    return subprocess.run([sys.executable, SCRIPT], input="\n".join(listings), capture_output=True, text=True)


def both(others):
    return [listing(function, name, others) for function, name in TILES.items()]


def test_good_loops_pass():
    done = run(*both(["ldr\ts31, [x1, x0, lsl #2]"] * 13))
    assert done.returncode == 0, done.stderr
    assert "tile_f32: 38 instructions for 24 products, 1.58 each, 0 on the stack" in done.stdout


@pytest.mark.parametrize(
    "others", [["add\tx0, x0, #0x1"] * 19, ["ldr\tq30, [sp, #32]"]], ids=["many instructions", "stack"]
)
def test_bad_loops_fail(others):
    assert run(*both(others)).returncode == 1


def test_missing_loops_fail():
    one, other = both([])
    assert run(one).returncode == 1
    assert run(one, other).returncode == 0
    narrow = [listing(function, name, [], 8, 3) for function, name in TILES.items()]
    assert run(*narrow).returncode == 1
