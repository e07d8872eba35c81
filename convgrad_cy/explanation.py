"""``explain``: how a call would be computed on a CPU, without computing it."""

from typing import NamedTuple

import numpy as np

from . import arguments, calls, cpu, dtypes, prepared
from .arrays import NUMPY

#: The functions by name, with the defaults of what only they are asked, None where it has to be given.
_FUNCTIONS = {
    "conv": (arguments.CONV, {}),
    "conv_backward_data": (arguments.CONV_BACKWARD_DATA, {"x_shape": None}),
    "conv_backward_filter": (arguments.CONV_BACKWARD_FILTER, {"w_shape": None}),
    "conv_transpose": (arguments.CONV_TRANSPOSE, {"output_padding": 0, "output_shape": None}),
    "conv_transpose_backward_data": (arguments.CONV_TRANSPOSE_BACKWARD_DATA, {"output_padding": 0}),
    "conv_transpose_backward_filter": (arguments.CONV_TRANSPOSE_BACKWARD_FILTER, {"w_shape": None}),
}
FUNCTIONS = tuple(_FUNCTIONS)

_KEYWORDS = {
    "stride": 1, "padding": 0, "dilation": 1, "groups": 1,
    "data_format": "NCX", "filter_format": "OIX", "algorithm": None, "precision": "high",
}  # fmt: skip


class Explanation(NamedTuple):
    """How a call would be computed. ``str`` makes a report of it.

    Attributes
    ----------
    function : str
    shape : tuple
        Of the result.
    dtype : str
    declined : tuple
        Pairs of a family of kernels that does not compute it, and the reason, in the order in which they were asked.
    family : str or None
        The one that does; None where the result or a sum is empty.
    details : dict
        Its plan: a value for each name, such as ``tasks``, ``threads`` and ``bytes beside the arrays``. These bytes are
        an estimate of what all threads share; each thread has a window and sums of its own in addition.
    """

    function: str
    shape: tuple
    dtype: str
    declined: tuple
    family: str | None
    details: dict

    def __str__(self):
        lines = [f"{self.function} -> {self.dtype}, {' x '.join(map(str, self.shape))}"]
        lines += [f"not {family}: {reason}" for family, reason in self.declined]
        lines.append(f"by {self.family}" if self.family else _nothing(self.shape))
        for name, value in self.details.items():
            several = isinstance(value, list) and all(isinstance(each, str) for each in value)
            lines += [f"  {name}: {each}" for each in (value if several else [value]) if each is not None]
        return "\n".join(lines)


def _nothing(shape):
    """Why no family is asked."""
    return "nothing to compute" if 0 in shape else "nothing to compute: no sum has a term, so the result is zeros"


def _array(name, shape, dtype):
    """An array of which no element is touched."""
    try:
        return np.empty(tuple(shape), dtype)
    except TypeError as error:
        raise TypeError(f"shapes must have the shape of {name} as a sequence of integers, not {shape!r}") from error


def explain(function, shapes, dtype="float32", **keywords):
    """How a call would be computed on this machine's CPU, with as many threads as a call would have now.

    Nothing is computed, and no memory of the arrays is touched. Arrays are taken to be contiguous.

    Parameters
    ----------
    function : str or callable
        One of the functions with one result, such as `conv_backward_data`, or its name.
    shapes : sequence
        The shapes of its two arrays, in the order of its arguments.
    dtype : str or numpy.dtype
        Of the arrays; "bfloat16" needs no package.
    **keywords : object
        What else the function takes, but for `out`: `x_shape`, `stride`, `padding` and so on.

    Returns
    -------
    Explanation
        Which family of kernels computes the call, why those before it decline, and its plan. ``print`` shows it.

    Raises
    ------
    TypeError
        An argument of the wrong type, or a keyword that the function does not have.
    ValueError
        A function that is none of the six, or what the function itself would refuse.

    See Also
    --------
    conv, conv_backward_data, conv_backward_filter
    conv_transpose, conv_transpose_backward_data, conv_transpose_backward_filter

    Examples
    --------
    >>> import convgrad_cy as cg
    >>> found = cg.explain("conv", [(1, 2, 9), (4, 2, 3)], padding=1)
    >>> found.family, found.shape
    ('direct', (1, 4, 9))
    >>> for family, reason in found.declined:
    ...     print(f"{family}: {reason}")
    patches: the operation is no data gradient
    overlaps: the operation is no data gradient
    columns: the operation is no data gradient
    long_sums: a sum has fewer than 4096 terms
    exchanged: the filter is not larger than y
    winograd: there are fewer than 2000000 products
    small_groups: there is one group
    """
    name = function if isinstance(function, str) else getattr(function, "__name__", repr(function))
    if name not in _FUNCTIONS:
        raise ValueError(f"function must be one of {', '.join(FUNCTIONS)}, not {name}")
    called, asked = _FUNCTIONS[name]
    unknown = sorted(set(keywords) - set(asked) - set(_KEYWORDS))
    if unknown:
        raise TypeError(f"{name} has no keyword {unknown[0]!r}")
    if len(shapes) != 2:
        raise ValueError(f"shapes must have two entries, for {' and '.join(called.names)}, not {len(shapes)}")
    stored = dtypes.BFLOAT16_BITS if dtype == "bfloat16" else np.dtype(dtype)
    first, second = (_array(*named, stored) for named in zip(called.names, shapes, strict=True))
    own = tuple(keywords.get(key, default) for key, default in asked.items())
    common = tuple(keywords.get(key, default) for key, default in _KEYWORDS.items())
    geometry = calls.checked(NUMPY, called, first, second, own, common)
    target = np.empty(geometry.shape, stored)
    if target.size == 0:
        return Explanation(name, geometry.shape, geometry.dtype.name, (), None, {})
    operation, _, places = prepared.part_of(called, geometry)
    tensors = prepared.tensors_of(geometry, places, (first, second, target))
    task = cpu.task_of(operation, geometry.problem, geometry.dtype, geometry.algorithm, places, tensors)
    declined, family, details = cpu.explained(task)
    return Explanation(name, geometry.shape, geometry.dtype.name, tuple(declined), family, dict(details))
