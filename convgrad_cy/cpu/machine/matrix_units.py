"""Types that are left to a framework, because it multiplies them with instructions that our kernels do not use."""

from functools import cache

from ..._cpu_features import matrix_units
from .kernels import isa

#: Type -> the instructions with which PyTorch and XLA multiply it many times faster than our kernels do in float32.
_UNITS = {"bfloat16": {"AMX-BF16"}, "float16": {"AMX-FP16", "AVX512-FP16"}}


@cache
def units():
    """Names of the instructions with which this machine multiplies 16-bit types, and our kernels do not."""
    return {*matrix_units()} - ({"AMX-BF16"} if isa == "x86_64_amx" else set())


def units_of_frameworks(name):
    """Names of instructions that a framework uses for the type ``name`` here, and our kernels do not; "" if none."""
    return " and ".join(sorted(_UNITS.get(name, set()) & units()))
