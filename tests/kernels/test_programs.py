"""Refusals of the kernels: programs of other widths or of the other kind, and unknown types."""

import re
from pathlib import Path

import numpy as np
import pytest

from convgrad_cy.cpu.machine.kernels import compiled as kernels
from convgrad_cy.cpu.plan.steps import Blocks, Reads, TileBlocks, WindowAxis
from convgrad_cy.problem import AxisWalk

ROOT = Path(__file__).parents[2]
WALK = 3 * len(AxisWalk._fields)
#: Integers of a row of steps, and of the blocks.
PLAIN = (WALK + 3 * len(WindowAxis._fields) + len(Reads._fields) + 1, len(Blocks._fields))
TILED = (WALK + 3 * 4 + 2, len(TileBlocks._fields))
KERNELS = {"correlate": PLAIN, "wgrad": PLAIN, "winograd_correlate": TILED, "winograd_wgrad": TILED}
names = pytest.mark.parametrize("name", KERNELS)


def program(widths, rows=1):
    step, blocks = widths
    return kernels.Program(np.zeros((rows, step), np.int64), np.zeros(blocks, np.int64))


@pytest.mark.parametrize(
    "widths", [(1, 3), (PLAIN[0], PLAIN[1] - 1), (PLAIN[0] + 1, PLAIN[1]), (PLAIN[0], TILED[1]), (TILED[0], PLAIN[1])]
)
def test_other_widths(widths):
    expected = re.escape(f"must have {PLAIN} integers in a Plan or {TILED} in a TilePlan, had {widths}")
    with pytest.raises(ValueError, match=expected):
        program(widths)


@pytest.mark.parametrize("widths", [PLAIN, TILED])
def test_no_steps(widths):
    with pytest.raises(ValueError, match="steps must have at least one row"):
        program(widths, rows=0)


@names
def test_programs_of_the_other_kind(name):
    one = np.zeros((1,) * 6, np.float32)
    wanted, given = ("a TilePlan", "a Plan") if KERNELS[name] == TILED else ("a Plan", "a TilePlan")
    with pytest.raises(TypeError, match=f"plan must be the program of {wanted}, not of {given}"):
        getattr(kernels, name)(2, one, one, one, program(PLAIN if KERNELS[name] == TILED else TILED))


@names
@pytest.mark.parametrize("dtype", [-1, 5])
def test_unknown_types(name, dtype):
    one = np.zeros((1,) * 6, np.float32)
    with pytest.raises(ValueError, match=f"dtype must be one of .*, was {dtype}"):
        getattr(kernels, name)(dtype, one, one, one, program(KERNELS[name]))


@pytest.mark.parametrize("name", ["winograd_correlate", "winograd_wgrad"])
@pytest.mark.parametrize("dtype, array_type", [(3, np.float64), (4, np.int32)])
def test_types_without_winograd(name, dtype, array_type):
    one = np.zeros((1,) * 6, array_type)
    with pytest.raises(ValueError, match=rf"dtype must be one of \(0, 1, 2\), .*, was {dtype}"):
        getattr(kernels, name)(dtype, one, one, one, program(TILED))


def test_unknown_types_of_tiles_and_copies():
    with pytest.raises(ValueError, match=r"dtype must be one of .*, was 5"):
        kernels.run_tiles(5, 1, 1, 1)
    with pytest.raises(ValueError, match="target must have elements of 2, 4 or 8 bytes, had 1"):
        kernels.rearrange(np.zeros((1,) * 7, np.uint8), np.zeros((1,) * 7, np.uint8), 1)


def fields(file, struct):
    """The fields of a struct in a .pxd file. All of them have the type of plans."""
    text = (ROOT / "pyx" / file).read_text()
    body = re.search(rf"^( *)c(?:type)?def struct {struct}:.*\n((?:\1    .*\n)+)", text, re.MULTILINE)[2]
    lines = [line.partition("#")[0].strip() for line in body.splitlines()]
    assert all(line.startswith("int64_t ") for line in lines)
    return tuple(name for line in lines for name in line.removeprefix("int64_t ").split(", "))


@pytest.mark.checkout
@pytest.mark.parametrize(
    "file, struct, expected",
    [
        ("base/problem.pxd", "conv_axis", AxisWalk),
        ("copy/window.pxd", "WindowAxis", WindowAxis),
        ("direct/blocks.pxd", "Blocks", Blocks),
        ("direct/blocks.pxd", "Reads", Reads),
        ("winograd/tiling.pxd", "TileBlocks", TileBlocks),
    ],
)
def test_structs(file, struct, expected):
    """A plan's integers are read as structs, so the fields must agree one by one, in order."""
    assert fields(file, struct) == expected._fields


@pytest.mark.checkout
def test_the_walk_in_c():
    text = (ROOT / "convgrad_cy" / "include" / "convgrad" / "problem.h").read_text()
    body = re.search(r"typedef struct \{([^}]*)\} conv_axis;", text)[1]
    assert tuple(re.findall(r"(\w+)[,;]", body)) == AxisWalk._fields
