"""Every test starts and ends with JAX's own rule."""

import pytest


@pytest.fixture(autouse=True)
def as_before():
    import convgrad_cy.jax as override

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
