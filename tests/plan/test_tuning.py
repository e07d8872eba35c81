"""The table of tuned numbers: each is described, is used by the planner, and reaches it through the machine."""

import re
from pathlib import Path

import pytest
from plans import blocks_of

import convgrad_cy
from convgrad_cy import dtypes
from convgrad_cy.cpu.machines import Machine
from convgrad_cy.cpu.tuning import NARROW, TABLE, WIDE, tuning_of
from convgrad_cy.problem import FPROP, WGRAD, ConvProblem

PACKAGE = Path(convgrad_cy.__file__).parent
SUITES = re.findall(r"^\[(\w+)\]", (Path(__file__).parents[2] / "bench" / "suites.txt").read_text(), re.MULTILINE)
MACHINE = Machine(6, 256, 64, False, 32 << 20, threads=2)


@pytest.mark.parametrize("number", TABLE, ids=lambda number: number.name)
def test_each_is_described_and_used(number):
    assert number.wide > 0 and number.narrow > 0 and number.unit and number.balances
    assert number.suites and set(number.suites.split()) <= set(SUITES)
    planner = [path.read_text() for path in (PACKAGE / "cpu").rglob("*.py") if path.name != "tuning.py"]
    assert any(f"tuning.{number.name}" in text for text in planner)


def test_widths():
    assert [tuning_of(bytes_) for bytes_ in (16, 32, 64)] == [NARROW, NARROW, WIDE]
    assert MACHINE.tile.tuning is WIDE and MACHINE._replace(vector_bytes=32).tile.tuning is NARROW
    assert len({number.name for number in TABLE}) == len(TABLE) == len(WIDE) == len(NARROW)


def test_a_machine_may_have_its_own():
    """A plan takes its numbers from the machine, and plans of other numbers are others."""
    problem = ConvProblem(8, 1, 64, 64, (1, 56, 56), (1, 56, 56), (1, 3, 3), pad_begin=(0, 1, 1))
    own = MACHINE._replace(tuning=WIDE._replace(wgrad_outputs=64, most_outputs=64, depth_bytes=1152))
    for machine, outputs, chunk in ((MACHINE, 64, 64), (own, 64, 32), (MACHINE, 64, 64)):
        blocks = blocks_of(FPROP, problem, dtypes.TABLE[2], True, machine)
        assert (blocks.outputs, blocks.chunk) == (outputs, chunk)
    wide = ConvProblem(8, 1, 64, 128, (1, 56, 56), (1, 56, 56), (1, 3, 3), pad_begin=(0, 1, 1))
    assert [blocks_of(WGRAD, wide, dtypes.TABLE[2], True, machine).outputs for machine in (MACHINE, own)] == [128, 64]
