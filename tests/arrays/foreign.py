"""Arrays of PyTorch and JAX for tests: made from NumPy's, and read back."""

from contextlib import contextmanager

import numpy as np
import pytest

NAMES = ("torch", "jax")
LIBRARIES = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in NAMES]
DTYPES = ("float16", "bfloat16", "float32", "float64", "int32")  # bfloat16 is their own, with or without ml_dtypes


class Torch:
    name = "torch.Tensor"

    def array(self, values, dtype="float32"):
        import torch

        return torch.from_numpy(np.array(values)).to(getattr(torch, dtype))

    def values(self, tensor):
        return tensor.double().numpy()

    def pointer(self, tensor):
        return tensor.data_ptr()

    def dtype(self, tensor):
        return str(tensor.dtype).removeprefix("torch.")

    def is_one(self, tensor):
        import torch

        return type(tensor) is torch.Tensor


class Jax:
    name = "jax.Array"

    def __init__(self):
        import jax

        self.jax = jax

    def array(self, values, dtype="float32"):
        return self.jax.numpy.asarray(values, dtype)

    def values(self, array):
        return np.asarray(array, np.float64)

    def pointer(self, array):
        return array.unsafe_buffer_pointer()

    def dtype(self, array):
        return array.dtype.name

    def is_one(self, array):
        return isinstance(array, self.jax.Array) and not isinstance(array, self.jax.core.Tracer)


@contextmanager
def float64_of_jax():
    """JAX with float64, which is off by default."""
    import jax

    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", False)


def made(name):
    return {"torch": Torch, "jax": Jax}[name]()
