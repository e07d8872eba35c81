"""The table of tuned numbers: each is described, is used by the planner, and reaches it through the machine."""

import ast
import re
from pathlib import Path

import pytest
from plans import blocks_of

import convgrad_cy
from convgrad_cy import dtypes
from convgrad_cy.cpu.machine import Machine
from convgrad_cy.cpu.machine.tuning import NARROW, TABLE, WIDE, tuning_of
from convgrad_cy.problem import FPROP, WGRAD, ConvProblem

PLANNER = Path(convgrad_cy.__file__).parent / "cpu"
SOURCES = {
    str(path.relative_to(PLANNER)): path.read_text() for path in PLANNER.rglob("*.py") if path.parent.name != "tuning"
}
MACHINE = Machine(6, 256, 64, False, 32 << 20, threads=2)

#: Numbers with a name elsewhere: they limit legal problems or memory, or belong to a fit.
ELSEWHERE = {
    "direct/long_filters.py": {"LEAST_CHANNELS"},
    "direct/plan.py": {"PLANS_BYTES"},
    "machine/caches.py": {"_COMMON"},
    "rewrites/dgrad_costs.py": {"_FITTED_BYTES"},
    "machine/__init__.py": {"LINE_BYTES", "VECTORS", "MATRICES", "PAIRED_TIME"},  # the last follows from instructions
    "plan/checks.py": {"FEW_ROWS", "MOST", "TILE_POINTS"},
    "rewrites/overlaps.py": {"_CHANNELS_FIRST", "_CHANNELS_LAST"},
    "rewrites/folded_taps.py": {"MOST_DENSE_IMAGES", "MOST_DENSE_TAPS"},
    "small_groups/plan.py": {"_LATEST_CALLS"},
    "small_groups/limits.py": {"MOST_TABLE"},
    "small_groups/spread.py": {"SPREAD_PARTS"},
    "plan/scratch.py": {"OF_ANY", "OF_ARRAYS"},
    "plan/steps.py": {"ADDED", "PACKS", "SIBLINGS"},
    "machine/register_tile.py": {"HALF_ROWS"},
    "plan/walks.py": {"MOST_WALKS", "FEW_WALKS", "_LATEST_CALLS"},
    "winograd/costs.py": {"FEW_TILES", "SMALL_PRODUCTS"},
    "winograd/layout.py": {"_CHANNELS_LAST", "_INPUTS_LAST", "_OUTPUTS_LAST"},
    "winograd/memory.py": {"FINISHED_CHANNELS", "LINE"},
    "winograd/tilings.py": {
        *("SMALL", "LARGE", "TILES_7", "TILES_8"),  # the existing sets of points
        *("LARGEST_TILES", "MOST_ACCURATE_CHANNELS", "SCRATCH_BYTES"),
    },
    "winograd/plan.py": {"FLOAT_BYTES"},
    "winograd/work.py": {"LEFT_OUT", "ROWS"},
    "winograd/walks.py": {"MOST_TAPS", "PIECE_TAPS", "MOST_TILE_WALKS", "_LATEST_CALLS"},
}


@pytest.mark.parametrize("number", TABLE, ids=lambda number: number.name)
def test_each_is_described_and_used(number):
    assert number.wide > 0 and number.narrow > 0 and number.unit and re.fullmatch(r"[A-Z].*\.\)?", number.balances)
    assert any(re.search(rf"tuning\.{number.name}\b", text) for text in SOURCES.values())


def _are_numbers(node):
    parts = list(ast.walk(node))
    values = [part.value for part in parts if isinstance(part, ast.Constant)]
    plain = not any(isinstance(part, ast.Call) for part in parts)
    return plain and bool(values) and all(isinstance(value, int | float) for value in values)


def numbers_of(text):
    """The names that a module gives to numbers."""
    found = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and _are_numbers(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return found


def test_no_others_decide_what_is_faster():
    """A new number that a module names must be a row of the table, or one that has nothing to do with speed."""
    assert {name: found for name, text in SOURCES.items() if (found := numbers_of(text))} == ELSEWHERE
    assert numbers_of("A, B = 3, 0.5\nC: dict = {1: A << 3}\nD = 'd'\nE = f(2)\ndef f():\n    G = 1") == {"A", "B", "C"}


def test_widths():
    assert [tuning_of(bytes_) for bytes_ in (16, 32, 64)] == [NARROW, NARROW, WIDE]
    assert MACHINE.tile.tuning is WIDE and MACHINE._replace(vector_bytes=32).tile.tuning is NARROW
    assert len({number.name for number in TABLE}) == len(TABLE) == len(WIDE) == len(NARROW)


def test_a_machine_may_have_its_own():
    """A plan must take its numbers from the machine. Plans with other numbers must differ."""
    problem = ConvProblem(8, 1, 64, 64, (1, 56, 56), (1, 56, 56), (1, 3, 3), pad_begin=(0, 1, 1))
    own = MACHINE._replace(own_tuning=WIDE._replace(wgrad_outputs=64, most_outputs=64, depth_bytes=1152))
    for machine, outputs, chunk in ((MACHINE, 64, 64), (own, 64, 32), (MACHINE, 64, 64)):
        blocks = blocks_of(FPROP, problem, dtypes.TABLE[2], True, machine)
        assert (blocks.outputs, blocks.chunk) == (outputs, chunk)
    wide = ConvProblem(8, 1, 64, 128, (1, 56, 56), (1, 56, 56), (1, 3, 3), pad_begin=(0, 1, 1))
    assert [blocks_of(WGRAD, wide, dtypes.TABLE[2], True, machine).outputs for machine in (MACHINE, own)] == [128, 64]
