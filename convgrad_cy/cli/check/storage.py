"""The types of the elements: numbers to arrays and back, with NumPy alone. bfloat16 is an array of bits here."""

from typing import NamedTuple

import numpy as np

from ... import dtypes


class Storage(NamedTuple):
    """A type of arrays.

    Attributes
    ----------
    name : str
    dtype : numpy.dtype
        The type of arrays that the functions receive.
    epsilon : float
        The distance from 1 to the next larger number; 0 for integers.
    smallest : float
        The smallest positive number; 0 for integers.
    compute_epsilon : float
        The epsilon of the type in which products are summed.
    """

    name: str
    dtype: np.dtype
    epsilon: float
    smallest: float
    compute_epsilon: float

    @property
    def is_float(self):
        return self.epsilon > 0

    def store(self, values):
        """The numbers as an array of this type: rounded to the nearest number, integers modulo 2**32."""
        with np.errstate(invalid="ignore"):  # NaN
            if self.name == "bfloat16":
                return _bfloat16(np.asarray(values, np.float32)).view(self.dtype)
            return np.asarray(values).astype(self.dtype)

    def read(self, array):
        """The numbers of an array, as float64 or int64."""
        with np.errstate(invalid="ignore"):  # NaN
            if self.name == "bfloat16":
                bits = np.ascontiguousarray(array).view(np.uint16).reshape(array.shape)
                return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
            return array.astype(np.float64 if self.is_float else np.int64)


def _bfloat16(values):
    """The bits of float32 numbers, rounded to the nearest bfloat16, or to the even one of two."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def _storage(row):
    epsilon = float(np.finfo(row.compute).eps) if row.compute != "int32" else 0.0
    if row.name == "bfloat16":
        return Storage(row.name, dtypes.BFLOAT16_BITS, 2.0**-7, 2.0**-133, epsilon)
    if not epsilon:
        return Storage(row.name, row.view, 0.0, 0.0, 0.0)
    kind = np.finfo(row.name)
    return Storage(row.name, np.dtype(row.name), float(kind.eps), float(kind.smallest_subnormal), epsilon)


#: Each type by its name.
STORAGES = {row.name: _storage(row) for row in dtypes.TABLE}
