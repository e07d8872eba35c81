"""Every test starts and ends with JAX's own rule.

All types are ours in the tests, also on a processor with instructions for which 16-bit types are left to XLA.
"""

import pytest


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    import convgrad_cy.jax as override
    from convgrad_cy.cpu.machine import matrix_units

    monkeypatch.setattr(matrix_units, "units", frozenset)
    override.disable()
    yield
    override.disable()


@pytest.fixture
def float64():
    """JAX with 64-bit types for the length of a test."""
    import jax

    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)
