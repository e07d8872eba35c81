"""Every tuned number moves the plan of a row. moved_rows.txt has one for each, from ``bench.tune --record``."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from bench import moved_rows
from convgrad_cy.cpu.machine.tuning import TABLE

FOUND = moved_rows.read(Path(__file__).with_name("moved_rows.txt"))


@pytest.mark.tuning
@pytest.mark.parametrize("number", TABLE, ids=lambda number: number.name)
def test_each_number_moves_a_plan(number):
    """After a change of the planner or of a number, ``bench.tune --record`` finds other rows.

    A number for which it finds none decides nothing: remove it, and the rule that it limits.
    """
    assert number.name in FOUND and FOUND[number.name].is_moved()


def test_no_other_number_has_a_row():
    assert {*FOUND} == {number.name for number in TABLE}


def test_a_number_that_moves_nothing_is_seen():
    """The row of a number moves with this number, and not with a number of another family."""
    moved = FOUND["box_positions"]
    assert moved.is_moved() and not moved._replace(number="most_patch_channels").is_moved()
