"""Tiles of warpgroups: sums of many stages, and mistakes of the pipeline that the simulator sees."""

from itertools import product

import numpy as np
import pytest
from operations import Tensors, integer_tensors, reference_kernel
from problems import parse
from sim.executor import SCHEDULES, SimulationError
from simulated import CHANNELS_LAST, H200, Case

from bench.gpu import forced
from convgrad_cy.gpu import mma, module, tiles

pytestmark = pytest.mark.simulator

KIND = tiles.Kind("bf16", 2, 1, 4)
TILES = [tile for tile in tiles.tiles(KIND, H200) if tile.warpgroups and not tile.engine]
BY_ENGINE = list(tiles.by_engine(KIND, H200))
#: Channels of two stages, of one and a half and of three; strides with phases of 1, 2 and 4 taps.
PROBLEMS = {
    "two": parse('mb1ic128ih9oc128kh3ph1n"two_stages_a_tap"'),
    "stride": parse('mb1ic128ih10oc128kh3sh2ph1n"two_stages_a_tap_stride2"'),
    "more": parse('mb1ic96ih7oc96kh3ph1n"stages_of_two_taps"'),
    "line": parse('mb2ic192iw30oc64kw5pw2n"three_stages_a_tap"'),
}


def run(kernel, problem, tensors, tile, splits, schedule="ascending", text=module.text):
    case = Case(kernel, problem, tensors, formats=CHANNELS_LAST, device=H200)
    with forced.taking("mma", forced.Product(tile, splits)):
        plan = mma.launches(case.task)
    assert any(dict(launch.macros).get("WARPGROUPS") == str(tile.warpgroups) for launch in plan.launches)
    return case.run(plan, schedule, text=text).astype(np.float64)


@pytest.mark.slow
@pytest.mark.parametrize("splits", (1, 3))
@pytest.mark.parametrize("kernel", ("fprop", "dgrad"))
@pytest.mark.parametrize("tile", TILES + BY_ENGINE, ids=lambda tile: f"{tile.rows}x{tile.columns}-{tile.engine}")
def test_many_stages(tile, kernel, splits):
    for number, problem in enumerate(PROBLEMS.values()):
        tensors, results = integer_tensors(problem, "bfloat16")
        schedule = SCHEDULES[number % len(SCHEDULES)]
        np.testing.assert_array_equal(run(kernel, problem, tensors, tile, splits, schedule), results[kernel])


@pytest.mark.parametrize("kernel", ("fprop", "dgrad"))
def test_infinity_reaches_what_it_should(kernel):
    """An infinity must reach its results only: times a zero of the padding it would give NaN, in splits, too."""
    problem = PROBLEMS["two"]
    tensors, _ = integer_tensors(problem, "bfloat16")
    tensors = Tensors(*(array.copy() for array in tensors))
    source = tensors.x if kernel == "fprop" else tensors.y
    source[0, 70, 0, 0] = np.inf
    with np.errstate(invalid="ignore"):
        expected = reference_kernel(kernel, problem, tensors)
    assert np.isfinite(expected).any() and not np.isfinite(expected).all()
    for splits, tile in product((1, 3), (TILES[0], BY_ENGINE[0])):
        np.testing.assert_array_equal(run(kernel, problem, tensors, tile, splits), expected)


#: Statements that make copies visible, and that keep a stage unwritten while products read it.
MISTAKES = {
    "copies": ("wait_copies<STAGES - 3>();", "wait_copies<STAGES - 2>();"),
    "fence": ("        show_copies();\n", ""),
    "stage": ("        wait_products<1>();\n        read = ", "        wait_products<2>();\n        read = "),
    "end": ("        write = write + 1 == STAGES ? 0 : write + 1;\n    }\n    wait_products<0>();\n", "}\n"),
    "begin": ("    begin_products();\n", ""),
    "place": ("copies.load(step + STAGES - 2, shared + write", "copies.load(step + STAGES - 2, shared + read"),
}
#: Such statements for stages that TMA copies bring.
MISTAKES_OF_RINGS = {
    "not filled": ("        wait_phase(&ring.filled[turn.stage], turn.parity);\n", ""),
    "not emptied": ("        wait_phase(&ring.emptied[turn.stage], turn.parity ^ 1);", ""),
    "parity": ("            parity ^= 1;\n", ""),
    "never empty": ("            arrive(&ring.emptied[before]);\n        before", "            ;\n        before"),
    "this one is empty": (
        "if (step > 0 && speaks)\n            arrive(&ring.emptied[before]);",
        "if (speaks)\n            arrive(&ring.emptied[turn.stage]);",
    ),
    "products": ("        wait_products<1>();\n        if", "        wait_products<2>();\n        if"),
    "end": ("        turn.advance();\n    }\n    wait_products<0>();\n", "        turn.advance();\n    }\n"),
    "begin": ("    begin_products();\n", ""),
    "too few bytes": ("turn.stage], STAGE_BYTES);", "turn.stage], ROWS_BYTES);"),
    "fence": ("            show_meters();\n", ""),
    "arrivals": ("make_meter(&emptied[i], THREADS / 32);", "make_meter(&emptied[i], THREADS);"),
    "one warp is enough": ("make_meter(&emptied[i], THREADS / 32);", "make_meter(&emptied[i], 1);"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("kernel", ("fprop", "wgrad"))
def test_mistakes_are_seen(kernel, mistake):
    assert is_seen(kernel, TILES[0], *MISTAKES[mistake])


@pytest.mark.parametrize("mistake", MISTAKES_OF_RINGS)
@pytest.mark.parametrize("kernel", ("fprop", "wgrad"))
def test_mistakes_of_rings_are_seen(kernel, mistake):
    assert is_seen(kernel, BY_ENGINE[0], *MISTAKES_OF_RINGS[mistake])


#: Statements that move a warp's rows to the target.
MISTAKES_OF_WARPS = {
    "not stored": ("arguments, column);\n                    __syncwarp();\n", "arguments, column);\n"),
    "row": ("staged.row_target[i];", "staged.row_target[0];"),
    "next tile": ("next.number += gridDim.x;", "next.number += 2 * gridDim.x;"),
}


@pytest.mark.parametrize("mistake", MISTAKES_OF_WARPS)
def test_mistakes_of_warps_are_seen(mistake, monkeypatch):
    """Mistakes must be seen on a GPU of one multiprocessor, whose block forms several tiles."""
    monkeypatch.setitem(globals(), "H200", H200._replace(processors=1))
    problem = PROBLEMS["stride"]
    tensors, results = integer_tensors(problem, "bfloat16")
    tile = next(tile for tile in BY_ENGINE if tile.rows // tile.warpgroups == 128)
    np.testing.assert_array_equal(run("dgrad", problem, tensors, tile, 1), results["dgrad"])
    assert is_seen("dgrad", tile, *MISTAKES_OF_WARPS[mistake], problem, ("mma_engine.cu",))


def is_seen(kernel, tile, old, new, problem=PROBLEMS["two"], sources=("mma.cu", "mma_engine.cu", "mma_wgrad.cu")):
    if kernel == "wgrad":
        problem = parse('mb4ic128ih9oc128kh3ph1n"six_stages_of_positions"')
    tensors, results = integer_tensors(problem, "bfloat16")

    def wrong(source, macros=()):
        right = module.text(source, macros)
        assert right.count(old) == (source in sources), old
        # Without the second pass, which repairs values that are not finite.
        return right.replace(old, new).replace("return value - value == 0;", "return true;")

    try:
        result = run(kernel, problem, tensors, tile, 1, text=wrong)
    except SimulationError:
        return True
    return not np.array_equal(result, results[kernel])
