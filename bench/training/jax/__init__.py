"""Training steps of JAX."""
