"""Types that PyTorch multiplies by instructions of the processor that no kernel here uses: these are left to it."""

from functools import cache

import torch

from .._cpu_features import matrix_units

#: Type -> the instructions by which PyTorch multiplies it many times as fast as our kernels do in float32.
_UNITS = {torch.bfloat16: {"AMX-BF16"}, torch.float16: {"AMX-FP16", "AVX512-FP16"}}


@cache
def units():
    """Names of the instructions with which this machine multiplies 16-bit types."""
    return {*matrix_units()}


def left_to_pytorch(dtype):
    """Why calls with tensors of this type are passed on, or None."""
    used = sorted(_UNITS.get(dtype, set()) & units())
    return f"tensors of {dtype}, which PyTorch multiplies with {' and '.join(used)} here" if used else None
