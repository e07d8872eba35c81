"""The sum of partial sums: its order, its rounding, the place of each element, and its time by a model."""

import sys
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest
from operations import DTYPES, dtype_of
from planned import PRECISIONS
from problems import parse
from sim.executor import SCHEDULES, execute
from simulated import CHANNELS_FIRST, CHANNELS_LAST, OPERATIONS, task_without_memory

from convgrad_cy import dtypes
from convgrad_cy.gpu import families, reduce
from convgrad_cy.gpu.plan import FILTER, SOURCE, Plan

simulator = pytest.mark.simulator

#: Extents of the six digits, the order of their axes in the target's memory, and whether memory runs across the last.
TABLES = {
    "columns_last": ((2, 3, 1, 2, 5, 40), (0, 1, 2, 3, 4, 5), False),
    "rows_last": ((2, 3, 1, 2, 5, 40), (0, 5, 1, 2, 3, 4), True),
    "one_column": ((70, 3, 3, 1, 2, 1), (0, 4, 5, 1, 2, 3), False),
    "few_rows": ((1, 1, 1, 3, 1, 50), (5, 0, 1, 2, 3, 4), False),
    "tails_of_patches": ((1, 1, 1, 3, 23, 33), (5, 0, 1, 2, 4, 3), True),
}
#: Numbers of splits, and of the threads that share them.
LANES = {1: 1, 2: 1, 9: 1, 15: 1, 16: 2, 21: 2, 37: 4, 63: 4, 64: 8, 75: 8}


def reduced(dtype, partials, extents, order, flipped=(), schedule="ascending"):
    """The result of a launch on partial sums of shape (splits, *extents), as an array with those extents."""
    memory = np.zeros([extents[axis] for axis in order], dtype)
    view = memory.transpose(np.argsort(order))
    view = view[tuple(slice(None, None, -1 if axis in flipped else 1) for axis in range(6))]
    row = dtypes.lookup(dtype)
    strides = [stride // dtype.itemsize for stride in view.strides]
    # The plan has no operand except the partial sums. They take the place of the source.
    launch = reduce.launch(row, SOURCE, FILTER, len(partials), extents, strides)
    execute(Plan((launch,)), (partials, view, np.zeros(1, dtype)), FILTER, schedule)
    return view, launch


@simulator
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_integers(dtype, table):
    """Every element must be summed once, at its place, for any strides and any number of lanes."""
    extents, order, runs_across = TABLES[table]
    dtype = dtype_of(dtype)
    compute = dtypes.lookup(dtype).compute
    random = np.random.default_rng(1)
    for splits, lanes in LANES.items():
        partials = random.integers(-10, 11, (splits, *extents)).astype(compute)
        expected = partials.astype(np.int64).sum(axis=0)
        for flipped in ((), (0, 4), (5,)):
            result, launch = reduced(dtype, partials, extents, order, flipped)
            np.testing.assert_array_equal(result.astype(np.int64), expected)
            assert launch.arguments[:3] == (splits, lanes, runs_across and lanes < 8)


def test_digits_that_follow_one_another_are_one():
    """Adjacent digits must be merged, so that a dense tensor needs no division."""

    def digits(extents, strides):
        return [
            (extent, stride) for extent, stride in zip(*reduce._merged(extents, strides), strict=True) if extent > 1
        ]

    assert digits((2, 3, 1, 2, 5, 40), (1200, 400, 7, 200, 40, 1)) == [(2400, 1)]
    assert digits((2, 3, 1, 2, 5, 40), (1300, 400, 7, 200, 40, 1)) == [(2, 1300), (1200, 1)]
    assert digits((2, 1, 1, 1, 5, 40), (200, 0, 0, 0, -40, -1)) == [(2, 200), (200, -1)]
    assert digits((1,) * 6, (9,) * 6) == []


@simulator
@pytest.mark.parametrize("splits", (9, 21, 37, 75))
@pytest.mark.parametrize("table", ("columns_last", "rows_last"))
@pytest.mark.parametrize("dtype", DTYPES)
def test_order_and_rounding(dtype, table, splits):
    """Sums must be in the compute type, rounded once. A lane adds every lanes-th split, then lanes are added in order.

    The number of lanes follows from the number of splits, so neither the target's layout nor the GPU changes a bit.
    """
    extents, order, _ = TABLES[table]
    dtype = dtype_of(dtype)
    compute = np.dtype(dtypes.lookup(dtype).compute)
    random = np.random.default_rng(2)
    shape = (splits, *extents)
    if compute.kind == "f":
        partials = (random.standard_normal(shape) * 10 ** random.uniform(-2, 2, shape)).astype(compute)
    else:
        partials = random.integers(-(2**31), 2**31, shape).astype(compute)

    def added(lanes):
        with np.errstate(over="ignore"):
            shares = [sum(partials[lane::lanes], np.zeros(extents, compute)) for lane in range(lanes)]
            return sum(shares, np.zeros(extents, compute))

    expected = added(LANES[splits])
    others = [added(lanes) for lanes in (1, 2, 4, 8) if lanes != LANES[splits]] + [partials[::-1].sum(axis=0)]
    differ = all((other != expected).any() for other in others)
    assert compute.kind != "f" or differ, "these numbers do not tell one order from another"
    for schedule in SCHEDULES:
        result, _ = reduced(dtype, partials, extents, order, schedule=schedule)
        np.testing.assert_array_equal(result, expected.astype(dtype))


def test_partial_sums_have_the_compute_type():
    extents = (1, 2, 3, 4, 5, 6)
    for name, size in (("float32", 4), ("float64", 8), ("int32", 4)):
        assert reduce.workspace_bytes(dtypes.lookup(np.dtype(name)), 7, extents) == 7 * prod(extents) * size
    assert reduce.workspace_bytes(dtypes.lookup(np.dtype("float16")), 7, extents) == 7 * prod(extents) * 4


# ---- its time ----

#: Time of a round of loads from memory, and the limit for a reduction. Both are guesses, since there was no GPU.
ROUND_MICROSECONDS, MOST_MICROSECONDS = 0.35, 15
#: Blocks that a processor has room for, by the size of the sums, whose registers decide it.
RESIDENT = {4: 8, 8: 6}
#: Rate at which an H200 reads and writes.
BYTES_A_MICROSECOND = 4.3e6


def modelled_microseconds(launch, dtype, processors):
    """The rounds of a lane, one after another, for each wave of blocks."""
    splits, lanes = launch.arguments[:2]
    rounds = -(-splits // (lanes * reduce.ROUND))
    waves = -(-launch.grid[0] // (RESIDENT[dtype.compute_itemsize] * processors))
    return rounds * waves * ROUND_MICROSECONDS


def is_slow(launch, task):
    """Whether a launch takes longer than the limit, and longer than its bytes need."""
    sizes = launch.arguments[0] * task.dtype.compute_itemsize + task.dtype.itemsize
    needed = prod(launch.arguments[4:10]) * sizes / BYTES_A_MICROSECOND
    return modelled_microseconds(launch, task.dtype, task.device.processors) > max(MOST_MICROSECONDS, needed)


def test_a_long_chain_is_slow():
    """A filter of few elements with many splits must count as slow: its bytes take one microsecond."""
    task = task_without_memory("wgrad", parse('mb1g32ic32ih9oc32kh3n"few_elements"'), "float32")
    for splits, slow in ((1115, False), (4461, True)):
        launch = reduce.launch(task.dtype, SOURCE, FILTER, splits, (32, 1, 3, 3, 1, 1), (9, 9, 3, 1, 1, 1))
        assert launch.grid == (9, 1, 1)
        assert is_slow(launch, task) == slow


@pytest.mark.slow(whole=True)
@pytest.mark.parametrize("dtype, precision", PRECISIONS)
def test_no_layer_waits_long_for_its_reduction(dtype, precision):
    """No timed layer may wait long for its reduction on an H200."""
    sys.path.append(str(Path(__file__).parents[2]))
    from bench import suites
    from bench.gpu import rows as gpu_rows

    seen, slow = 0, []
    for problem in {layer.problem for layer in (*gpu_rows.LAYERS, *suites.LAYERS)}:
        for kernel, formats in product(OPERATIONS, (CHANNELS_FIRST, CHANNELS_LAST)):
            task = task_without_memory(kernel, problem, dtype, precision, formats)
            for launch in families.plan(task).launches:
                if launch.source == "reduce.cu":
                    seen += 1
                    if is_slow(launch, task):
                        slow.append(f"{problem.name} {kernel} {formats}: {launch.grid}, {launch.arguments[:2]}")
    assert seen > 200 and not slow, "\n".join(slow)
