"""Tiles of warpgroups on sums of several panels of channels, where taps come one after another within each."""

import numpy as np
import pytest
from operations import Tensors, integer_tensors, reference_kernel
from problems import parse
from sim.executor import SCHEDULES
from simulated import CHANNELS_LAST, H200, Case

from bench import gpu_forced
from convgrad_cy.gpu import mma, tiles

pytestmark = pytest.mark.simulator

KIND = tiles.Kind("bf16", 2, 1, 4)
TILES = [tile for tile in tiles.tiles(KIND, H200) if tile.warpgroups]
#: Two panels, and 1.5, which are no panels; taps of an own row; strides with phases of 1, 2 and 4 taps.
PROBLEMS = {
    "two": parse('mb1ic128ih9oc128kh3ph1n"two_panels"'),
    "stride": parse('mb1ic128ih10oc128kh3sh2ph1n"two_panels_stride2"'),
    "more": parse('mb1ic96ih7oc96kh3ph1n"panel_and_a_half"'),
    "line": parse('mb2ic192iw30oc64kw5pw2n"three_panels"'),
}


def run(kernel, problem, tensors, tile, splits, schedule="ascending"):
    case = Case(kernel, problem, tensors, formats=CHANNELS_LAST, device=H200)
    with gpu_forced.taking("mma", gpu_forced.Product(tile, splits)):
        plan = mma.launches(case.task)
    assert any(dict(launch.macros).get("WARPGROUPS") == str(tile.warpgroups) for launch in plan.launches)
    return case.run(plan, schedule).astype(np.float64)


@pytest.mark.slow
@pytest.mark.parametrize("splits", (1, 3))
@pytest.mark.parametrize("kernel", ("fprop", "dgrad"))
@pytest.mark.parametrize("tile", TILES, ids=lambda tile: f"{tile.rows}x{tile.columns}")
def test_panels(tile, kernel, splits):
    for number, problem in enumerate(PROBLEMS.values()):
        tensors, results = integer_tensors(problem, "bfloat16")
        schedule = SCHEDULES[number % len(SCHEDULES)]
        np.testing.assert_array_equal(run(kernel, problem, tensors, tile, splits, schedule), results[kernel])


@pytest.mark.parametrize("kernel", ("fprop", "dgrad"))
def test_infinity_reaches_what_it_should(kernel):
    """An infinite element where padding meets it, whose product with a zero is no number; in splits, too."""
    problem = PROBLEMS["two"]
    tensors, _ = integer_tensors(problem, "bfloat16")
    tensors = Tensors(*(array.copy() for array in tensors))
    source = tensors.x if kernel == "fprop" else tensors.y
    source[0, 70, 0, 0] = np.inf
    with np.errstate(invalid="ignore"):
        expected = reference_kernel(kernel, problem, tensors)
    assert np.isfinite(expected).any() and not np.isfinite(expected).all()
    for splits in (1, 3):
        np.testing.assert_array_equal(run(kernel, problem, tensors, TILES[0], splits), expected)
