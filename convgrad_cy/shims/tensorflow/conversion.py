"""Convert arguments to plain integers, strings and arrays, with the errors of TensorFlow's bindings."""

import numpy as np

from ...arrays import is_cupy_array
from .errors import InvalidArgumentError

#: NumPy's name of a type -> TensorFlow's name, where they differ.
_TYPE_NAMES = {"float16": "half", "float32": "float", "float64": "double", "str": "string", "bytes": "string"}
_PYTHON_VALUES = (list, tuple, range, int, float, complex, str, bytes)
#: Kind of an array's type -> kinds of Python numbers that are converted to it. Other types take all but complex ones.
_CONVERTED = {"i": "biu", "u": "biu", "b": "b", "c": "biufc", "U": "U", "S": "SU"}
_INT64 = range(-(2**63), 2**63)


def type_name(dtype):
    """TensorFlow's name of a NumPy dtype."""
    name = dtype.type.__name__.rstrip("_") if dtype.kind in "SU" else dtype.name
    return _TYPE_NAMES.get(name, name)


def integers(op, name, value, default=None):
    """An attribute that is a list of integers. A float in it loses its fraction, as in TensorFlow."""
    if value is None and default is not None:
        return default
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"Expected list for {name!r} argument to {op!r} Op, not {value!r}.")
    return tuple([entry if type(entry) is int else _integer(name, entry) for entry in value])


def _integer(name, value):
    try:
        if isinstance(value, str) or np.ndim(value):
            raise TypeError
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"Expected int for argument {name!r} not {value!r}.") from None


def string(name, value, default=None):
    """An attribute that is a string."""
    if value is None and default is not None:
        return default
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if not isinstance(value, str):
        raise TypeError(f"Expected string for argument {name!r} not {value!r}.")
    return str(value)


def check_boolean(name, value):
    """Check an attribute that is a bool and has no effect."""
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"Expected bool for argument {name!r} not {value!r}.")


def sizes(value):
    """The entries of a vector of int32, wrapped around as in TensorFlow, or the array's rank if it is no vector."""
    if type(value) in (list, tuple) and all(type(entry) is int and -(2**31) <= entry < 2**31 for entry in value):
        return tuple(value)
    array = _array_of(value)
    if array is None:
        array = _from_python(value)
        if isinstance(value, (list, tuple)) and any(type(entry) is int and entry not in _INT64 for entry in value):
            raise ValueError("Can't convert Python sequence with out-of-range integer to Tensor.")
        accepted = "biu" if array.size else "biuf"
    else:
        accepted = "biuf"
    if array.dtype.kind not in accepted:
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype int32")
    with np.errstate(invalid="ignore"):
        array = array.astype(np.int32)
    return tuple(array.tolist()) if array.ndim == 1 else array.ndim


def operands(first, second):
    """Two arrays. The first decides the type to which Python numbers are converted.

    This function does not check that both have one type, because TensorFlow does so later.
    """
    array = _array_of(first)
    if array is None:
        array = _from_python(first)
        array = array.astype(_default_type(first, array), copy=False)
    return array, _second(second, array.dtype)


def _second(value, dtype):
    array = _array_of(value)
    if array is not None:
        return array
    array = _from_python(value)
    if array.size and array.dtype.kind not in _CONVERTED.get(dtype.kind, "biuf"):
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {type_name(dtype)}")
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(dtype)


def _default_type(value, array):
    """The type of Python numbers: float32 or int32, unless they come from NumPy."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    if array.dtype.kind == "f" and not isinstance(value, (np.floating, np.ndarray)):
        return np.dtype(np.float32)
    if array.dtype.kind in "iu" and (not array.size or (array.min() >= -(2**31) and array.max() < 2**31)):
        return np.dtype(np.int32)
    return array.dtype


def _from_python(value):
    """A NumPy array of numbers, or of sequences of numbers."""
    if not isinstance(value, _PYTHON_VALUES):
        raise _no_tensor(value)
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError("Can't convert non-rectangular Python sequence to Tensor.") from None
    if array.dtype.kind == "O":
        for entry in array.flat:
            if not isinstance(entry, int):
                raise _no_tensor(entry)
        raise ValueError("Can't convert Python sequence with out-of-range integer to Tensor.")
    return array


def _no_tensor(value):
    return ValueError(f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a Tensor.")


def _array_of(value):
    """An array in the machine's byte order and without its subclass, or None if the value is no array."""
    if type(value) is not np.ndarray and not is_cupy_array(value):
        if not hasattr(value, "__array__"):
            return None
        value = np.asarray(value)
    dtype = value.dtype
    if dtype.kind == "O":
        kind = type(value.flat[0]).__name__ if value.size else "object"
        raise ValueError(f"Failed to convert a NumPy array to a Tensor (Unsupported object type {kind}).")
    if dtype.kind in "mM" or dtype.type is np.void:
        raise ValueError("Failed to convert a NumPy array to a Tensor (Unexpected numpy data type).")
    if dtype.char in "gG":
        kind = {"g": "NPY_LONGDOUBLE", "G": "NPY_CLONGDOUBLE"}[dtype.char]
        raise ValueError(f"Failed to convert a NumPy array to a Tensor (Unsupported numpy type: {kind}).")
    return value if dtype.isnative else value.astype(dtype.newbyteorder("="))


def check_one_type(op, position, first, second):
    """Check that both arrays have one type, as TensorFlow does for its own tensors."""
    if second.dtype != first.dtype:
        expected, actual = type_name(first.dtype), type_name(second.dtype)
        raise InvalidArgumentError(
            f"cannot compute {op} as input #{position}(zero-based) was expected to be a {expected} tensor "
            f"but is a {actual} tensor"
        )
