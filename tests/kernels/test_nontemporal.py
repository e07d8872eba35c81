"""Results stored with non-temporal stores, as for large problems: here small ones, on a machine without a cache."""

import numpy as np
import pytest
from operations import DTYPES, OPERATIONS, assert_exact, bits, dtype_of, integer_tensors, real_tensors
from plans import plan_of
from problems import PROBLEMS, parse

import convgrad_cy as cg
from convgrad_cy import _repeat, arrays, calls, cpu
from convgrad_cy.cpu.machine import Machine
from convgrad_cy.cpu.plan.steps import Blocks
from convgrad_cy.cpu.winograd import plan as winograd
from convgrad_cy.cpu.winograd.tilings import LARGE, SMALL
from convgrad_cy.dtypes import TABLE
from convgrad_cy.memo.bounded import Bounded
from convgrad_cy.problem import DGRAD, FPROP, WGRAD, ConvProblem

LAYERS = (
    "g64ic64ih9oc64kh3ph1",
    "g96ic96ih9oc96kh3sh2ph1",
    "g64ic768ih9oc768kh3sh2ph1",  # stride phases of several groups
)


@pytest.fixture(autouse=True)
def no_cache(monkeypatch, machine_with):
    machine_with(cache_bytes=0)
    library = arrays.NUMPY._replace(empty=lambda shape, dtype, like=None: _repeat.aligned_array(shape, dtype))
    for module in (arrays, calls):
        monkeypatch.setattr(module, "NUMPY", library)
    monkeypatch.setitem(arrays._OF_CLASS, np.ndarray, library)
    monkeypatch.setattr(calls, "_KNOWN", Bounded())


@pytest.mark.tuning
@pytest.mark.parametrize(
    "groups, channels, vector_bytes, vectors, expected",
    (
        (1, 64, 64, 4, True),
        (1, 64, 32, 2, True),
        (1, 64, 16, 2, False),  # a strip is half of a line
        (1, 512, 64, 4, False),  # others are added later
        (64, 1, 64, 4, True),
        (64, 1, 32, 2, True),
    ),
)
def test_are_planned(groups, channels, vector_bytes, vectors, expected):
    """Non-temporal stores must be planned as expected.

    The source of small groups, read in place, must be prefetched.
    """
    problem = ConvProblem(1, groups, channels, channels, (1, 8, 8), (1, 8, 8), (1, 3, 3), pad_begin=(0, 1, 1))
    size = groups * channels * 8 * 8 * 4  # bytes of the source, and of the target
    cases = (0, expected, 2), (size, expected, 2), (3 * size // 2, False, 2), (3 * size, False, 1), (5 * size, False, 0)
    for cache_bytes, nontemporal, prefetch in cases:
        tile = {"vector_bytes": vector_bytes, "tile_column_bytes": vectors * vector_bytes}
        machine = cpu.this_machine()._replace(cache_bytes=cache_bytes, **tile)
        blocks = Blocks(*plan_of(FPROP, problem, TABLE[2], False, machine).blocks)
        assert (blocks.nontemporal, blocks.prefetch) == (nontemporal, prefetch if groups > 1 else 0)


@pytest.mark.tuning
def test_phases_are_planned():
    """Whole lines of several groups, of all phases of a row, must be planned."""
    sizes = (1, 9, 9), (1, 5, 5), (1, 3, 3), (1, 2, 2), (1, 1, 1), (0, 1, 1)
    problem, machine = ConvProblem(2, 64, 12, 12, *sizes), Machine(6, 256, 64, True, cache_bytes=0, threads=2)
    for adjacent, expected in ((False, (True, 4, 4)), (True, (False, 1, 4))):
        blocks = Blocks(*plan_of(DGRAD, problem, TABLE[2], adjacent, machine).blocks)
        assert (blocks.nontemporal, blocks.groups, blocks.phases) == expected


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", LAYERS)
def test_exact(operation, dtype, text):
    problem = parse(f'mb2{text}n"streamed"')
    tensors, _ = integer_tensors(problem, dtype)
    expected = operation.expected(problem, tensors, "NXC", "XIO")
    assert_exact(operation.call(problem, tensors, "NXC", "XIO"), expected, dtype)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", (*LAYERS, "ic64ih9oc64kh3ph1"))
def test_targets_between_lines(operation, dtype, text):
    """Targets whose rows begin within a line must be exact.

    The rows are as long as whole lines; no non-temporal store can reach them.
    """
    problem = parse(f'mb2{text}n"between"')
    tensors, _ = integer_tensors(problem, dtype)
    expected = operation.expected(problem, tensors, "NXC", "XIO")
    memory = _repeat.aligned_array((expected.size + 64,), dtype_of(dtype))
    for first in (1, 4):
        out = memory[first : first + expected.size].reshape(expected.shape)
        assert_exact(operation.call(problem, tensors, "NXC", "XIO", out=out), expected, dtype)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", (16, 32))
def test_rows_are_exact(operation, dtype, size):
    """Rows must be exact: tiles across positions store a line for each output. Rows of 32 x 32 lie a page apart."""
    problem = parse(f'mb2ic3ih{size}oc64kh3ph1n"rows"')
    tensors, _ = integer_tensors(problem, dtype)
    expected = operation.expected(problem, tensors, "NCX", "OIX")
    assert_exact(operation.call(problem, tensors, "NCX", "OIX"), expected, dtype)


@pytest.mark.tuning
def test_rows_are_planned():
    problem = ConvProblem(2, 1, 3, 64, (1, 32, 32), (1, 32, 32), (1, 3, 3), pad_begin=(0, 1, 1))
    blocks = Blocks(*plan_of(FPROP, problem, TABLE[2], True, cpu.this_machine()).blocks)
    assert blocks.positions_across and blocks.nontemporal == (cpu.this_machine().tile_column_bytes >= 64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("outputs", (96, 150))
def test_target_from_memory(machine_with, dtype, outputs):
    """No bit may change: narrow vectors copy a target from memory that they would read in place in the cache."""
    operation, problem = OPERATIONS["conv_backward_filter"], parse(f'mb2ic3ih13oc{outputs}kh1n"far"')
    tensors, results = integer_tensors(problem, dtype)
    real, found = real_tensors(problem, dtype), set()
    for cache in (0, 1 << 30):
        machine_with(cache_bytes=cache)
        assert_exact(operation.call(problem, tensors, "NXC", layout=np.ascontiguousarray), results["wgrad"], dtype)
        found.add(bits(operation.call(problem, real, "NXC", layout=np.ascontiguousarray)))
    assert len(found) == 1
    problem, machine = ConvProblem(2, 1, 3, outputs, (1, 13, 13), (1, 13, 13), (1, 1, 1)), cpu.this_machine()
    size = 2 * outputs * 13 * 13 * 4
    for cache_bytes, expected in ((size, True), (2 * size, False)):
        made = plan_of(WGRAD, problem, TABLE[2], False, machine._replace(cache_bytes=cache_bytes))
        assert Blocks(*made.blocks).target_in_memory == expected


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
def test_all_problems(operation):
    for problem in PROBLEMS.values():
        tensors, results = integer_tensors(problem, "float32")
        assert_exact(operation.call(problem, tensors), results[operation.kernel], "float32")


@pytest.mark.parametrize("dtype", ("float32", "float16"))
def test_bits_of_winograd(machine_with, dtype):
    """The bits must not depend on non-temporal stores; float32 uses them."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(dtype) for shape in ((2, 13, 17, 32), (3, 3, 32, 64)))
    results = []
    for cache_bytes in (0, 1 << 40):
        machine_with(cache_bytes=cache_bytes)
        results.append(cg.conv(x, w, padding=1, data_format="NXC", filter_format="XIO", algorithm="winograd"))
    assert results[0].tobytes() == results[1].tobytes()


@pytest.mark.tuning
def test_winograd_is_planned():
    problem = ConvProblem(1, 1, 64, 64, (1, 8, 8), (1, 8, 8), (1, 3, 3), pad_begin=(0, 1, 1))
    tiling = (SMALL, LARGE, LARGE)
    for operation, cache_bytes, expected in ((FPROP, 0, True), (FPROP, 1 << 30, False), (WGRAD, 0, False)):
        machine = cpu.this_machine()._replace(cache_bytes=cache_bytes)
        assert winograd.plan(operation, problem, tiling, machine).chosen.nontemporal == expected
