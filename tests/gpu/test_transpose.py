"""Copies between channels first and channels last, 16 bytes at a time (``transpose.cu``)."""

import numpy as np
import pytest
from operations import Tensors, dtype_of, integer_tensors, reference_kernel
from problems import parse
from sim.executor import SCHEDULES
from simulated import CHANNELS_FIRST, H200, Case, task_without_memory
from tensor_cores import KINDS

from bench.gpu import forced
from convgrad_cy.gpu import families, joins, mma, tiles, transpose
from convgrad_cy.gpu.plan import Operand

#: More than one block in both directions, with remainders: 144 positions, and channels that fill no chunk.
WIDE = parse('mb2ic35ih12oc75kh3ph1n"wide"')
PROBLEMS = (
    WIDE,
    parse('mb3ic40iw200oc32kw3pw1n"line"'),
    parse('mb1ic64id4ih3iw8oc72kd3kh3kw1pd1ph1n"volume"'),
    parse('mb2ic40ih16oc136oh8kh3sh2ph1n"stride2"'),
    parse('mb2ic40ih14oc32kh1n"halves"'),
)
ENGINE = next(iter(tiles.by_engine(tiles.Kind("bf16", 2, 1, 4), H200)))


def forced_plan(case, splits=1):
    """The plan of a correlation with TMA."""
    with forced.taking("mma", forced.Product(ENGINE, splits)):
        return mma.launches(case.task)


def sources(plan):
    return [launch.source for launch in plan.launches]


def spoiled(problem, kernel, dtype):
    """Small integers, with NaN and infinity in both operands that are read."""
    tensors, _ = integer_tensors(problem, dtype)
    arrays = [array.copy() for array in tensors]
    for i, array in enumerate(arrays):
        array.reshape(-1)[[0, array.size // 2, array.size - 1]] = (np.nan, np.inf, -np.inf)[i], 1, np.inf
    return Tensors(*arrays)


@pytest.mark.simulator
@pytest.mark.parametrize("kind", ("bfloat16", "float16", "float32-medium", "float32-high"))
@pytest.mark.parametrize("kernel", ("fprop", "dgrad", "wgrad"))
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_values(problem, kernel, kind):
    """Values must be exact, with equal bits in every schedule. NaN and infinity must reach the right results."""
    dtype, precision = KINDS[kind]
    for tensors in (integer_tensors(problem, dtype)[0], spoiled(problem, kernel, dtype)):
        case = Case(kernel, problem, tensors, precision=precision)
        plan = mma.launches(case.task)
        assert "transpose.cu" in sources(plan)
        with np.errstate(all="ignore"):
            expected = np.asarray(reference_kernel(kernel, problem, tensors)).astype(dtype_of(dtype))
        for schedule in SCHEDULES:
            found = case.run(plan, schedule)
            np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


@pytest.mark.simulator
@pytest.mark.parametrize("dtype", ("bfloat16", "float16"))
@pytest.mark.parametrize("kernel", ("fprop", "dgrad"))
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_results_of_tma(problem, kernel, dtype):
    """A result with channels first must be stored with channels last and then unpacked."""
    for tensors in (integer_tensors(problem, dtype)[0], spoiled(problem, kernel, dtype)):
        case = Case(kernel, problem, tensors)
        plan = forced_plan(case)
        assert [one for one in sources(plan) if one != "pack.cu"] == ["transpose.cu", "mma_engine.cu", "transpose.cu"]
        with np.errstate(all="ignore"):
            expected = np.asarray(reference_kernel(kernel, problem, tensors)).astype(dtype_of(dtype))
        for schedule in SCHEDULES:
            found = case.run(plan, schedule)
            np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


@pytest.mark.simulator
def test_joined_phases():
    """Columns of two joined phases must be unpacked to the positions of both."""
    problem = parse('mb2ic32iw128oc40kw4sw2pw1n"phases"')
    tensors, results = integer_tensors(problem, "bfloat16")
    case = Case("dgrad", problem, tensors)
    join = joins.joins(case.task)[-1]
    assert join.phases == (1, 1, 2)
    with forced.taking("mma", forced.Product(ENGINE, 1, join)):
        plan = mma.launches(case.task)
    assert sources(plan) == ["transpose.cu", "spread.cu", "mma_engine.cu", "transpose.cu"]
    np.testing.assert_array_equal(case.run(plan).astype(np.float64), results["dgrad"])


def test_partial_sums_need_no_unpacking():
    case = Case("fprop", WIDE, integer_tensors(WIDE, "bfloat16")[0])
    assert "transpose.cu" not in sources(forced_plan(case, 3))[1:]


def views(**changes):
    """An operand with channels first, and changes of its fields."""
    shape = changes.pop("shape", (2, 1, 64, 1, 12, 8))
    strides = [int(np.prod(shape[axis + 1 :])) for axis in range(6)]
    return Operand(shape, tuple(strides), True)._replace(**changes)


@pytest.mark.parametrize(
    "operand, size, fits",
    [
        (views(), 2, True),
        (views(), 4, True),
        (views(shape=(2, 1, 31, 1, 12, 8)), 2, False),  # few channels
        (views(shape=(2, 1, 64, 1, 14, 14)), 2, True),  # 196 positions are no chunks of eight, but halves of them
        (views(shape=(2, 1, 64, 1, 14, 14)), 4, True),
        (views(shape=(2, 1, 64, 1, 6, 7)), 2, False),
        (views(shape=(2, 1, 64, 1, 6, 7)), 4, True),
        (views(shape=(2, 1, 64, 1, 7, 7)), 4, False),
        (views(shape=(2, 3, 64, 4, 4, 1)), 2, True),
        (views(aligned=False), 2, False),
        (views(strides=(9600, 6144, 96, 96, 8, 1)), 2, True),  # a part of the channels
        (views(strides=(6145, 6144, 96, 96, 8, 1)), 2, False),
        (views(strides=(6144, 6144, 100, 96, 8, 1)), 2, True),
        (views(strides=(6144, 6144, 98, 96, 8, 1)), 2, False),
        (views(strides=(6144, 6144, -96, 96, 8, 1)), 2, True),
        (views(strides=(12288, 6144, 192, 192, 16, 2)), 2, False),
        (views(strides=(12288, 6144, 192, 192, 16, 1)), 2, False),  # a part of the rows
        (views(strides=(6144, 6144, 1, 96, 512, 64)), 2, False),  # channels last
        (views(shape=(2, 3, 64, 1, 12, 8), strides=(20000, 6144, 96, 96, 8, 1)), 2, False),
        (views(shape=(1, 3, 64, 1, 12, 8), strides=(20000, 6144, 96, 96, 8, 1)), 2, True),
    ],
)
def test_which_operands(operand, size, fits):
    assert (transpose._matrices(operand, size) is not None) == fits


@pytest.mark.parametrize("dtype, kinds", [("float64", ()), ("bfloat16", (0, 2)), ("float32", (0, 2))])
def test_which_types(dtype, kinds):
    task = task_without_memory("wgrad", parse('mb32ic256ih56oc256kh3ph1n"dense"'), dtype)
    launches = mma.launches(task).launches
    assert tuple(one.pointers[0] for one in launches if one.source == "transpose.cu") == kinds


@pytest.mark.tuning
def test_layers_with_channels_first_use_tma():
    """Large layers of PyTorch's default layout must be computed with TMA, between two transpositions."""
    dense = parse('mb32ic256ih56oc256kh3ph1n"dense"')
    for kernel in ("fprop", "dgrad"):
        plan = families.plan(task_without_memory(kernel, dense, "bfloat16", formats=CHANNELS_FIRST))
        assert sources(plan) == ["transpose.cu", "pack.cu", "mma_engine.cu", "transpose.cu"]
    # A result with few channels is stored where it belongs.
    stem = task_without_memory("dgrad", parse('mb128ic3ih224oc64kh7sh2ph3n"stem"'), "bfloat16")
    assert sources(families.plan(stem))[-1] == "mma.cu"


def test_a_grid_that_is_too_large():
    """An operand with more blocks than a grid has must be left to `pack`."""
    operand = views(shape=(2**31, 1, 64, 1, 12, 8))
    kind, dtype = (
        mma.kind_of(task_without_memory("fprop", WIDE, "bfloat16")),
        task_without_memory("fprop", WIDE, "bfloat16").dtype,
    )
    assert transpose.packing(0, operand, dtype, kind, 3, 64) is None
    assert transpose.unpacking(operand, dtype, kind, 3) is None
