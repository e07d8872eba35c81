"""Whole training steps, with a framework's kernels of convolution and with ours in their place."""

from typing import NamedTuple


class Framework(NamedTuple):
    """How steps run. NCX and NXC are channels first and last, as in the other benchmarks."""

    title: str
    dtypes: tuple
    layouts: tuple
    modes: tuple


FRAMEWORKS = {
    "torch": Framework("PyTorch", ("float32", "bfloat16"), ("NCX", "NXC"), ("eager", "compile")),
    "jax": Framework("JAX", ("float32",), ("NXC",), ("jit",)),
}
