"""The array library of a call: NumPy, CuPy, PyTorch or JAX.

The type of a call's first array chooses it. Only libraries that the caller has imported are imported here, with one
exception: tensors of PyTorch on a GPU import CuPy.
"""

import numpy as np

from .library import Foreign as Foreign
from .library import Library as Library
from .library import library_name
from .of_cupy import CUPY as CUPY
from .of_jax import JAX as JAX
from .of_numpy import NUMPY as NUMPY
from .of_torch import TORCH as TORCH
from .of_torch import numpy_dtypes as numpy_dtypes
from .of_torch_cuda import TORCH_CUDA as TORCH_CUDA
from .places import is_addressable as is_addressable
from .places import overlap as overlap
from .places import overlaps_itself as overlaps_itself
from .places import reach as reach

_LIBRARIES = {library.name: library for library in (NUMPY, CUPY, TORCH, JAX)}

#: Class of first arrays -> library. The search for the library takes longer than the rest of ``library_of``.
_OF_CLASS = {np.ndarray: NUMPY}
_MOST_CLASSES = 64


def library_of(name, array):
    """The library of a call's first array."""
    library = _OF_CLASS.get(type(array))
    if library is None:
        library = _LIBRARIES.get(library_name(array), NUMPY)
        if library is NUMPY:
            NUMPY.plain(name, array, None)
        if len(_OF_CLASS) < _MOST_CLASSES:
            _OF_CLASS[type(array)] = library
    return TORCH_CUDA if library is TORCH and array.is_cuda else library


def is_cupy_array(array):
    """Whether an array is CuPy's, without importing CuPy."""
    return library_name(array) == CUPY.name


def zeros(shape, like):
    """A new array of zeros, with the library, dtype and device of ``like``."""
    return (CUPY if is_cupy_array(like) else NUMPY).zeros(shape, like.dtype, like)
