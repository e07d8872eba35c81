"""Whole training steps, with a framework's own kernels of convolution and with ours instead."""

from typing import NamedTuple


class Framework(NamedTuple):
    """The choices of a framework: how steps run.

    NCX and NXC are channels first and last, as in the other benchmarks.
    """

    title: str
    dtypes: tuple
    layouts: tuple
    modes: tuple


FRAMEWORKS = {
    "torch": Framework("PyTorch", ("float32", "bfloat16"), ("NCX", "NXC"), ("eager", "compile")),
    "jax": Framework("JAX", ("float32",), ("NXC",), ("jit",)),
}

#: How documents and plots name the modes.
MODE_NAMES = {"eager": "eager", "compile": "compiled", "jit": "jitted"}
