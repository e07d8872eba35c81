"""x86_64_amx is x86_64_v4's module with the tile registers. Processor and system decide whether it may be chosen."""

import platform

import pytest
from operations import DTYPES

from convgrad_cy import _cpu_features, cpu
from convgrad_cy.cpu.direct.plan import plan
from convgrad_cy.cpu.machine import MATRICES, VECTORS, kernels, matrix_units
from convgrad_cy.cpu.plan.steps import Blocks
from convgrad_cy.dtypes import TABLE
from convgrad_cy.problem import DGRAD, FPROP, WGRAD, ConvProblem

AMX = "x86_64_amx"


@pytest.fixture
def levels(monkeypatch):
    """A function that sets the levels of x86-64 that run and are built, and whether the tile registers are allowed."""

    def set_to(names, allowed):
        monkeypatch.setattr(_cpu_features, "supported", lambda: names)
        monkeypatch.setattr(_cpu_features, "allows_matrices", lambda: allowed)
        monkeypatch.setattr(kernels, "_is_built", lambda name: name in names)

    return set_to


def test_permission_decides(levels):
    levels(("x86_64_v3", "x86_64_v4"), True)
    assert kernels.available_isas() == ("x86_64_v3", "x86_64_v4", AMX)
    levels(("x86_64_v3", "x86_64_v4"), False)
    assert kernels.available_isas() == ("x86_64_v3", "x86_64_v4")
    levels(("x86_64_v3",), True)
    assert kernels.available_isas() == ("x86_64_v3",)
    levels((), True)
    assert kernels.available_isas() == ()


def test_variable_decides(levels, monkeypatch):
    levels(("x86_64_v3", "x86_64_v4"), True)
    for wanted, chosen in (("", "x86_64_v4"), (AMX, AMX), ("x86_64_v4", "x86_64_v4")):
        monkeypatch.setenv("CONVGRAD_CY_ISA", wanted)
        assert kernels._chosen_isa() == chosen
    levels(("x86_64_v3", "x86_64_v4"), False)
    monkeypatch.setenv("CONVGRAD_CY_ISA", AMX)
    with pytest.raises(ImportError, match="must be one of x86_64_v3, x86_64_v4 on this machine, was 'x86_64_amx'"):
        kernels._chosen_isa()


@pytest.mark.parametrize("isa, left", [("x86_64_v4", {"AMX-BF16", "AMX-FP16"}), (AMX, {"AMX-FP16"})])
def test_frameworks_keep_the_types_that_we_do_not_multiply(monkeypatch, isa, left):
    monkeypatch.setattr(matrix_units, "isa", isa)
    monkeypatch.setattr(matrix_units, "matrix_units", lambda: ("AMX-BF16", "AMX-FP16"))
    assert matrix_units.units.__wrapped__() == left


def test_module_multiplies_as_its_row_says():
    pairs = cpu.this_machine().multiplies_pairs
    assert (pairs == MATRICES) == (cpu.isa == AMX)
    assert _cpu_features.allows_matrices() == (AMX in cpu.available_isas())
    if platform.machine() not in ("x86_64", "AMD64"):
        assert not _cpu_features.allows_matrices()


def problem_of(channels, outputs):
    return ConvProblem(2, 1, channels, outputs, (1, 14, 14), (1, 14, 14), (1, 3, 3), pad_begin=(0, 1, 1))


@pytest.mark.parametrize("operation", [FPROP, DGRAD, WGRAD])
@pytest.mark.parametrize("pairs", [0, VECTORS, MATRICES])
def test_plan_has_the_way(operation, pairs):
    machine = cpu.this_machine(2)._replace(vector_bytes=64, tile_column_bytes=256, multiplies_pairs=pairs)
    for i, dtype in enumerate(TABLE):
        blocks = Blocks(*plan(operation, problem_of(64, 64), dtype, False, machine).blocks)
        assert blocks.pairs == (pairs if dtype.name == "bfloat16" else 0), i


@pytest.mark.skipif("bfloat16" not in DTYPES, reason="ml_dtypes is not installed")
@pytest.mark.skipif(cpu.isa != AMX, reason="the tile registers are not in use")
def test_peak_is_that_of_the_tile_registers():
    assert (
        cpu.run_tiles(next(dtype for dtype in TABLE if dtype.name == "bfloat16"), 32, 2) % (4 * 2 * 32 * 32 * 64) == 0
    )
