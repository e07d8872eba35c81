"""Filter gradients on tensor cores of gradients with infinity and NaN: right values, equal bits, and few new sums."""

import numpy as np
import pytest
from operations import Tensors, dtype_of, integer_tensors, real_tensors, reference_kernel
from problems import parse
from sim.executor import SCHEDULES, SimulationError
from simulated import CHANNELS_LAST, H200, Case
from tensor_cores import KINDS

from bench.gpu import forced
from convgrad_cy.gpu import mma, module, tiles

pytestmark = pytest.mark.simulator

#: Several splits of several stages, more columns than a tile has, and a tap that padding meets on each side.
PROBLEM = parse('mb2ic72ih13oc136kh3ph1n"padded"')
#: Joined groups, whose sums of two groups do not exist.
GROUPS = parse('mb2g8ic64ih14oc64kh3sh2ph1n"octets"')
WITHOUT_PADDING = parse('mb2ic40ih9iw11oc72kh2sh2n"without_padding"')
BORDER, INTERIOR, IN_SECOND_IMAGE = (0, 0, 0), (0, 6, 5), (1, 12, 3)
BFLOAT = tiles.Kind("bf16", 2, 1, 4)
TILES = tiles.tiles(BFLOAT, H200, by_depth=True)


def spoiled(problem, dtype, *places, tensors=None):
    """Tensors with values at (channel, image, place ...) of dy."""
    tensors = tensors or integer_tensors(problem, dtype)[0]
    y = tensors.y.copy()
    for channel, (image, *place), value in places:
        y[(image, channel, *place)] = value
    return tensors._replace(y=y)


def run(problem, tensors, dtype="bfloat16", *, precision="high", tile=None, splits=1, schedule="ascending", text=None):
    case = Case("wgrad", problem, tensors, precision=precision, formats=CHANNELS_LAST)
    if tile is None:
        plan = mma.launches(case.task)
    else:
        with forced.taking("mma", forced.Product(tile, splits)):
            plan = mma.launches(case.task)
    assert any(launch.source == "mma_wgrad.cu" for launch in plan.launches)
    return case.run(plan, schedule, text=text or module.text)


def expected(problem, tensors, dtype="bfloat16"):
    with np.errstate(all="ignore"):
        return np.asarray(reference_kernel("wgrad", problem, tensors), np.float32).astype(dtype_of(dtype))


def assert_equal(found, right):
    np.testing.assert_array_equal(found.astype(np.float64), right.astype(np.float64))


#: Values at corners, at edges, at places that see no padding, and both in one row.
CASES = (
    ((3, BORDER, np.inf),),
    ((135, INTERIOR, -np.inf), (70, IN_SECOND_IMAGE, np.inf)),
    ((0, BORDER, np.nan), (1, INTERIOR, np.nan), (2, BORDER, np.inf), (2, INTERIOR, np.nan)),
    ((64, BORDER, np.inf), (64, IN_SECOND_IMAGE, -np.inf), (65, INTERIOR, np.inf), (65, IN_SECOND_IMAGE, np.nan)),
)


@pytest.mark.parametrize("splits", (1, 3))
@pytest.mark.parametrize("tile", TILES, ids=lambda tile: f"{tile.rows}x{tile.columns}-{tile.warpgroups}-{tile.engine}")
def test_values_in_every_tile(tile, splits):
    for places in CASES:
        tensors = spoiled(PROBLEM, "bfloat16", *places)
        right = expected(PROBLEM, tensors)
        assert not np.isfinite(right.astype(np.float32)).all()
        assert_equal(run(PROBLEM, tensors, tile=tile, splits=splits), right)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("problem", (PROBLEM, GROUPS, WITHOUT_PADDING), ids=str)
def test_values_of_every_kind(problem, kind):
    dtype, precision = KINDS[kind]
    batch, channels, *sizes = problem.y_shape
    last = (batch - 1, *(size - 1 for size in sizes))
    for value in (np.inf, np.nan):
        tensors = spoiled(problem, dtype, (5, BORDER, value), (channels - 1, last, -value), (9, (0, 2, 2), value))
        assert_equal(run(problem, tensors, dtype, precision=precision), expected(problem, tensors, dtype))


def test_infinity_in_x_needs_no_new_sums():
    """An infinity in x meets no zero of the padding, so the tile's own sums are right."""
    tensors, _ = integer_tensors(PROBLEM, "bfloat16")
    x = tensors.x.copy()
    x[0, 3, 0, 0], x[1, 70, 5, 5] = np.inf, np.nan
    tensors = tensors._replace(x=x)
    assert_equal(run(PROBLEM, tensors, text=garbled), expected(PROBLEM, tensors))


def garbled(source, macros=()):
    """The text whose new sums are all wrong."""
    right, old = module.text(source, macros), "sum += spoiled.parts[i][column];"
    assert right.count(old) == (source == "mma_wgrad.cu")
    return right.replace(old, "sum = 12345;")


@pytest.mark.parametrize("tile", TILES[::3], ids=lambda tile: f"{tile.rows}x{tile.columns}-{tile.engine}")
@pytest.mark.parametrize(
    "places, forms",
    [
        (((3, INTERIOR, np.inf),), False),
        (((3, INTERIOR, np.inf), (70, (1, 1, 1), np.nan), (135, (1, 11, 11), -np.inf)), False),
        (((3, BORDER, np.nan), (3, INTERIOR, np.nan)), False),
        (tuple((c, where, np.nan) for c in range(136) for where in (BORDER, IN_SECOND_IMAGE, INTERIOR)), False),
        (((3, BORDER, np.inf),), True),
        (((3, BORDER, np.nan), (70, INTERIOR, np.nan)), True),
        (((3, BORDER, np.inf), (3, INTERIOR, np.inf)), True),
        (((3, IN_SECOND_IMAGE, np.nan),), True),
    ],
)
def test_sums_are_formed_again_only_where_padding_meets_infinity(tile, places, forms):
    """Most infinities and all rows that are NaN must cost no new sums."""
    tensors = spoiled(PROBLEM, "bfloat16", *places)
    found, right = run(PROBLEM, tensors, tile=tile, text=garbled), expected(PROBLEM, tensors)
    assert np.array_equal(found.astype(np.float32), right.astype(np.float32), equal_nan=True) != forms


@pytest.mark.parametrize("kind", ("bfloat16", "float64", "float32-high"))
def test_bits_do_not_depend_on_the_schedule(kind):
    """The parts of new sums must be added in one order. Sums that need no repair must keep their bits."""
    dtype, precision = KINDS[kind]
    real = real_tensors(PROBLEM, dtype)
    tensors = spoiled(
        PROBLEM, dtype, (3, BORDER, np.inf), tensors=Tensors(*(array.astype(dtype_of(dtype)) for array in real))
    )
    results = [run(PROBLEM, tensors, dtype, precision=precision, schedule=one) for one in (*SCHEDULES, "random")]
    assert len({result.tobytes() for result in results}) == 1
    clean = run(PROBLEM, real, dtype, precision=precision)
    others = [channel for channel in range(136) if channel != 3]
    assert results[0][others].tobytes() == clean[others].tobytes()
    close = results[0][3].astype(np.float64), clean[3].astype(np.float64)
    rows = np.isfinite(close[0])
    assert rows.any() and not rows.all()
    assert (
        abs(close[0][rows] - expected(PROBLEM, tensors, dtype)[3].astype(np.float64)[rows]).max()
        <= 0.02 * abs(close[1]).max()
    )


MISTAKES = {
    "table without a barrier": ("            vote_of_multipliers(false); /* all threads have read", "            /*"),
    "a barrier after the table": (
        "arguments, first + threadIdx.x);\n            vote_of_multipliers(false);",
        "arguments, first + threadIdx.x);",
    ),
    "parts without a barrier": ("columns.sums[j];\n        vote_of_multipliers(false);", "columns.sums[j];"),
    "rows without a barrier": (
        "spoiled.rows[chunk] = rows;\n    }\n    vote_of_multipliers(false);",
        "spoiled.rows[chunk] = rows;\n    }",
    ),
    "padding is a term": (
        "exists[i] &= unsigned(position.at[k] + tap_at[k])",
        "exists[i] |= unsigned(position.at[k] + tap_at[k])",
    ),
    "a part too few": ("i < PARTS; i++)\n                sum", "i < PARTS - 1; i++)\n                sum"),
    "the last tap's padding is not seen": (
        "conv_source(&axis, place[i], axis.taps - 1)",
        "conv_source(&axis, place[i], 0)",
    ),
    "infinity in the interior is NaN": ("nan |= unsigned(value != value)", "nan |= unsigned(!is_finite(value))"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_seen(mistake):
    old, new = MISTAKES[mistake]

    def wrong(source, macros=()):
        right = module.text(source, macros)
        assert right.count(old) == (source == "mma_wgrad.cu"), old
        return right.replace(old, new)

    def is_seen(schedule):
        places = (3, BORDER, np.inf), (70, (1, 12, 12), np.inf), (70, INTERIOR, np.inf), (100, BORDER, np.nan)
        tensors = spoiled(PROBLEM, "bfloat16", *places)
        try:
            found = run(PROBLEM, tensors, tile=TILES[0], schedule=schedule, text=wrong)
        except SimulationError:
            return True
        return not np.array_equal(
            found.astype(np.float32), expected(PROBLEM, tensors).astype(np.float32), equal_nan=True
        )

    assert any(map(is_seen, SCHEDULES))
