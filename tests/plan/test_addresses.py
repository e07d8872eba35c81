"""Work on addresses: ``by_address`` writes the same bits. Work that cannot take addresses writes nothing."""

import numpy as np
import pytest
from problems import parse

from convgrad_cy import calls
from convgrad_cy._repeat import Work
from convgrad_cy.arrays import NUMPY
from convgrad_cy.calls import prepared
from convgrad_cy.calls.by_address import by_address
from convgrad_cy.checks import functions as arguments
from convgrad_cy.checks.keywords import Options
from convgrad_cy.cpu import Zeros

#: A layer and a function whose work is more than one kernel on the caller's arrays, and the type of this work.
LAYERS = {
    "Patched": ("mb2ic3ih224oc768kh32sh32", "conv_backward_data"),
    "Overlapped": ("mb1ic1iw32000oc402kw400sw160", "conv_backward_data"),
    "Columned": ("mb1ic64ih8oc64kh7", "conv_backward_data"),
    "Reordered": ("mb8ic256ih28oc256oh14kh3sh2ph1", "conv_backward_data"),
    "Exchanged": ("mb1g64ic64ih28oc64kh51ph25", "conv"),
    "Work": ("mb1ic8ih9oc8kh3ph1", "conv"),
}


FUNCTIONS = {
    "conv": (arguments.CONV, "xwy"),
    "conv_backward_data": (arguments.CONV_BACKWARD_DATA, "ywx"),
    "conv_backward_filter": (arguments.CONV_BACKWARD_FILTER, "xyw"),
}


def prepared_work(kind):
    """The work of a layer, its two inputs and a result of NaNs."""
    text, name = LAYERS[kind]
    function, parts = FUNCTIONS[name]
    problem = parse(f'{text}n"addresses"')
    shapes = [getattr(problem, f"{part}_shape") for part in parts]
    random = np.random.default_rng(0)
    first, second = (random.standard_normal(shape, dtype=np.float32) for shape in shapes[:2])
    result = np.full(shapes[2], np.nan, np.float32)
    asked = () if name == "conv" else (shapes[2],)
    keywords = tuple(Options(**problem.keywords))
    geometry = calls.checked(NUMPY, function, first, second, asked, keywords)
    work = prepared.prepare(function, geometry, (first, second, result))
    assert type(work).__name__ == kind  # otherwise the layer tests another family
    return work, (first, second, result)


def addresses(arrays):
    return [array.ctypes.data for array in arrays]


@pytest.mark.parametrize("kind", LAYERS)
def test_by_address(kind):
    work, arrays = prepared_work(kind)
    expected = np.full_like(arrays[2], np.nan)
    work.run(*arrays[:2], expected)
    assert not np.isnan(expected).any()
    by_address(work, arrays)(*addresses(arrays))
    assert arrays[2].tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", [kind for kind in LAYERS if kind != Work.__name__])
def test_work_that_cannot_take_addresses_raises(kind):
    work, arrays = prepared_work(kind)
    with pytest.raises((TypeError, AttributeError)):
        work.run(*addresses(arrays))
    assert np.isnan(arrays[2]).all()


def test_zeros():
    arrays = np.ones((1, 1, 0)), np.ones((1, 1, 1)), np.ones((1, 1, 2))
    with pytest.raises(TypeError):
        Zeros().run(*addresses(arrays))
    by_address(Zeros(), arrays)(*addresses(arrays))
    assert not arrays[2].any()
