"""The functions as validation sees them, and the checks of their arrays and keywords.

Each function describes one convolution ``y = conv(x, w)`` and asks for one of its three tensors from the other two.
From here down ``x``, ``w`` and ``y`` are those of that convolution: a transposed convolution is its data gradient,
so its own input stands in the place of ``y`` and its own output in the place of ``x``. The core's errors are raised
here and in ``geometry``.
"""

from collections.abc import Callable
from dataclasses import dataclass

from . import geometry
from .arrays import is_addressable, overlap, overlaps_itself
from .dtypes import check_same
from .keywords import Options


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """One of the six: the names of the two arrays that it takes, and its geometry."""

    first: str
    second: str
    geometry: Callable  # of the function's name

    @property
    def name(self):
        return self.geometry.__name__


CONV = Function("x", "w", geometry.conv)
CONV_BACKWARD_DATA = Function("dy", "w", geometry.conv_backward_data)
CONV_BACKWARD_FILTER = Function("x", "dy", geometry.conv_backward_filter)
CONV_TRANSPOSE = Function("x", "w", geometry.conv_transpose)
CONV_TRANSPOSE_BACKWARD_DATA = Function("dy", "w", geometry.conv_transpose_backward_data)
CONV_TRANSPOSE_BACKWARD_FILTER = Function("x", "dy", geometry.conv_transpose_backward_filter)


def geometry_of(library, function, first, second, asked, keywords):
    """The geometry of a call, if it is legal; ``out`` is not looked at."""
    common = geometry.common(function.first, first, function.second, second, Options(*keywords))
    if common.algorithm not in library.algorithms:
        allowed = " or ".join(map(repr, library.algorithms))
        raise ValueError(f"algorithm must be {allowed} for a {library.name}, not {common.algorithm!r}")
    return function.geometry(common, (function.first, first.shape), (function.second, second.shape), *asked)


def checked_out(library, name, like, first, out, shape):
    """``out``, called ``name``, without its subclass, if it is such as the result would be and can be written.

    ``like`` is the name of the call's array ``first``.
    """
    plain = library.plain(name, out, like)
    library.check_device(name, plain, like, first)
    check_same(name, plain.dtype, like, first.dtype)
    if plain.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, not {plain.shape}")
    seen = library.seen(plain)
    if not seen.flags.writeable:
        raise ValueError(f"{name} must be writeable, not a read-only array")
    if not is_addressable(seen):
        raise ValueError(
            f"{name} must be aligned to its itemsize {plain.itemsize}, not have the strides {plain.strides}"
        )
    if overlaps_itself(seen):
        raise ValueError(f"{name} must have one place for each element, not the strides {plain.strides}")
    return plain


def check_no_overlap(name, out, other, array):
    """``out``, called ``name``, may share no element with the array called ``other``; both as the library sees them."""
    if overlap(out, array):
        raise ValueError(f"{name} must not overlap {other} in memory")
