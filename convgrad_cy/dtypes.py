"""The dtype table: storage type, compute type, and names in C and CUDA."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np


@dataclass(frozen=True, slots=True)
class DType:
    """One storage type of the kernels.

    Attributes
    ----------
    code : int
        Its number in ``pyx/base/scalar.pxd``.
    name : str
        NumPy's name of the type.
    compute : str
        Name of the type in which products are formed and summed.
    view : numpy.dtype
        The type as which Cython receives the array: the two half types are one-member structs there.
    cuda : str
        Its C++ name in ``convgrad_cy/gpu``.
    """

    code: int
    name: str
    compute: str
    view: np.dtype
    cuda: str

    @property
    def itemsize(self):
        return self.view.itemsize

    @property
    def compute_itemsize(self):
        return np.dtype(self.compute).itemsize


_HALF = np.dtype([("bits", np.uint16)])

#: In the order of the codes.
TABLE = (
    DType(0, "float16", "float32", _HALF, "f16"),
    DType(1, "bfloat16", "float32", _HALF, "bf16"),
    DType(2, "float32", "float32", np.dtype(np.float32), "float"),
    DType(3, "float64", "float64", np.dtype(np.float64), "double"),
    DType(4, "int32", "int32", np.dtype(np.int32), "int"),
)

NAMES = tuple(row.name for row in TABLE)
_BY_NAME = {row.name: row for row in TABLE}

#: NumPy's dtype for bfloat16 in the memory of another library. It needs no ``ml_dtypes``.
BFLOAT16_BITS = np.dtype([("bfloat16", np.uint16)])


@lru_cache(maxsize=64)
def lookup(dtype):
    """The table's row of a NumPy dtype, or None if the kernels do not know it.

    bfloat16 is recognised by its name, so that ``ml_dtypes`` need not be imported here: an array of that type can
    only exist where somebody has imported it. The byte order does not matter: kernels read a copy in the machine's own.
    """
    if dtype == BFLOAT16_BITS:
        return _BY_NAME["bfloat16"]
    row = _BY_NAME.get(dtype.name)
    return row if row is not None and dtype.itemsize == row.itemsize else None


def refusal(name, dtype):
    """The exception for an argument called ``name`` of a dtype that the kernels do not know."""
    return TypeError(f"{name} must have a dtype among {', '.join(NAMES)}, not {dtype}")


def check_same(name, dtype, like, wanted):
    """Check that the array ``name`` has the dtype ``wanted``, which the array ``like`` has and the kernels know."""
    if dtype is not wanted and lookup(dtype) is not lookup(wanted):  # finding a name takes microseconds
        shown = ["bfloat16" if one == BFLOAT16_BITS else one for one in (wanted, dtype)]
        raise TypeError(f"{name} must have the dtype of {like}, {shown[0]}, not {shown[1]}")
