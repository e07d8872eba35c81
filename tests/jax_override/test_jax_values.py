"""Random convolutions through JAX: every derivative has XLA's values."""

import numpy as np
import pytest

pytest.importorskip("jax", minversion="0.7")

import jax
import jax.numpy as jnp
from convolutions import derived, distance, draw

import convgrad_cy as cg
import convgrad_cy.jax as override

pytestmark = pytest.mark.jax

SLOW = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 300)]
#: Bits of a type's significand, without the first.
BITS = {"float16": 10, "bfloat16": 7}


@pytest.mark.parametrize("seed", [*range(12), *SLOW])
def test_derivatives(float64, seed):
    """Derivatives must be within 1e-13 of XLA's in float64: both add equal terms, in other orders."""
    convolution = draw(np.random.default_rng(seed))
    operands = jnp.asarray(convolution.lhs), jnp.asarray(convolution.rhs)
    wanted = jax.jit(derived, static_argnums=0)(convolution.__call__, *operands)
    before = override.status()
    override.enable()
    found = jax.jit(derived, static_argnums=0)(convolution.__call__, *operands)
    after = override.status()
    distances = {name: distance(found[name], wanted[name]) for name in wanted}
    assert max(distances.values()) <= 1e-13, distances
    assert (after.lowered, after.passed_on) != (before.lowered, before.passed_on)


def test_random_convolutions_are_ours(float64):
    """Nearly all random convolutions must be ours. The reasons for the others must be known ones."""
    before = override.status()
    override.enable()
    for seed in range(60):
        convolution = draw(np.random.default_rng(1000 + seed))
        jax.jit(convolution.__call__).lower(convolution.lhs, convolution.rhs)
    after = override.status()
    passed_on = {
        reason: number - before.passed_on.get(reason, 0)
        for reason, number in after.passed_on.items()
        if number > before.passed_on.get(reason, 0)
    }
    assert set(passed_on) <= {
        "padding of lhs beyond the filter",
        "padding that leaves no element",
        "batch groups with lhs_dilation and rhs_dilation above 1",
    }
    assert sum(passed_on.values()) <= 12


@pytest.mark.parametrize("seed", range(40))
def test_integers(float64, seed):
    """Sums of small integers must equal XLA's, for any layout, groups, padding and dilation: nothing is rounded."""
    convolution = draw(np.random.default_rng(100 + seed))
    wanted = np.asarray(convolution(convolution.lhs, convolution.rhs))
    with override.enabled("direct"):
        found = np.asarray(convolution(convolution.lhs, convolution.rhs))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("seed", range(6))
def test_half_types(seed, dtype):
    """A sum must be in float32, within 2e-5 of the greatest element, and rounded once to the type."""
    rng = np.random.default_rng(200 + seed)
    convolution = draw(rng)
    lhs, rhs = (
        jnp.asarray(rng.standard_normal(operand.shape), dtype) for operand in (convolution.lhs, convolution.rhs)
    )
    exact = np.asarray(convolution(lhs.astype("float32"), rhs.astype("float32")), float)
    with override.enabled():
        found = convolution(lhs, rhs)
    assert found.dtype == dtype
    error = np.abs(np.asarray(found, float) - exact)
    bound = 2.1e-5 * np.abs(exact).max() + np.abs(exact) * 2.0 ** (-1 - BITS[dtype]) + 2.0**-24
    assert (error <= bound).all()


def test_direct_has_our_bits():
    """A convolution of JAX with "direct" must have the bits of `convgrad_cy.conv` with "direct"."""
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(shape, dtype=np.float32) for shape in ((2, 16, 14, 15), (8, 16, 3, 3)))
    with override.enabled("direct"):
        found = jax.lax.conv(x, w, (1, 1), "SAME")
    np.testing.assert_array_equal(np.asarray(found), cg.conv(x, w, padding=1, algorithm="direct"))


def test_winograd_is_taken():
    """The default algorithm must be "auto". Its bits differ from "direct" here."""
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(shape, dtype=np.float32) for shape in ((2, 64, 28, 28), (64, 64, 3, 3)))
    with override.enabled():
        found = np.asarray(jax.lax.conv(x, w, (1, 1), "SAME"))
    np.testing.assert_array_equal(found, cg.conv(x, w, padding=1, algorithm="auto"))
    assert (found != cg.conv(x, w, padding=1, algorithm="direct")).any()
