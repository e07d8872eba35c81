"""The interface of an array library, the library of an array, and the errors for arrays of other libraries."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

#: DLPack's device types: the memory of the CPU; of a CUDA device, and managed CUDA memory.
_DLPACK_CPU, _DLPACK_CUDA = 1, (2, 13)

#: Name of a class of arrays -> its module and the class in it.
_CLASSES = {name: name.split(".") for name in ("numpy.ndarray", "cupy.ndarray", "torch.Tensor", "jax.Array")}


class Library(NamedTuple):
    """A library on whose arrays the kernels work, with the functions that validation needs."""

    name: str  # name of its arrays
    algorithms: tuple  # algorithms that its kernels have
    plain: Callable  # (name, array, like) -> the array without its subclass; TypeError for another library's array
    empty: Callable  # (shape, dtype, like) -> a new C-contiguous array on the device of ``like``
    zeros: Callable  # (shape, dtype, like) -> a new array of zeros, in the machine's byte order
    copy: Callable  # (array) -> a new C-contiguous array that kernels can read
    check_device: Callable  # (name, array, like, first) -> TypeError if the array is on another device than the first
    seen: Callable  # (array) -> a NumPy array of its shape, strides and address, whose memory must not be touched


class Foreign(NamedTuple):
    """A library whose arrays become NumPy or CuPy arrays in the same memory, and the call runs on these.

    ``like`` is the name of the call's first array ``first``, or None if the array is the first one.
    """

    name: str  # name of its arrays
    view: Callable  # (name, array, like, first) -> the NumPy or CuPy array; TypeError if there is none
    view_out: Callable  # (name, array, like, first) -> the same for an array that the call may write
    around: Callable | None  # (name, first) -> the context of the whole call, if it needs one
    empty: Callable | None  # (shape, dtype, like) -> an array for a result, if it needs special memory
    returned: Callable  # (result, out, first) -> the caller's result: ``out``, or this library's array


def library_name(array):
    """The name of an array's class in ``_CLASSES``, or None. It imports nothing."""
    for name, (module, kind) in _CLASSES.items():
        kind = getattr(
            sys.modules.get(module), kind, None
        )  # the class is missing while another thread imports the module
        if kind is not None and isinstance(array, kind):
            return name
    return None


def _dlpack_device(array):
    """DLPack's device type of a value; None if it has none."""
    try:
        return array.__dlpack_device__()[0] if hasattr(type(array), "__dlpack_device__") else None
    except Exception:  # a value that raises here has no device type
        return None


def _is_on_cuda(array):
    """Whether a value is an array, of any library, in the memory of a CUDA device."""
    if hasattr(type(array), "__dlpack_device__"):
        return _dlpack_device(array) in _DLPACK_CUDA
    return hasattr(type(array), "__cuda_array_interface__")


def _has_axes(array):
    """Whether a value is a buffer with more than one axis."""
    try:
        return memoryview(array).ndim > 1
    except TypeError:
        return False


def _remedy(library, name, array):
    """The end of an error about a value of an unknown class: the call that makes it an array."""
    if library != "numpy.ndarray" or name.startswith("out"):  # a result written to a copy would be lost
        return ""
    if hasattr(type(array), "__dlpack__") and _dlpack_device(array) == _DLPACK_CPU:
        return ": numpy.from_dlpack makes it one"
    if (
        isinstance(array, list)
        or _has_axes(array)
        or any(hasattr(type(array), protocol) for protocol in ("__array__", "__array_interface__"))
    ):
        return ": numpy.asarray makes it one"
    return ""


def check_cupy(name, kind):
    """Check that CuPy is installed for the array ``name``, which is on a GPU."""
    if "cupy" not in sys.modules and find_spec("cupy") is None:
        raise ImportError(f"{name} is on a GPU, a {kind}, which takes CuPy: pip install 'cupy-cuda13x[ctk]'")


def refuse_rocm(name, package):
    """Raise the error for the array ``name`` of a package that was built for AMD's GPUs."""
    raise TypeError(f"{name} must be on the CPU or on an NVIDIA GPU, but this {package} is for ROCm")


def refuse(library, name, array, like):
    """Raise the error for an array of another library. ``like`` is the name of the call's first array, or None."""
    kind = type(array)
    known = library_name(array)
    if known is None and not _is_on_cuda(array):
        raise TypeError(f"{name} must be a {library}, not {kind.__name__}{_remedy(library, name, array)}")
    known = known or f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
    if like is None:
        check_cupy(name, known)
        raise TypeError(f"{name} must be a cupy.ndarray, not a {known}: cupy.from_dlpack makes it one")
    raise TypeError(f"{name} must be a {library} like {like}, not a {known}")
