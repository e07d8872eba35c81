"""A call of one of the functions: checked and planned, or remembered, and then run.

All of a call that does not depend on the contents of its arrays is kept for the next call like it: that it is legal,
the shape of its result, how a kernel views its arrays, and its plan.
"""

from typing import Any, NamedTuple

import numpy as np

from . import arguments, cpu
from ._repeat import TooLittleMemory, are_apart, call_key
from .arrays import NUMPY, Foreign, Library, is_addressable, library_of, reach
from .bounded import Bounded, counted
from .default_algorithm import on_change
from .dtypes import lookup
from .problem import DGRAD, FPROP, WGRAD

#: Calls that were carried out, by all that they depend on, as many as bounded.MOST_BYTES have room for.
_KNOWN = Bounded()

_NO_ARRAY = np.empty(0)


class Known(NamedTuple):
    """A call, wherever its arrays are."""

    library: Library
    shape: tuple  # of the result
    copied: bool  # an input lies in memory as no kernel can read it
    work: Any  # with a method run(*arrays), on a CPU run(first, second, result, before=None): see _repeat.Work
    reaches: tuple = ()  # of the arrays, inputs before results; of CuPy's alone


def remembered(key):
    """What is kept under a key, or None."""
    return _KNOWN.get(key)


def remember(key, known):
    """Keep a call, whose work this thread prepared last, under its key; None is the key of those that are not kept."""
    size = counted()
    if key is not None:
        _KNOWN.keep(key, known, size)


def forget():
    """Let the next calls be checked and planned anew, where what decides about plans has been changed."""
    _KNOWN.clear()


on_change(forget)


def gpu_key(function, arrays, asked, keywords):
    """What ``call_key`` is for NumPy arrays, for those of CuPy."""
    words = call_key(function, _NO_ARRAY, _NO_ARRAY, None, asked, keywords, 0)
    if words is None:
        return None
    key, kind = [words], type(arrays[0])
    for array in arrays:
        if type(array) is kind:
            data = array.data
            key.append((array.dtype, array.shape, array.strides, data.ptr % 16, data.device_id))
        elif array is None:
            key.append(None)
        else:
            return None
    return tuple(key)


def are_apart_on_gpu(reaches, arrays, inputs):
    """What ``are_apart`` is for NumPy arrays: whether each result is clearly somewhere else than all before it.

    The results come after so many ``inputs``; None stands for one that is new, and so is nowhere else.
    """
    for i in range(inputs, len(arrays)):
        result = arrays[i]
        if result is not None:
            address, (before, behind) = result.data.ptr, reaches[i]
            begin, end = address - before, address + behind
            for other, (before, behind) in zip(arrays[:i], reaches, strict=False):
                if other is not None:
                    address = other.data.ptr
                    if begin < address + behind and address - before < end:
                        return False
    return True


def part_of(function, geometry):
    """The operation, the geometry, and the places of x, w and y among the call's two inputs and its result."""
    names = (function.first, function.second)
    places = [names.index(part) if part in names else 2 for part in geometry.parts]
    return (DGRAD, WGRAD, FPROP)[places.index(2)], geometry, places


def checked(library, function, first, second, asked, keywords):
    """The geometry of a call, if it is legal and an algorithm that it asks for by name can compute it."""
    geometry = arguments.geometry_of(library, function, first, second, asked, keywords)
    if geometry.algorithm == "winograd":
        operation, *_ = part_of(function, geometry)
        reason = cpu.refusal(operation, geometry.problem, geometry.dtype)
        if reason is not None:
            raise ValueError(f"algorithm must be 'auto' or 'direct' for {reason}, not 'winograd'")
    return geometry


def tensors_of(geometry, places, seen):
    """The six-dimensional views of x, w and y, which have these places among a call's arrays."""
    views = zip(places, geometry.views, strict=True)
    return [seen[place].transpose(order).reshape(shape) for place, (order, shape) in views]


def prepare(library, parts, arrays):
    """The work of a call on these arrays, inputs before results; a GPU takes several parts at a time."""
    counted()  # what was counted before belongs to no call
    seen = [library.seen(array) for array in arrays]
    viewed = [(*part, tensors_of(*part[1:], seen)) for part in parts]
    if library is NUMPY:
        ((operation, geometry, places, tensors),) = viewed
        return cpu.prepare(operation, geometry.problem, geometry.dtype, geometry.algorithm, places, tensors)
    from . import gpu

    return gpu.prepare(viewed, len(arrays), arrays[0].data.device_id)


def _foreign(library, function, first, second, asked, keywords, out):
    """A call with the arrays of a library that NumPy or CuPy sees: as such it is checked, remembered and run."""
    one = library.view(function.first, first, None, first)
    other = library.view(function.second, second, function.first, first)
    target = None if out is None else library.view_out("out", out, function.first, first)
    return library.returned(call(function, one, other, asked, keywords, target, library.empty), out, first)


def too_little(function, shape, dtype, error):
    """The exception for a call of which some part found no memory, in the words of an ``error``."""
    asked, said = f"a result of shape {shape} and dtype {lookup(dtype).name}", str(error)
    return TooLittleMemory(f"{function.name} needs more memory than there is for {asked}{said and f': {said}'}")


def nothing():
    """What a call does before it writes into the caller's array, so that all its memory is there by then."""


def call(function, first, second, asked, keywords, out, empty=None, before=None):
    """Run one of the functions of ``arguments`` and return its result.

    ``asked`` has the values of the keywords that only this function has, ``keywords`` those of ``keywords.Options``. A
    refused call has allocated no result and has not touched ``out``. ``empty`` makes a result in the place of the
    library's own. On a CPU, ``before`` is called when all memory of this call is there and nothing is written yet.
    """
    key = call_key(function, first, second, out, asked, keywords, cpu.threads())
    known = _KNOWN.get(key)
    if known is None:
        library = library_of(function.first, first)
        if type(library) is Foreign:
            if library.around is None:
                return _foreign(library, function, first, second, asked, keywords, out)
            with library.around(function.first, first):
                return _foreign(library, function, first, second, asked, keywords, out)
        if library is not NUMPY:
            key = gpu_key(function, (first, second, out), asked, keywords)
            known = _KNOWN.get(key)
    if known is None:
        plain = library.plain(function.first, first, None), library.plain(function.second, second, function.first)
        if plain[0] is not first or plain[1] is not second:
            return call(function, *plain, asked, keywords, out, empty, before)
        library.check_device(function.second, second, function.first, first)
        if library is NUMPY:  # an integer's __index__ may give the caller's arrays another shape, but not these
            first, second = first.view(), second.view()
        geometry = checked(library, function, first, second, asked, keywords)
        copied = not (is_addressable(library.seen(first)) and is_addressable(library.seen(second)))
        known = Known(library, geometry.shape, copied, None)
    library, shape, copied, work, reaches = known
    try:
        if out is None:
            target = out = (empty or library.empty)(shape, first.dtype, first)
        else:
            target = (
                out if work is not None else arguments.checked_out(library, "out", function.first, first, out, shape)
            )
            if library is NUMPY:
                apart, before = are_apart(target, first, second), before or nothing
            else:
                reaches = reaches or (reach(first), reach(second), reach(target))
                apart = are_apart_on_gpu(reaches, (first, second, target), 2)
            if not apart:  # of what was checked, this alone may be new
                seen = library.seen(target)
                arguments.check_no_overlap("out", seen, function.first, library.seen(first))
                arguments.check_no_overlap("out", seen, function.second, library.seen(second))
        if copied:
            first, second = [
                array if is_addressable(library.seen(array)) else library.copy(array) for array in (first, second)
            ]
        if work is None:
            if target.size == 0:
                if before is not None:
                    before()
                return out
            work = prepare(library, [part_of(function, geometry)], (first, second, target))
            remember(key, Known(library, shape, copied, work, reaches))
        if before is None:
            work.run(first, second, target)
        else:
            work.run(first, second, target, before)
        return out
    except MemoryError as error:
        if library is not NUMPY or type(error) is TooLittleMemory:  # CuPy's has its own words; the other has these
            raise
        raise too_little(function, shape, first.dtype, error) from error
