"""Boxes of which products with padding are left out: positions, or taps, in zones that see none of it.

The problems are large enough for that to be worth while, as it is not for those of other tests.
"""

import numpy as np
import pytest
from operations import DTYPES, FORMATS, OPERATIONS, check_bits, check_exact, check_nonfinite
from problems import parse

LAYERS = (
    parse('mb8ic64ih7oc64kh3ph1n"2d_rims"'),
    parse('mb8ic150ih7iw9oc150kh3ph1n"2d_rims_of_unequal_chunks"'),
    parse('mb9g3ic96ih7iw8oc96kh3sh2ph1n"2d_rims_of_groups_with_stride"'),
    parse('mb8ic70ih9iw8oc70kh4sh2ph1n"2d_rims_of_phases"'),
    parse('mb4ic64ih5iw6oc64kh3ph4n"2d_positions_without_taps"'),
    parse('mb4ic64ih9oc64kh3dh1ph2n"2d_rims_of_dilated_taps"'),
    parse('mb8ic64ih14iw16oc6kh5kw3ph2pw1n"2d_rims_of_few_outputs"'),
    parse('mb16ic64iw9oc64kw5pw2n"1d_rims"'),
    parse('mb2ic40id6ih7iw6oc48kd3kh3pd1ph1n"3d_rims"'),
    parse('mb8g4ic32ih14oc32kh3ph1n"2d_rims_of_eights"'),
    parse('mb4ic24ih9iw11oc320kh6kw7ph3pw3n"2d_rims_of_many_taps"'),
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
