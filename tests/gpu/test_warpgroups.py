"""Tiles of warpgroups: sums of many stages, and mistakes of the pipeline that the simulator sees."""

import numpy as np
import pytest
from operations import Tensors, integer_tensors, reference_kernel
from problems import parse
from sim.executor import SCHEDULES, SimulationError
from simulated import CHANNELS_LAST, H200, Case

from bench import gpu_forced
from convgrad_cy.gpu import mma, module, tiles

pytestmark = pytest.mark.simulator

KIND = tiles.Kind("bf16", 2, 1, 4)
TILES = [tile for tile in tiles.tiles(KIND, H200) if tile.warpgroups]
#: Channels of two stages, of one and a half and of three; strides with phases of 1, 2 and 4 taps.
PROBLEMS = {
    "two": parse('mb1ic128ih9oc128kh3ph1n"two_stages_a_tap"'),
    "stride": parse('mb1ic128ih10oc128kh3sh2ph1n"two_stages_a_tap_stride2"'),
    "more": parse('mb1ic96ih7oc96kh3ph1n"stages_of_two_taps"'),
    "line": parse('mb2ic192iw30oc64kw5pw2n"three_stages_a_tap"'),
}


def run(kernel, problem, tensors, tile, splits, schedule="ascending", text=module.text):
    case = Case(kernel, problem, tensors, formats=CHANNELS_LAST, device=H200)
    with gpu_forced.taking("mma", gpu_forced.Product(tile, splits)):
        plan = mma.launches(case.task)
    assert any(dict(launch.macros).get("WARPGROUPS") == str(tile.warpgroups) for launch in plan.launches)
    return case.run(plan, schedule, text=text).astype(np.float64)


@pytest.mark.slow
@pytest.mark.parametrize("splits", (1, 3))
@pytest.mark.parametrize("kernel", ("fprop", "dgrad"))
@pytest.mark.parametrize("tile", TILES, ids=lambda tile: f"{tile.rows}x{tile.columns}")
def test_many_stages(tile, kernel, splits):
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


#: What has to be there for copies to be seen, and for a stage not to be written while products read it.
MISTAKES = (
    ("wait_copies<STAGES - 3>();", "wait_copies<STAGES - 2>();"),
    ("        show_copies();\n", ""),
    ("        wait_products<1>();\n", "        wait_products<2>();\n"),
    ("    wait_products<0>();\n", ""),
    ("    begin_products();\n", ""),
    ("copies.load(step + STAGES - 2, shared + write", "copies.load(step + STAGES - 2, shared + read"),
)


@pytest.mark.parametrize("old, new", MISTAKES, ids=("copies", "fence", "stage", "end", "begin", "place"))
@pytest.mark.parametrize("kernel", ("fprop", "wgrad"))
def test_mistakes_are_seen(kernel, old, new):
    problem = parse('mb4ic128ih9oc128kh3ph1n"six_stages_of_positions"') if kernel == "wgrad" else PROBLEMS["two"]
    tensors, results = integer_tensors(problem, "bfloat16")

    def wrong(source, macros=()):
        right = module.text(source, macros)
        assert right.count(old) == (source in ("mma.cu", "mma_wgrad.cu")), old
        # Without the second pass, which forms again what is not finite.
        return right.replace(old, new).replace("return value - value == 0;", "return true;")

    try:
        result = run(kernel, problem, tensors, TILES[0], 1, text=wrong)
    except SimulationError:
        return
    assert not np.array_equal(result, results[kernel])
