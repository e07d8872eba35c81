"""The common part of all operations: check the attributes and the inputs, translate, and call the core.

Each operation takes two of the tensors of ``y = conv(x, w)`` and makes the third. The input of a transposed convolution
is the y of this convolution, and its output is x.
"""

from functools import lru_cache
from inspect import Parameter, Signature

import numpy as np

from ...api import conv, conv_backward_data, conv_backward_filter
from ...arrays import zeros
from .attributes import GraphError, GraphTypeError, GraphValueError, checked
from .geometry import INFERENCE, PRIMITIVE, planned

_DTYPES = ("float32", "float16", "bfloat16")
#: Number of shapes whose plans an operation keeps.
_PLANS = 256


@lru_cache(maxsize=64)
def _is_supported(dtype):
    return getattr(dtype, "name", None) in _DTYPES


class _Answer:
    """Turns a plain TypeError or ValueError into a GraphError, and puts the operation's name before the message."""

    def __init__(self, operation, status):
        self.operation, self.status = operation, status

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if error is None:
            return
        name = type(self.operation).__name__
        if isinstance(error, GraphError):
            error.args = (f"{name}: {error.args[0]}", error.status)
        elif isinstance(error, TypeError):
            raise GraphTypeError(f"{name}: {error}", "invalid_graph_op") from error
        elif isinstance(error, ValueError):
            raise GraphValueError(f"{name}: {error}", self.status) from error


class Operation:
    """One operation: constructed with attributes by name, called with tensors by position.

    A subclass has these keywords in its class statement:

    takes : dict
        Part of each input in ``y = conv(x, w)`` -> the caller's name of the input.
    makes : str
        The part of the result.
    schema : dict
        Part in the call -> attribute.
    """

    def __init_subclass__(cls, *, takes, makes, schema):
        cls.takes, cls.makes, cls.schema = takes, makes, schema
        #: The caller's name of the result's shape, an attribute or a third input; None if the inputs determine it.
        cls.shape = schema["shape"].name if "shape" in schema else None
        rows, keyword = schema.values(), Parameter.KEYWORD_ONLY
        cls.__signature__ = Signature([Parameter(row.name, keyword, default=row.default) for row in rows])

    def __init__(self, **attributes):
        with _Answer(self, "invalid_graph_op"):
            self.values = checked(self.schema, attributes)
        self.attributes = attributes
        self._plans = {}

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.attributes.items())})"

    def __call__(self, *inputs):
        with _Answer(self, PRIMITIVE):
            arrays, asked = self._checked_inputs(inputs)
            return self._core(arrays, self._plan(arrays, asked))

    def _checked_inputs(self, inputs):
        """Part -> array, and the shape of the result if it is given."""
        if len(inputs) != 2 and not (len(inputs) == 3 and self.shape):
            names = ", ".join([*self.takes.values(), *([self.shape] if self.shape else [])])
            raise TypeError(f"the inputs must be {names}, not {len(inputs)} tensors")
        arrays = dict(zip(self.takes, inputs, strict=False))
        for part, array in arrays.items():
            dtype = getattr(array, "dtype", None)
            if not _is_supported(dtype):
                what = dtype or type(array).__name__
                raise TypeError(f"{self.takes[part]} must be an array of {', '.join(_DTYPES)}, not {what}")
            if dtype != inputs[0].dtype and dtype.name != inputs[0].dtype.name:
                raise TypeError(f"{self.takes[part]} must have the first input's dtype {inputs[0].dtype}, not {dtype}")
        asked = self.values.get("shape")
        if len(inputs) == 3 and inputs[2] is not None:
            asked = _shape_tensor(inputs[2], self.schema["shape"])
        if self.shape and asked is None:
            raise GraphValueError(f"{self.shape} must be given, as an attribute or the third input", INFERENCE)
        return arrays, asked

    def _plan(self, arrays, asked):
        """The plan for these shapes, which their first call makes."""
        shapes = [array.shape for array in arrays.values()]
        key = (*shapes, asked)
        plan = self._plans.get(key)
        if plan is None:
            plan = planned(self, dict(zip(arrays, shapes, strict=True)), asked)
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def _core(self, arrays, plan):
        """Call the core, which makes the checks that the framework has no rules for."""
        if plan.empty:
            result = zeros(plan.shape, next(iter(arrays.values())))
        elif self.makes == "y":
            result = conv(arrays["x"], arrays["w"], **plan.keywords)
        elif self.makes == "x":
            result = conv_backward_data(arrays["y"], arrays["w"], plan.shape, **plan.keywords)
        else:
            result = conv_backward_filter(arrays["x"], arrays["y"], plan.shape, **plan.keywords)
        return result if plan.exchanged is None else result.swapaxes(*plan.exchanged)


def _shape_tensor(tensor, row):
    """The third input as a shape."""
    dtype = getattr(tensor, "dtype", None)
    if dtype != np.int32:
        raise TypeError(f"{row.name} must be an array of int32, not {dtype or type(tensor).__name__}")
    if tensor.ndim != 1:
        raise GraphValueError(f"{row.name} must have one axis, not {tensor.ndim}", INFERENCE)
    return row.value_of(tensor)
