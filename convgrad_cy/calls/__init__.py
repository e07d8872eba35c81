"""A call of one of the functions: looked up, or checked and prepared, and then run.

A call has one part for each of its results. Everything that does not depend on the contents of its arrays is kept for
the next call with the same key: the fact that it is legal, the shapes of its results, the kernels' views of its arrays,
and its plans.
"""

from contextlib import nullcontext

from .. import cpu
from .._repeat import are_apart, call_key, new_array
from ..arrays import NUMPY, Foreign, library_of
from ..checks import functions
from ..cpu import threads
from ..memo.bounded import Bounded, counted
from ..settings.algorithm import on_change
from .prepared import are_apart_on_gpu, gpu_key, on_cpu, on_gpu, part_of, too_little

#: Key of a call -> its prepared form, limited to bounded.MOST_BYTES. The key holds everything that plans depend on.
_KNOWN = Bounded()


def forget():
    """Drop all prepared calls. The caller has changed a setting that plans depend on."""
    _KNOWN.clear()


on_change(forget)


def call(function, first, second, asked, keywords, out, empty=new_array):
    """Run one of the functions of ``checks.functions`` and return its result.

    ``asked`` has the values of the keywords that only this function has, ``keywords`` has the fields of
    ``keywords.Options``. A refused call has allocated no result and has not touched ``out``. ``empty`` allocates the
    result; its default stands for the library's own memory.
    """
    number = threads()  # read once: the key and the plan must use the same number
    key = call_key(function, first, second, out, asked, keywords, number)
    found = _KNOWN.get(key)
    if found is not None and (out is None or are_apart(out, first, second)):
        return found.run(first, second, out, None, empty)  # everything above costs about as much as a small call
    library = library_of(function.names[0], first)
    if type(library) is Foreign:
        if library.around is None:
            return _foreign(library, function, first, second, asked, keywords, out)
        with library.around(function.names[0], first):
            return _foreign(library, function, first, second, asked, keywords, out)
    if library is not NUMPY:
        operands = first, second, out
        key = gpu_key(function, operands, asked, keywords)
        found = _KNOWN.get(key)
        if found is not None and (out is None or are_apart_on_gpu(found.reaches, operands, 2)):
            return found.run(first, second, out, None, empty)
    found, (first, second), (target,) = _legal(
        library, key, found, function, (first, second), asked, keywords, (out,), number
    )
    result = found.run(first, second, target, None, empty)
    return result if out is None else out


def _foreign(library, function, first, second, asked, keywords, out):
    """Run a call on a foreign library's arrays: check, remember and run it with their NumPy or CuPy views."""
    like, name = function.names
    one, other = library.view(like, first, None, first), library.view(name, second, like, first)
    target = None if out is None else library.view_out("out", out, like, first)
    return library.returned(call(function, one, other, asked, keywords, target, library.empty or new_array), out, first)


def call_several(function, arrays, asked, keywords, outs, empty=new_array):
    """Run a function with several results and return them; each of ``outs`` is an array, or None for a new one.

    ``asked`` and ``keywords`` have the same meaning as in ``call``.
    """
    library = library_of(function.names[0], arrays[0])
    if type(library) is Foreign:
        with nullcontext() if library.around is None else library.around(function.names[0], arrays[0]):
            return _foreign_several(library, function, arrays, asked, keywords, outs)
    number = threads()
    key, found = _lookup(library, function, arrays, asked, keywords, outs, number)
    found, arrays, targets = _legal(library, key, found, function, arrays, asked, keywords, outs, number)
    results = found.results(arrays, targets, empty)
    return [result if out is None else out for result, out in zip(results, outs, strict=True)]


def _foreign_several(library, function, arrays, asked, keywords, outs):
    """Run a call with several results on a foreign library's arrays, like ``_foreign``."""
    like, first = function.names[0], arrays[0]
    seen = [
        library.view(name, array, like if i else None, first)
        for i, (name, array) in enumerate(zip(function.names, arrays, strict=True))
    ]
    targets = [
        None if out is None else library.view_out(name, out, like, first)
        for name, out in zip(functions.names_of_outs(outs), outs, strict=True)
    ]
    made = call_several(function, seen, asked, keywords, targets, library.empty or new_array)
    return [library.returned(result, out, first) for result, out in zip(made, outs, strict=True)]


def _legal(library, key, found, function, arrays, asked, keywords, outs, number):
    """Return the prepared form of a legal call, and its arrays and ``outs`` without their subclasses.

    ``library`` is NumPy or CuPy. ``found`` is the prepared form that was kept under ``key``, or None.
    """
    if found is not None and found.are_apart(arrays, outs):
        return found, arrays, outs
    names = function.names
    if found is None:
        likes = (None, *names[:1] * len(names))
        plain = [library.plain(*named) for named in zip(names, arrays, likes, strict=False)]
        if any(one is not other for one, other in zip(plain, arrays, strict=True)):
            arrays = plain
            key, found = _lookup(library, function, arrays, asked, keywords, outs, number)
    if found is None:
        return _checked(key, library, function, arrays, asked, keywords, outs, number)
    # The key covers all other checks; only the memory of these outs is new.
    return found, arrays, functions.checked_outs(library, names, arrays, outs, found.shapes)


def _lookup(library, function, arrays, asked, keywords, outs, number):
    """The key of a call with ``number`` threads, or None if it has no key, and the prepared form kept under it."""
    if library is not NUMPY:
        key = gpu_key(function, (*arrays, *outs), asked, keywords)
        return key, _KNOWN.get(key)
    keys = [
        call_key(part, arrays[first], arrays[second], out, asked, keywords, number)
        for (part, first, second, _), out in zip(function.parts, outs, strict=True)
    ]
    key = None if None in keys else keys[0] if len(keys) == 1 else tuple(keys)
    return key, _KNOWN.get(key)


def _checked(key, library, function, arrays, asked, keywords, outs, number):
    """Check and prepare a call with a new key, and keep the prepared form."""
    names, generation = function.names, _KNOWN.generation
    for name, array in zip(names[1:], arrays[1:], strict=True):
        library.check_device(name, array, names[0], arrays[0])
    if library is NUMPY:  # a keyword's __index__ may reshape the caller's arrays, but not these views
        arrays = [array.view() for array in arrays]
    geometries = geometries_of(library, function, arrays, asked, keywords)
    shapes = [geometry.shape for geometry in geometries]
    targets = functions.checked_outs(library, names, arrays, outs, shapes)
    counted()  # earlier counts of this thread belong to no call
    if library is NUMPY:
        found = on_cpu(function.parts, geometries, arrays, targets, number)
    else:
        found = on_gpu(function.parts, geometries, arrays, targets)
    if key is not None and not any(0 in shape for shape in shapes):
        _KNOWN.keep(key, found, counted(), generation)
    return found, arrays, targets


def geometries_of(library, function, arrays, asked, keywords):
    """The geometry of each part of a call, if all are legal."""
    # On a CPU the last part runs first, so it is checked first. A call that is legal for the filter's gradient is legal
    # for the data gradient, too.
    order, geometries = -1 if library is NUMPY else 1, []
    for part, first, second, like in function.parts[::order]:
        own = asked if like is None else (*asked, arrays[like].shape, f"{function.names[like]}.shape")
        geometries.append(checked(library, part, arrays[first], arrays[second], own, keywords))
    return geometries[::order]


def checked(library, function, first, second, asked, keywords):
    """The geometry of a part, if the part is legal and the algorithm that it names can compute it."""
    geometry = functions.geometry_of(library, function, first, second, asked, keywords)
    if geometry.algorithm == "winograd":
        operation, *_ = part_of(function, geometry)
        try:
            reason = cpu.winograd_refusal(operation, geometry.problem, geometry.dtype)
        except MemoryError as error:
            raise too_little(function, geometry.shape, first.dtype, error) from error
        if reason is not None:
            raise ValueError(f"algorithm must be 'auto' or 'direct' for {reason}, not 'winograd'")
    return geometry
