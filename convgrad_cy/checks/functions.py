"""The functions as validation sees them, and the checks of their arrays and keywords.

Each function describes one convolution ``y = conv(x, w)`` and asks for one of its three tensors from the other two.
From here down ``x``, ``w`` and ``y`` are the tensors of that convolution. A transposed convolution is its data
gradient, so the input of the transposed convolution is ``y`` and its output is ``x``. The core's errors are raised here
and in ``geometry``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ..arrays import is_addressable, overlap, overlaps_itself
from ..dtypes import check_same
from . import geometry
from .keywords import Options


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function with one result: the names of the two arrays that it takes, and its geometry."""

    names: tuple
    geometry: Callable  # it has the name of the function

    @property
    def name(self):
        return self.geometry.__name__

    @property
    def parts(self):
        return (OneResult(self, 0, 1),)


CONV = Function(("x", "w"), geometry.conv)
CONV_BACKWARD_DATA = Function(("dy", "w"), geometry.conv_backward_data)
CONV_BACKWARD_FILTER = Function(("x", "dy"), geometry.conv_backward_filter)
CONV_TRANSPOSE = Function(("x", "w"), geometry.conv_transpose)
CONV_TRANSPOSE_BACKWARD_DATA = Function(("dy", "w"), geometry.conv_transpose_backward_data)
CONV_TRANSPOSE_BACKWARD_FILTER = Function(("x", "dy"), geometry.conv_transpose_backward_filter)


class OneResult(NamedTuple):
    """One result of a function: the function with this result alone, and the indices of the arrays that it takes."""

    function: Function
    first: int  # index of its first array among the call's
    second: int
    like: int | None = None  # index of the array that has the result's shape; None for the only result of a call


@dataclass(frozen=True, slots=True, eq=False)
class Several:
    """A function with several results: the names of its arrays, and a part for each result."""

    names: tuple
    parts: tuple


def _both(data, filter):
    """The two gradients as one function."""
    return Several(("dy", "x", "w"), (OneResult(data, 0, 2, like=1), OneResult(filter, 1, 0, like=2)))


CONV_BACKWARD = _both(CONV_BACKWARD_DATA, CONV_BACKWARD_FILTER)
CONV_TRANSPOSE_BACKWARD = _both(CONV_TRANSPOSE_BACKWARD_DATA, CONV_TRANSPOSE_BACKWARD_FILTER)


def names_of_outs(outs):
    """The names of the arrays that take a call's results."""
    return ["out"] if len(outs) == 1 else [f"out[{i}]" for i in range(len(outs))]


def geometry_of(library, function, first, second, asked, keywords):
    """The geometry of a call, if it is legal. ``out`` is not checked here."""
    names = function.names
    common = geometry.common(names[0], first, names[1], second, Options(*keywords))
    if common.algorithm not in library.algorithms:
        allowed = " or ".join(map(repr, library.algorithms))
        raise ValueError(f"algorithm must be {allowed} for a {library.name}, not {common.algorithm!r}")
    arrays = (names[0], first.shape), (names[1], second.shape)
    try:
        return function.geometry(common, *arrays, *asked)
    except ValueError as error:
        formats = _legal_formats(common, function, arrays, asked)
        if formats is None:
            raise
        hint = " and ".join(f"{name}={value!r}" for name, value in formats.items())
        raise ValueError(f"{error}; is it {hint}?") from error


def _legal_formats(common, function, arrays, asked):
    """The fewest other format keywords with which the shapes of a refused call are legal, or None."""
    for formats, other in common.other_formats():
        try:
            function.geometry(other, *arrays, *asked)
        except (TypeError, ValueError):
            continue
        return formats
    return None


def checked_out(library, name, like, first, out, shape):
    """``out`` without its subclass, if it is like a new result and writeable. Errors call it ``name``.

    ``like`` is the name of the call's array ``first``.
    """
    plain = library.plain(name, out, like)
    library.check_device(name, plain, like, first)
    check_same(name, plain.dtype, like, first.dtype)
    if not plain.dtype.isnative:
        raise TypeError(f"{name} must be in the machine's own byte order, not of the dtype {plain.dtype}")
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
        raise ValueError(f"{name} must not overlap itself, but has strides {plain.strides}")
    return plain


def check_no_overlap(name, out, other, array):
    """Check that two arrays, seen as NumPy arrays, share no element. Errors call them ``name`` and ``other``."""
    if overlap(out, array):
        raise ValueError(f"{name} must not overlap {other} in memory")


def checked_outs(library, names, arrays, outs, shapes):
    """``outs`` without their subclasses, if each is like a new result and shares no memory with an array before it.

    ``names`` are the names of the call's ``arrays``.
    """
    others, checked = [*zip(names, arrays, strict=True)], []
    for i, (out, shape) in enumerate(zip(outs, shapes, strict=True)):
        if out is not None:
            name = names_of_outs(outs)[i]
            out = checked_out(library, name, names[0], arrays[0], out, shape)
            for other, array in others:
                check_no_overlap(name, library.seen(out), other, library.seen(array))
            others.append((name, out))
        checked.append(out)
    return checked
