"""The sum of partial sums: its order, its rounding, and where each element goes."""

from math import prod

import numpy as np
import pytest
from operations import DTYPES, dtype_of
from sim.executor import SCHEDULES, execute

from convgrad_cy import dtypes
from convgrad_cy.gpu import reduce
from convgrad_cy.gpu.plan import FILTER, SOURCE, Plan

pytestmark = pytest.mark.simulator

#: Extents of the six digits, the order of their axes in the target's memory, and whether memory runs across the last.
TABLES = {
    "columns_last": ((2, 3, 1, 2, 5, 40), (0, 1, 2, 3, 4, 5), False),
    "rows_last": ((2, 3, 1, 2, 5, 40), (0, 5, 1, 2, 3, 4), True),
    "one_column": ((70, 3, 3, 1, 2, 1), (0, 4, 5, 1, 2, 3), False),
    "few_rows": ((1, 1, 1, 3, 1, 50), (5, 0, 1, 2, 3, 4), False),
    "tails_of_squares": ((1, 1, 1, 3, 23, 33), (5, 0, 1, 2, 4, 3), True),
}


def reduced(dtype, partials, extents, order, flipped=(), grid=None, schedule="ascending"):
    """The result of a launch on partial sums of shape (splits, *extents), as an array with those extents."""
    memory = np.zeros([extents[axis] for axis in order], dtype)
    view = memory.transpose(np.argsort(order))
    view = view[tuple(slice(None, None, -1 if axis in flipped else 1) for axis in range(6))]
    row = dtypes.lookup(dtype)
    strides = [stride // dtype.itemsize for stride in view.strides]
    # The plan has no operand but the partial sums, which it is given in the place of the source.
    launch = reduce.launch(row, SOURCE, FILTER, len(partials), extents, strides)
    if grid is not None:
        launch = launch._replace(grid=(grid, 1, 1))
    execute(Plan((launch,)), (partials, view, np.zeros(1, dtype)), FILTER, schedule)
    return view, launch


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_integers(dtype, table):
    """Every element once, at its place, whatever the strides; also with fewer threads than elements."""
    extents, order, across = TABLES[table]
    dtype = dtype_of(dtype)
    compute = dtypes.lookup(dtype).compute
    random = np.random.default_rng(1)
    for splits in (1, 2, 11):
        partials = random.integers(-10, 11, (splits, *extents)).astype(compute)
        expected = partials.astype(np.int64).sum(axis=0)
        for flipped, grid in (((), None), ((0, 4), 1), ((5,), 2)):
            result, launch = reduced(dtype, partials, extents, order, flipped, grid)
            np.testing.assert_array_equal(result.astype(np.int64), expected)
            assert dict(launch.macros)["ACROSS"] == str(int(across))


@pytest.mark.parametrize("table", ("columns_last", "rows_last"))
@pytest.mark.parametrize("dtype", DTYPES)
def test_order_and_rounding(dtype, table):
    """Split after split in the compute type, rounded once: the same bits as a loop, in any order of warps."""
    extents, order, _ = TABLES[table]
    dtype = dtype_of(dtype)
    compute = np.dtype(dtypes.lookup(dtype).compute)
    random = np.random.default_rng(2)
    if compute.kind == "f":
        partials = (random.standard_normal((9, *extents)) * 10 ** random.uniform(-2, 2, (9, *extents))).astype(compute)
    else:
        partials = random.integers(-(2**31), 2**31, (9, *extents)).astype(compute)
    expected = np.zeros(extents, compute)
    with np.errstate(over="ignore"):
        for split in partials:
            expected = expected + split
    backwards = partials[::-1].sum(axis=0)
    assert compute.kind != "f" or (backwards != expected).any(), "these numbers do not tell one order from another"
    for schedule in SCHEDULES:
        result, _ = reduced(dtype, partials, extents, order, schedule=schedule)
        np.testing.assert_array_equal(result, expected.astype(dtype))


def test_partial_sums_have_the_compute_type():
    extents = (1, 2, 3, 4, 5, 6)
    for name, size in (("float32", 4), ("float64", 8), ("int32", 4)):
        assert reduce.workspace_bytes(dtypes.lookup(np.dtype(name)), 7, extents) == 7 * prod(extents) * size
    assert reduce.workspace_bytes(dtypes.lookup(np.dtype("float16")), 7, extents) == 7 * prod(extents) * 4
