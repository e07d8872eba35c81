"""Tall tiles: of one vector, and of more rows than others where the rows of the other operand lie evenly."""

import numpy as np
import pytest
from operations import DTYPES, FORMATS, OPERATIONS, check_bits, check_exact, check_nonfinite
from problems import parse

LAYERS = (
    parse('mb2ic16ih5iw11oc16kh3ph1n"rows_of_11"'),
    parse('mb2ic12ih5iw16oc16kh3ph1n"rows_of_16"'),
    parse('mb1ic16ih4iw17oc9kh3ph1n"rows_in_two_tiles"'),
    parse('mb1ic16ih4iw47oc16kh1kw3pw1n"rows_in_three_tiles"'),
    parse('mb2ic24ih9iw7oc16kh1n"one_row_of_all_positions"'),
    parse('mb3ic16ih9iw23oc16kh3sh2ph1n"rows_with_a_stride"'),
    parse('mb2ic16ih28iw27oc16kh4sh2ph1n"rows_of_phases"'),
    parse('mb2g4ic64ih14oc64kh3ph1n"a_row_of_all_groups"'),
    parse('mb2g4ic48ih13iw29oc40kh3sh2ph1n"groups_of_part_of_a_vector"'),
    parse('mb1g3ic48ih12iw31oc48kh3dh1ph2n"groups_with_dilation"'),
    parse('mb2g5ic80iw50oc80kw8pw3n"groups_of_one_axis"'),
    parse('mb1g4ic64ih20iw13oc64kh1n"one_row_of_each_group"'),
    parse('mb1ic8id4ih5iw15oc16kd3kh3pd1ph1n"rows_of_three_axes"'),
)
operations = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
problems = pytest.mark.parametrize("problem", LAYERS, ids=str)
formats = pytest.mark.parametrize("formats", FORMATS, ids="-".join)


@operations
@problems
@formats
@pytest.mark.parametrize("dtype", DTYPES)
def test_exact(operation, problem, dtype, formats):
    check_exact(operation, problem, dtype, formats)


@operations
@problems
@formats
@pytest.mark.parametrize("value", (np.nan, np.inf))
def test_nonfinite_values(operation, problem, value, formats):
    check_nonfinite(operation, problem, value, formats)


@operations
@problems
def test_bits(operation, problem):
    """The other layout has other boxes, zones and tiles."""
    check_bits(operation, problem)
