"""Boxes that leave out products with padding, and their tiles.

ZONES: positions, or taps, that see no padding. The problems are large enough to gain from zones; other tests' problems
are not. TALL: rows of positions, or of channels, at one distance, for tiles of one vector and more rows.
"""

import numpy as np
import pytest
from operations import DTYPES, OPERATIONS, assert_exact, bits, integer_tensors, real_tensors
from problems import parse

ZONES = (
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
TALL = (
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
FORMATS = (("NCX", "OIX"), ("NXC", "XIO"))
operations = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
problems = pytest.mark.parametrize("problem", ZONES + TALL, ids=str)


@operations
@problems
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("formats", FORMATS, ids="-".join)
def test_exact(operation, problem, dtype, formats):
    tensors, _ = integer_tensors(problem, dtype)
    result = operation.call(problem, tensors, *formats, layout=np.ascontiguousarray)
    assert_exact(result, operation.expected(problem, tensors, *formats), dtype)


@operations
@problems
@pytest.mark.parametrize("value", (np.nan, np.inf))
@pytest.mark.parametrize("formats", FORMATS, ids="-".join)
def test_nonfinite_values(operation, problem, value, formats):
    """NaN and infinity must reach the results that have them in a term, and no others."""
    tensors, _ = integer_tensors(problem, "float64")
    for name in operation.reads:
        array = getattr(tensors, name).copy()
        array[..., 0][tuple(n // 2 for n in array.shape[:-1])] = value
        array[(-1,) * array.ndim] = value
        spoiled = tensors._replace(**{name: array})
        with np.errstate(invalid="ignore"):
            expected = operation.expected(problem, spoiled, *formats)
        np.testing.assert_array_equal(operation.call(problem, spoiled, *formats), expected)


@operations
@problems
def test_bits(operation, problem):
    """The bits must equal the bits of the other layout, which cuts other boxes into zones, or none."""
    tensors = real_tensors(problem, "float32")
    first, last = (operation.call(problem, tensors, *formats, layout=np.ascontiguousarray) for formats in FORMATS)
    axes = (-1, -2, *range(first.ndim - 2)) if operation.makes == "w" else (0, -1, *range(1, first.ndim - 1))
    assert bits(last.transpose(axes)) == bits(first)
