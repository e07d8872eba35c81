"""Types that are left to PyTorch, because it multiplies them with matrix instructions that our kernels do not use."""

from functools import cache

import torch

from .._cpu_features import matrix_units
from ..cpu import isa

#: Type -> the instructions with which PyTorch multiplies it many times faster than our kernels do in float32.
_UNITS = {torch.bfloat16: {"AMX-BF16"}, torch.float16: {"AMX-FP16", "AVX512-FP16"}}


@cache
def units():
    """Names of the instructions with which this machine multiplies 16-bit types, and our kernels do not."""
    return {*matrix_units()} - ({"AMX-BF16"} if isa == "x86_64_amx" else set())


def left_to_pytorch(dtype):
    """The reason why calls with tensors of this type are passed on, or None."""
    used = sorted(_UNITS.get(dtype, set()) & units())
    return f"tensors of {dtype}, which PyTorch multiplies with {' and '.join(used)} here" if used else None
