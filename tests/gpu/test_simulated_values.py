"""Every family of kernels against the reference, run on the CPU: the text and the plan of a GPU.

Each family computes every problem that suits it, also if another one would be preferred.
"""

from zlib import crc32

import numpy as np
import pytest
from layouts import every_second, negative
from operations import DTYPES, FLOATS, bits, integer_tensors, real_tensors, reference_kernel
from problems import PROBLEMS
from sim.executor import SCHEDULES
from simulated import CHANNELS_LAST, FORMATS, OPERATIONS, Case

from convgrad_cy.gpu import families

pytestmark = pytest.mark.simulator

FAMILIES = dict(zip(families.NAMES, families.PREFERENCE, strict=True))


def can(family, task):
    """Whether a family can compute the task. Some families also say whether it gains."""
    return getattr(FAMILIES[family], "can", FAMILIES[family].suits)(task)


PRECISIONS = [(dtype, "high") for dtype in FLOATS] + [("float32", "medium"), ("float32", "ieee")]
#: Largest error relative to the result's largest element, as docs/arrays.md promises.
BOUNDS = {
    "float64": 1e-13,
    "float32-ieee": 5e-6,
    "float32-high": 5e-6,
    "float32-medium": 1e-5,
    "float16": 2e-3,
    "bfloat16": 6e-3,
}
#: A problem with more products than this runs in one schedule only.
LARGE = 300_000
#: Problems that run in all formats, each with another kind of walk, groups or tail.
FEW = ("1d_groups", "2d_stride2_dilation3", "2d_asymmetric_stride2_end", "2d_channels65", "3d_mixed_stride")

problems = pytest.mark.parametrize("problem", [p for p in PROBLEMS.values() if p.batch], ids=str)
precisions = pytest.mark.parametrize("dtype, precision", PRECISIONS, ids=["-".join(pair) for pair in PRECISIONS])
all_families = pytest.mark.parametrize("family", FAMILIES)
slow = pytest.mark.slow


def work_of(problem):
    return np.prod(problem.x_shape[:2]) * np.prod(problem.w_shape) // problem.w_shape[1] * np.prod(problem.y)


@slow
@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "mma"])  # test_mma.py has those
@pytest.mark.parametrize("dtype", DTYPES)
@problems
def test_integers(family, dtype, problem):
    """All kernels must be exact. Problem, kernel and type select the formats, and the one with three schedules."""
    tensors, results = integer_tensors(problem, dtype)
    ran = 0
    for kernel in OPERATIONS:
        choice = crc32(f"{problem} {kernel} {dtype}".encode())
        chosen = FORMATS[choice % len(FORMATS)]
        for formats in FORMATS if problem.name in FEW else [chosen]:
            case = Case(kernel, problem, tensors, formats=formats)
            if not can(family, case.task):
                continue
            ran += 1
            plan = FAMILIES[family].launches(case.task)
            result = case.run(plan, SCHEDULES[choice % 2], choice)
            np.testing.assert_array_equal(result.astype(np.float64), results[kernel], err_msg=f"{kernel} {formats}")
            if formats == chosen and work_of(problem) < LARGE:
                for schedule in (SCHEDULES[1 - choice % 2], SCHEDULES[2]):
                    again = case.run(plan, schedule, choice)
                    assert bits(again) == bits(result), f"{kernel} {formats} depends on the order of warps"
    if not ran:
        pytest.skip(f"{family} does not take this problem")


#: Problems with real data: they differ in the length and the order of sums.
REAL = ("2d_valid", "2d_odd_everything", "2d_depth1200", "2d_depth810", "1d_many_positions", "2d_blocks_stride2")


@slow
@all_families
@precisions
@pytest.mark.parametrize("name", REAL)
def test_real_data(family, dtype, precision, name):
    problem = PROBLEMS[name]
    tensors = real_tensors(problem, dtype)
    bound = BOUNDS[f"{dtype}-{precision}" if dtype == "float32" else dtype]
    ran = 0
    for kernel in OPERATIONS:
        case = Case(kernel, problem, tensors, precision=precision, formats=CHANNELS_LAST)
        if can(family, case.task):
            ran += 1
            exact = reference_kernel(kernel, problem, tensors)
            error = abs(case.run(FAMILIES[family].launches(case.task)).astype(np.float64) - exact).max()
            assert error <= bound * abs(exact).max(), f"{kernel}: {error / abs(exact).max()}"
    if not ran:
        pytest.skip(f"{family} does not take this problem")


@slow
@all_families
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", (negative, every_second), ids=lambda layout: layout.__name__)
@pytest.mark.parametrize("name", ("2d_groups3_stride2", "2d_depthwise", "2d_sixteen"))
def test_strides(family, dtype, layout, name):
    """Tensors with gaps or negative strides must be exact. The gaps of the result must keep their values."""
    problem = PROBLEMS[name]
    tensors, results = integer_tensors(problem, dtype)
    for kernel in OPERATIONS:
        case = Case(kernel, problem, tensors, layout=layout)
        if can(family, case.task):
            before = gaps_around(case.result)
            result = case.run(FAMILIES[family].launches(case.task))
            np.testing.assert_array_equal(result.astype(np.float64), results[kernel], err_msg=kernel)
            assert gaps_around(case.result) == before


def gaps_around(view):
    """All memory that a view is part of. The view's own elements are set to zero."""
    memory = view
    while memory.base is not None:
        memory = memory.base
    begin = view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    memory = bytearray(memory.tobytes())
    np.ndarray(view.shape, view.dtype, memory, begin, view.strides)[...] = 0
    return memory


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ("2d_stride2_leftover", "2d_depthwise", "2d_sixteen"))
def test_preferred_family(dtype, name):
    """The family that a call on an H200 would run must be exact. Every change runs this part."""
    tensors, results = integer_tensors(PROBLEMS[name], dtype)
    for kernel in OPERATIONS:
        case = Case(kernel, PROBLEMS[name], tensors, formats=CHANNELS_LAST)
        result = case.run(families.plan(case.task))
        np.testing.assert_array_equal(result.astype(np.float64), results[kernel], err_msg=kernel)
