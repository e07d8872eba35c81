"""A call of one of the six functions: checked and planned, or remembered, and then run.

All of a call that does not depend on the contents of its arrays is kept for the next call like it: that it is legal,
the shape of its result, how a kernel views its arrays, and its plan.
"""

from typing import NamedTuple

from . import arguments, cpu
from ._repeat import Work, call_key
from .arrays import Library, is_addressable, library_of
from .plan import DGRAD, FPROP, WGRAD

#: Calls that were carried out, by all that they depend on; emptied when there are so many.
_KNOWN = {}
_MOST_KNOWN = 2048


class Known(NamedTuple):
    """A call, wherever its arrays are."""

    library: Library
    shape: tuple  # of the result
    copied: bool  # an input lies in memory as no kernel can read it
    work: Work


def _prepare(function, geometry, arrays):
    """The work of a call on these two inputs and this result."""
    names = (function.first, function.second)
    places = [names.index(part) if part in names else 2 for part in geometry.parts]
    tensors = [
        arrays[place].transpose(order).reshape(shape)
        for place, (order, shape) in zip(places, geometry.views, strict=True)
    ]
    operation = (DGRAD, WGRAD, FPROP)[places.index(2)]
    return cpu.prepare(operation, geometry.problem, geometry.dtype, geometry.algorithm, places, tensors)


def call(function, first, second, asked, keywords, out):
    """Run one of the functions of ``arguments`` and return its result.

    ``asked`` has the values of the keywords that only this function has, ``keywords`` those of ``keywords.Options``. A
    refused call has allocated no result and has not touched ``out``.
    """
    key = call_key(function, first, second, out, asked, keywords, cpu.threads())
    known = _KNOWN.get(key)
    if known is None:
        library = library_of(function.first, first)
        plain = library.plain(function.first, first), library.plain(function.second, second)
        if plain[0] is not first or plain[1] is not second:
            return call(function, *plain, asked, keywords, out)
        geometry = arguments.geometry_of(function, first, second, asked, keywords)
        known = Known(library, geometry.shape, not (is_addressable(first) and is_addressable(second)), None)
    library, shape, copied, work = known
    if out is None:
        target = out = library.empty(shape, first.dtype)
    else:
        target = arguments.checked_out(library, function, first, out, shape) if work is None else out
        arguments.check_no_overlap(library, function, first, second, target)
    if copied:
        first, second = [array if is_addressable(array) else library.copy(array) for array in (first, second)]
    if work is None:
        if target.size == 0:
            return out
        work = _prepare(function, geometry, (first, second, target))
        if key is not None:
            if len(_KNOWN) >= _MOST_KNOWN:
                _KNOWN.clear()
            _KNOWN[key] = known._replace(work=work)
    work.run(first, second, target)
    return out
