"""The part of ``python -m convgrad_cy check`` that needs CuPy, on the simulator instead of the GPU."""

import sys
from importlib.util import find_spec

import fake_cupy
import numpy as np
import pytest
from sim.executor import COMPILER

import convgrad_cy as cg
from convgrad_cy.cli.check import with_gpu
from convgrad_cy.cli.check.functions import FUNCTIONS
from convgrad_cy.cli.check.storage import STORAGES

#: A type of two bytes; CuPy has bfloat16 from ml_dtypes.
HALF = "bfloat16" if find_spec("ml_dtypes") else "float16"
pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile kernels for the simulator")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A stand-in for CuPy, and few calls of the check."""
    fake_cupy.install(monkeypatch)
    monkeypatch.setattr(fake_cupy, "is_available", lambda: True, raising=False)
    monkeypatch.setattr(sys.modules["cupy"], "is_available", lambda: True, raising=False)
    monkeypatch.setattr(with_gpu, "LAYERS", ("stride_and_dilation",))
    monkeypatch.setattr(with_gpu, "FUNCTIONS", FUNCTIONS[:1])
    monkeypatch.setattr(with_gpu, "STORAGES", {name: STORAGES[name] for name in (HALF, "float32")})


def test_exact_results_on_a_gpu():
    records = list(with_gpu.records())
    assert [(row["row"], row["checked"], row["told"]) for row in records] == [(HALF, 2, []), ("float32", 2, [])]
    assert fake_cupy.launches


def test_a_wrong_result_on_a_gpu_is_found(monkeypatch):
    right = cg.conv

    def wrong(*arrays, **keywords):
        result = right(*arrays, **keywords)
        bits = result.host.view(np.uint16)
        bits[(0,) * bits.ndim] ^= 1
        return result

    monkeypatch.setattr(cg, "conv", wrong)
    first = next(iter(with_gpu.records()))
    assert first["failed"] == 2 and first["told"][0].startswith(
        "conv, stride_and_dilation, NCX, integers: element (0, 0"
    )


def test_an_exception_on_a_gpu_is_a_failure(monkeypatch):
    def wrong(*arrays, **keywords):
        raise RuntimeError("out of\nresources")

    monkeypatch.setattr(cg, "conv", wrong)
    assert next(iter(with_gpu.records()))["told"] == ["conv, stride_and_dilation: RuntimeError: out of resources"]


def test_without_a_gpu(monkeypatch):
    monkeypatch.setattr(sys.modules["cupy"], "is_available", lambda: False, raising=False)
    monkeypatch.setattr(sys.modules["cupy"], "__version__", "14.0", raising=False)
    (record,) = with_gpu.records()
    assert (record["checked"], record["note"]) == (0, "14.0, not checked: it finds no GPU")
