"""``explain``: the plan of a call on a CPU, without computing it."""

from typing import NamedTuple

import numpy as np

from . import calls, cpu
from .arrays import NUMPY
from .calls import prepared
from .checks import functions
from .checks.keywords import Options, closest
from .checks.untouched import is_array, stored, untouched

_OUTPUT = {"output_padding": None, "output_shape": None}

#: Name -> function, and the keywords that only this function has with their defaults; None if it must be given.
_FUNCTIONS = {
    "conv": (functions.CONV, {}),
    "conv_backward_data": (functions.CONV_BACKWARD_DATA, {"x_shape": None}),
    "conv_backward_filter": (functions.CONV_BACKWARD_FILTER, {"w_shape": None}),
    "conv_transpose": (functions.CONV_TRANSPOSE, _OUTPUT),
    "conv_transpose_backward_data": (functions.CONV_TRANSPOSE_BACKWARD_DATA, _OUTPUT),
    "conv_transpose_backward_filter": (functions.CONV_TRANSPOSE_BACKWARD_FILTER, _OUTPUT | {"w_shape": None}),
}
#: The functions with one result.
FUNCTIONS = tuple(_FUNCTIONS)

_PAIRS = {
    "conv_backward": (functions.CONV_BACKWARD, {}),
    "conv_transpose_backward": (functions.CONV_TRANSPOSE_BACKWARD, _OUTPUT),
}
_ALL = _FUNCTIONS | _PAIRS

#: Names of keywords in other libraries whose letters are too different from ours for ``closest``.
_ELSEWHERE = {
    "pads": "padding", "rate": "dilation", "rates": "dilation", "rhs_dilation": "dilation",
    "window_strides": "stride", "feature_group_count": "groups", "layout": "data_format",
    "input_shape": "x_shape", "input_size": "x_shape", "input_sizes": "x_shape",
    "filter_shape": "w_shape", "filter_sizes": "w_shape", "weight_size": "w_shape", "kernel_shape": "w_shape",
}  # fmt: skip


def _print(explanation, printer, cycle):
    """Print an explanation as its report, in IPython and notebooks."""
    printer.text(str(explanation))


def _nothing(shape):
    """The reason why no family is asked."""
    return "nothing to compute" if 0 in shape else "nothing to compute: no sum has a term, so the result is zeros"


class Explanation(NamedTuple):
    """The plan of a call. ``str`` makes a report of it.

    Attributes
    ----------
    function : str
    shape : tuple
        Shape of the result.
    dtype : str
    declined : tuple
        Pairs of a family that does not compute the call, and its reason, in the order in which families are asked.
    family : str or None
        The family that computes the call; None where the result or a sum is empty.
    details : dict
        Name -> value in the plan, such as ``tasks`` and ``threads``. The bytes of scratch memory are an estimate of the
        memory that all threads share; each thread has its own window and sums in addition.
    """

    function: str
    shape: tuple
    dtype: str
    declined: tuple
    family: str | None
    details: dict

    def __str__(self):
        lines = [f"{self.function} -> {self.dtype}, {' x '.join(map(str, self.shape))}"]
        lines += [f"rejected: {family} ({reason})" for family, reason in self.declined]
        lines.append(f"chosen: {self.family}" if self.family else _nothing(self.shape))
        for name, value in self.details.items():
            several = isinstance(value, list) and all(isinstance(each, str) for each in value)
            lines += [f"  {name}: {each}" for each in (value if several else [value]) if each is not None]
        return "\n".join(lines)

    _repr_pretty_ = _print


class Explanations(NamedTuple):
    """The explanations of a call with two results, which are computed one after the other. ``str`` makes a report.

    Attributes
    ----------
    dx, dw : Explanation
        The explanation of the function that has this result alone.
    """

    dx: Explanation
    dw: Explanation

    def __str__(self):
        return "\n".join(map(str, self))

    _repr_pretty_ = _print


def explain(function, shapes, dtype=None, **keywords):
    """Explain how this machine's CPU would compute a call, with the number of threads that a call would have now.

    Nothing is computed, and no memory of the arrays is touched.

    Parameters
    ----------
    function : str or callable
        One of the functions, such as `conv_backward_data`, or its name.
    shapes : sequence
        A shape or an array of any library for each of the function's arrays, in the order of its arguments. Arrays of
        NumPy, CuPy and PyTorch are explained with their strides. All others are taken to be contiguous.
    dtype : str or dtype, optional
        The type of the elements; "bfloat16" needs no package. The default is the type of the arrays, or "float32"
        where only shapes are given.
    **keywords : object
        The other arguments of the function, except `out`: `x_shape`, `stride`, `padding` and so on.

    Returns
    -------
    Explanation or Explanations
        The family that computes the call, the reasons why the families before it decline, and the plan. ``print`` shows
        it. For `conv_backward` and `conv_transpose_backward` it is a tuple ``(dx, dw)`` of explanations.

    Raises
    ------
    TypeError
        An argument of the wrong type, or a keyword that the function does not have.
    ValueError
        An unknown function, or a call that the function itself would refuse.

    See Also
    --------
    conv, conv_backward_data, conv_backward_filter, conv_backward
    conv_transpose, conv_transpose_backward_data, conv_transpose_backward_filter, conv_transpose_backward

    Notes
    -----
    An explanation takes about as long as the plan of a first call: milliseconds, and less than 50 of them. A data
    gradient has a part for each stride phase that a tap of the filter reaches. If there are thousands of phases, each
    takes up to 5 microseconds more; with more than 262,144 phases, most geometries are refused. A filter gradient with
    millions of taps is cut into blocks of taps, and each tap takes up to 20 nanoseconds more.

    Examples
    --------
    >>> import convgrad_cy as cg
    >>> found = cg.explain("conv", [(1, 2, 9), (4, 2, 3)], padding=1)
    >>> found.family, found.shape
    ('direct', (1, 4, 9))
    >>> for family, reason in found.declined:
    ...     print(f"{family}: {reason}")
    columns: the operation is no data gradient
    overlaps: the operation is no data gradient
    long_sums: a sum has fewer than 4096 terms
    exchanged: the filter is not larger than y
    winograd: there are fewer than 2000000 products
    small_groups: there is one group
    """
    found = [_explained(*part) for part in _parts(function, shapes, dtype, keywords)]
    return found[0] if len(found) == 1 else Explanations(*found)


def tasks(function, shapes, dtype=None, **keywords):
    """The ``Task`` of each result of a call on this machine's CPU. The arguments are the same as in `explain`.

    Benchmarks use it to plan and run one call in several ways.
    """
    parts = _parts(function, shapes, dtype, keywords)
    return [cpu.task_of(*prepared.cpu_arguments(*part)) for part in parts]


def gpu_tasks(function, shapes, dtype, devices, **keywords):
    """The ``gpu.Task`` of each result of a call that has terms, on each of these ``gpu.Device``s."""
    parts = [part for part in _parts(function, shapes, dtype, keywords) if 0 not in part[1].shape]
    return [prepared.gpu_task(*part, device) for part in parts for device in devices]


def _parts(function, shapes, dtype, keywords):
    """(function, geometry, arrays) of each result of a call: the arrays are like its two inputs and the result."""
    name = function if isinstance(function, str) else getattr(function, "__name__", repr(function))
    if name not in _ALL:
        raise ValueError(f"function must be one of {', '.join(_ALL)}, not {name}{_meant(name, _ALL)}")
    called, asked = _ALL[name]
    _check_keywords(name, keywords, {*asked, *Options._fields})
    if len(shapes) != len(called.names):
        raise ValueError(f"shapes must have one entry for each of {', '.join(called.names)}, not {len(shapes)}")
    types = map(stored, _types(shapes, dtype))
    arrays = [untouched(*named) for named in zip(called.names, shapes, types, strict=True)]
    own = tuple(keywords.pop(key, value) for key, value in asked.items())
    geometries = calls.geometries_of(NUMPY, called, arrays, own, Options(**keywords))
    targets = [np.empty(geometry.shape, arrays[0].dtype) for geometry in geometries]
    return [
        (part.function, geometry, (arrays[part.first], arrays[part.second], target))
        for part, geometry, target in zip(called.parts, geometries, targets, strict=True)
    ]


def _types(shapes, dtype):
    """The type of each array: ``dtype``, else the array's own type, else the type of another array."""
    own = [getattr(one, "dtype", None) if dtype is None and is_array(one) else dtype for one in shapes]
    default = next((one for one in own if one is not None), "float32")
    return [default if one is None else one for one in own]


def _meant(word, names):
    """The end of an error about an unknown name: the known name that was probably meant."""
    meant = _ELSEWHERE.get(word)
    meant = meant if meant in names else closest(word, names, 0.6)
    return f"; did you mean {meant!r}?" if meant else ""


def _check_keywords(name, keywords, known):
    unknown = sorted(set(keywords) - known)
    if unknown:
        raise TypeError(f"{name} has no keyword {unknown[0]!r}{_meant(unknown[0], sorted(known))}")


def _explained(called, geometry, arrays):
    """The explanation of a function with one result."""
    name = called.name
    if 0 in geometry.shape:
        return Explanation(name, geometry.shape, geometry.dtype.name, (), None, {})
    declined, family, details = cpu.explained(cpu.task_of(*prepared.cpu_arguments(called, geometry, arrays)))
    return Explanation(name, geometry.shape, geometry.dtype.name, tuple(declined), family, dict(details))
