"""Whether the installed wheel computes the installed JAX's convolutions: ``python packaging/check_jax.py``.

The wheel is built without JAX, so one file has to serve every release that convgrad_cy.jax supports.
"""

import jax

import convgrad_cy.jax as override

jax.config.update("jax_enable_x64", True)

#: (lhs, rhs) and the keywords of conv_general_dilated: a convolution, strided and dilated groups, a transposed one.
CALLS = (
    ((2, 9, 10, 4), (3, 3, 4, 6), {"window_strides": (1, 1), "padding": "SAME"}),
    ((2, 9, 10, 4), (3, 2, 2, 6), {"window_strides": (2, 1), "padding": "VALID", "feature_group_count": 2}),
    ((2, 5, 6, 4), (3, 3, 4, 6), {"window_strides": (1, 1), "padding": [(2, 1), (1, 2)], "lhs_dilation": (2, 2)}),
)
NUMBERS = ("NHWC", "HWIO", "NHWC")


def results(lhs, rhs, keywords):
    """A convolution and both its gradients."""

    def convolve(lhs, rhs):
        return jax.lax.conv_general_dilated(lhs, rhs, dimension_numbers=NUMBERS, **keywords)

    def loss(lhs, rhs):
        return (convolve(lhs, rhs) ** 2).sum()

    return jax.jit(lambda lhs, rhs: (convolve(lhs, rhs), *jax.grad(loss, argnums=(0, 1))(lhs, rhs)))(lhs, rhs)


def main():
    """Compare ours with XLA's, and print the versions."""
    for number, (lhs_shape, rhs_shape, keywords) in enumerate(CALLS):
        keys = jax.random.split(jax.random.key(number))
        operands = jax.random.normal(keys[0], lhs_shape, "float64"), jax.random.normal(keys[1], rhs_shape, "float64")
        wanted = results(*operands, keywords)
        with override.enabled():
            found = results(*operands, keywords)
            for one, other in zip(found, wanted, strict=True):
                difference = float(abs(one - other).max() / abs(other).max())
                assert difference < 1e-13, f"{keywords}: {difference} from XLA's result"
    status = override.status()
    assert status.computed == 3 * len(CALLS) and not status.passed_on, status
    print(f"jax {jax.__version__}, {override.__file__}: {status.computed} convolutions computed, as XLA does")


if __name__ == "__main__":
    main()
