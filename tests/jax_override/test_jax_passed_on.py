"""Convolutions that XLA computes: its result, a reason in `status`, and only errors that JAX alone would raise."""

import logging

import pytest

pytest.importorskip("jax", minversion="0.7")

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

import convgrad_cy.jax as override
from convgrad_cy.calls import prepared
from convgrad_cy.cpu.machine import matrix_units
from convgrad_cy.jax import lowering

pytestmark = pytest.mark.jax

NUMBERS = ("NHWC", "HWIO", "NHWC")
RNG = np.random.default_rng(0)
X, W = (RNG.integers(-3, 4, shape).astype(np.float32) for shape in ((2, 8, 9, 4), (3, 3, 4, 4)))


def conv(x, w, padding="SAME", **keywords):
    return jax.lax.conv_general_dilated(x, w, (1, 1), padding, dimension_numbers=NUMBERS, **keywords)


def passed_on(function, *operands):
    """The reasons why a function's convolutions went to XLA. Its result is compared with JAX's own before."""
    wanted = np.asarray(jax.jit(function)(*operands))
    before = override.status().passed_on
    with override.enabled():
        found = np.asarray(jax.jit(function)(*operands))
    np.testing.assert_array_equal(found, wanted)
    return [reason for reason, count in override.status().passed_on.items() if count > before.get(reason, 0)]


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "complex64"])
def test_types(dtype):
    reasons = passed_on(conv, X.astype(dtype), W.astype(dtype))
    assert set(reasons) <= {f"operands of {dtype}", "operands of float32"} and f"operands of {dtype}" in reasons


FOUND = {
    ("AMX-BF16", "AMX-FP16", "AVX512-FP16"): {"bfloat16": "AMX-BF16", "float16": "AMX-FP16 and AVX512-FP16"},
    ("AMX-BF16", "AVX512-FP16"): {"bfloat16": "AMX-BF16", "float16": "AVX512-FP16"},
    ("AVX512-FP16",): {"float16": "AVX512-FP16"},
    (): {},
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("units", FOUND)
def test_types_that_the_processor_multiplies(monkeypatch, units, dtype):
    """If XLA has instructions that we lack, it must compute the types of these instructions, forward and backward."""
    monkeypatch.setattr(matrix_units, "units", lambda: {*units})
    used = FOUND[units].get(dtype)
    reasons = [] if used is None else [f"operands of {dtype}, which XLA multiplies with {used} here"]
    lowered = sum(override.status().lowered.values())

    def step(x, w):
        y, gradients = jax.vjp(conv, x, w)
        return sum(part.astype("float32").sum() for part in (y, *gradients(y * 0 + 1)))

    before = override.status().passed_on
    with override.enabled():
        found = jax.jit(step)(X.astype(dtype), W.astype(dtype))
    assert np.isfinite(found)
    after = override.status()
    assert [reason for reason, count in after.passed_on.items() if count > before.get(reason, 0)] == reasons
    assert (sum(after.lowered.values()) > lowered) == (used is None)


def test_a_result_of_another_type():
    reasons = passed_on(
        lambda x, w: conv(x, w, preferred_element_type=jnp.float32), X.astype("bfloat16"), W.astype("bfloat16")
    )
    assert reasons == ["operands of bfloat16 and bfloat16 with a result of float32"]


def test_the_same_type_by_name():
    assert passed_on(lambda x, w: conv(x, w, preferred_element_type=jnp.float32), X, W) == []


@pytest.mark.parametrize("precision", ["default", "high", "highest"])
def test_precision(precision):
    """Sums must be formed in float32 for any precision that a caller asks for."""
    assert passed_on(lambda x, w: conv(x, w, precision=precision), X, W) == []


def test_strides_and_lhs_dilation():
    def both(x, w):
        return jax.lax.conv_general_dilated(
            x, w, (2, 1), [(0, 0), (0, 0)], lhs_dilation=(3, 1), rhs_dilation=(1, 1), dimension_numbers=NUMBERS
        )

    assert passed_on(both, X, W) == ["window_strides and lhs_dilation above 1"]


@pytest.mark.parametrize("shape", [(0, 8, 9, 4), (2, 8, 9, 4)])
def test_empty(shape):
    x, w = np.ones(shape, np.float32), np.ones((3, 3, 4, 4 if shape[0] == 0 else 0), np.float32)
    assert passed_on(conv, x, w) == ["an operand without elements"]


def test_four_axes():
    def four(x, w):
        return jax.lax.conv_general_dilated(x, w, (1,) * 4, "SAME")

    assert passed_on(four, np.ones((1, 2, 3, 3, 3, 3), np.float32), np.ones((2, 2, 1, 1, 1, 1), np.float32)) == [
        "4 spatial axes"
    ]


def test_matrix_product_as_convolution():
    """A convolution without a spatial axis must go to XLA."""

    def none(x, w):
        return jax.lax.conv_general_dilated(x, w, (), [])

    assert passed_on(none, X[:, 0, 0], W[0, 0]) == ["0 spatial axes"]


def test_export():
    wanted = np.asarray(conv(X, W))
    with override.enabled():
        exported = export.export(jax.jit(conv))(X, W)
        assert "an exported program" in override.status().passed_on
        np.testing.assert_array_equal(np.asarray(exported.call(X, W)), wanted)


def test_symbolic_shapes():
    wanted = np.asarray(conv(X, W))
    (batch,) = export.symbolic_shape("b")
    with override.enabled():
        shaped = jax.ShapeDtypeStruct((batch, *X.shape[1:]), np.float32)
        exported = export.export(jax.jit(conv))(shaped, jax.ShapeDtypeStruct(W.shape, np.float32))
        np.testing.assert_array_equal(np.asarray(exported.call(X, W)), wanted)


def test_several_platforms():
    wanted = np.asarray(conv(X, W))
    with override.enabled():
        exported = export.export(jax.jit(conv), platforms=("cpu", "cuda"))(X, W)
        np.testing.assert_array_equal(np.asarray(exported.call(X, W)), wanted)


def test_a_planner_that_fails(monkeypatch, caplog):
    """A plan that cannot be made must end no program: XLA computes the convolution, and the log has the reason."""

    def fail(*arguments):
        raise ZeroDivisionError("of a test")

    monkeypatch.setattr(prepared, "prepare", fail)
    with caplog.at_level(logging.ERROR, "convgrad_cy.jax"):
        assert passed_on(conv, X, W + 1) == ["an internal error, ZeroDivisionError: of a test"]
    assert [record.exc_info[0] for record in caplog.records] == [ZeroDivisionError]


def test_jax_keeps_its_rule_where_we_find_it():
    """`current_rule` must find JAX's own rule, in a table that JAX does not document."""
    own = lowering.current_rule()
    assert callable(own)
    with override.enabled():
        assert lowering.current_rule() is not own
    assert lowering.current_rule() is own
