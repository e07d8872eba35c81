"""Works run on addresses as well as on arrays, and write the same bits."""

import numpy as np
import pytest
from problems import parse

from convgrad_cy import calls
from convgrad_cy._repeat import Work
from convgrad_cy.arrays import NUMPY
from convgrad_cy.calls import prepared
from convgrad_cy.checks import functions as arguments
from convgrad_cy.checks.keywords import Options

#: A layer and a function that each family computes, and whether its work is one kernel on the caller's arrays.
LAYERS = {
    "patches": ("mb2ic3ih224oc768kh32sh32", "conv_backward_data", False),
    "overlaps": ("mb1ic1iw32000oc402kw400sw160", "conv_backward_data", False),
    "columns": ("mb1ic64ih8oc64kh7", "conv_backward_data", False),
    "winograd": ("mb8ic256ih28oc256oh14kh3sh2ph1", "conv_backward_data", False),
    "exchanged": ("mb1g64ic64ih28oc64kh51ph25", "conv", True),
    "direct": ("mb1ic8ih9oc8kh3ph1", "conv", True),
    "zeros": ("mb1ic8ih9oc8kh3ph1", "zeros", False),
}


FUNCTIONS = {
    "conv": (arguments.CONV, "xwy"),
    "zeros": (arguments.CONV, "xwy"),
    "conv_backward_data": (arguments.CONV_BACKWARD_DATA, "ywx"),
    "conv_backward_filter": (arguments.CONV_BACKWARD_FILTER, "xyw"),
}


def prepared_work(family):
    """The work of a layer, its two inputs and a result of NaNs."""
    text, name, is_one = LAYERS[family]
    function, parts = FUNCTIONS[name]
    problem = parse(f'{text}n"addresses"')
    shapes = [getattr(problem, f"{part}_shape") for part in parts]
    if name == "zeros":
        shapes = [(1, 0, 9, 9), (8, 0, 3, 3), (1, 8, 9, 9)]
    random = np.random.default_rng(0)
    first, second = (random.standard_normal(shape, dtype=np.float32) for shape in shapes[:2])
    result = np.full(shapes[2], np.nan, np.float32)
    asked = () if parts[2] == "y" else (shapes[2],)
    keywords = tuple(Options(**problem.keywords))
    geometry = calls.checked(NUMPY, function, first, second, asked, keywords)
    work = prepared.prepare(function, geometry, (first, second, result))
    assert (type(work) is Work) == is_one  # otherwise the layer tests something else
    return work, (first, second, result)


def addresses(arrays):
    return [array.ctypes.data for array in arrays]


@pytest.mark.parametrize("family", LAYERS)
def test_by_address(family):
    work, arrays = prepared_work(family)
    expected = np.full_like(arrays[2], np.nan)
    work.run(*arrays[:2], expected)
    assert not np.isnan(expected).any()
    work.run(*addresses(arrays))
    assert arrays[2].tobytes() == expected.tobytes()


@pytest.mark.parametrize("family", LAYERS)
def test_other_types_raise(family):
    """Neither an array nor an address: nothing must be written."""
    work, (first, second, result) = prepared_work(family)
    for wrong in (None, 1.0, memoryview(first)):
        with pytest.raises(TypeError):
            work.run(wrong, second, result)
        with pytest.raises(TypeError):
            work.run(first, second, wrong)
    assert np.isnan(result).all()
