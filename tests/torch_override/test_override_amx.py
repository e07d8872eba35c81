"""bfloat16 is left to PyTorch where it uses AMX and our kernels do not."""

import pytest

torch = pytest.importorskip("torch")

from convgrad_cy.torch import processor  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("isa, left", [("x86_64_v4", {"AMX-BF16", "AMX-FP16"}), ("x86_64_amx", {"AMX-FP16"})])
def test_our_tile_registers_take_bfloat16(monkeypatch, isa, left):
    monkeypatch.setattr(processor, "isa", isa)
    monkeypatch.setattr(processor, "matrix_units", lambda: ("AMX-BF16", "AMX-FP16"))
    assert processor.units.__wrapped__() == left
