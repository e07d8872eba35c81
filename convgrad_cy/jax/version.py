"""Refuse a Python without JAX, or with one that is too old."""

#: The first release whose XLA runs handlers of the FFI's API 0.1 with the metadata that ours answers.
OLDEST = (0, 7)

try:
    import jax
except ImportError as error:
    raise ImportError("convgrad_cy.jax needs JAX 0.7 or newer: pip install jax") from error

if tuple(int(part) for part in jax.__version__.split(".")[:2]) < OLDEST:
    raise ImportError(f"convgrad_cy.jax needs JAX 0.7 or newer, not {jax.__version__}")
