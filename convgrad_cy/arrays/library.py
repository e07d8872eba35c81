"""What is asked of an array library, whose arrays are whose, and what is said of an array of another one."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

#: DLPack's numbers of memory: the CPU's; a CUDA device's own, and managed.
_DLPACK_CPU, _DLPACK_CUDA = 1, (2, 13)

#: Name of a library's arrays -> its module and the class in it.
_CLASSES = {name: name.split(".") for name in ("numpy.ndarray", "cupy.ndarray", "torch.Tensor", "jax.Array")}


class Library(NamedTuple):
    """A library on whose arrays the kernels work, and what validation needs of it."""

    name: str  # of its arrays
    algorithms: tuple  # that its kernels have
    plain: Callable  # (name, array, like) -> the array without its subclass; TypeError if it is not this library's
    empty: Callable  # (shape, dtype, like) -> a new array, C-contiguous, on the device of another one
    zeros: Callable  # (shape, dtype, like) -> the same, of zeros, in the machine's byte order
    copy: Callable  # (array) -> a new array that kernels can read, C-contiguous
    check_device: Callable  # (name, array, like, first) -> TypeError if the array is on another device than the first
    seen: Callable  # (array) -> a NumPy array of its shape, strides and address, whose memory must not be touched


class Foreign(NamedTuple):
    """A library whose arrays are seen as NumPy's or CuPy's in the same memory, for a call of those.

    ``like`` is the name of the call's array ``first``, and None for that one itself.
    """

    name: str  # of its arrays
    view: Callable  # (name, array, like, first) -> the array so seen; TypeError if that cannot be
    view_out: Callable  # the same of an array that the call may write
    around: Callable | None  # (name, first) -> the context in which all of the call is done, if it takes one
    empty: Callable | None  # (shape, dtype, like) -> memory for a result on a CPU, where not any will do
    returned: Callable  # (result, out, first) -> what the caller gets: ``out``, or this library's array of the result


def library_name(array):
    """The name of the arrays to which this one belongs, or None; imports nothing."""
    for name, (module, kind) in _CLASSES.items():
        kind = getattr(sys.modules.get(module), kind, None)  # there is none while another thread imports the module
        if kind is not None and isinstance(array, kind):
            return name
    return None


def _dlpack_device(array):
    """DLPack's number of the memory that something is in; None if it does not say."""
    try:
        return array.__dlpack_device__()[0] if hasattr(type(array), "__dlpack_device__") else None
    except Exception:  # whatever it is, it does not say so
        return None


def _is_on_cuda(array):
    """Whether something is an array, of any library, in the memory of a CUDA device."""
    if hasattr(type(array), "__dlpack_device__"):
        return _dlpack_device(array) in _DLPACK_CUDA
    return hasattr(type(array), "__cuda_array_interface__")


def _has_axes(array):
    """Whether something is a buffer that has the shape of an array."""
    try:
        return memoryview(array).ndim > 1
    except TypeError:
        return False


def _remedy(library, name, array):
    """How something that no library here has becomes an array, to be put behind what is wrong."""
    if library != "numpy.ndarray" or name.startswith("out"):  # what is written to a copy would be lost
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
    """An array on a GPU, called ``name``, takes CuPy."""
    if "cupy" not in sys.modules and find_spec("cupy") is None:
        raise ImportError(f"{name} is on a GPU, a {kind}, which takes CuPy: pip install 'convgrad_cy[cuda13]'")


def refuse(library, name, array, like):
    """Say what is wrong with an array that is none of this library; ``like`` is the name of the call's first array."""
    kind = type(array)
    known = library_name(array)
    if known is None and not _is_on_cuda(array):
        raise TypeError(f"{name} must be a {library}, not {kind.__name__}{_remedy(library, name, array)}")
    known = known or f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
    if like is None:
        check_cupy(name, known)
        raise TypeError(f"{name} must be a cupy.ndarray, not a {known}: cupy.from_dlpack makes it one")
    raise TypeError(f"{name} must be a {library} like {like}, not a {known}")
