"""Plans of convolutions as text, which travels in the compiled program, and as work, which the handler runs.

The text has everything that a plan depends on, except the number of threads. So a program from XLA's persistent cache
runs in a process that has never lowered it, and a plan that the bounded cache has dropped is made again.
"""

import json

import numpy as np

from .. import calls
from .._repeat import array_at
from .._xla_ffi import Plan, set_planner
from ..arrays import NUMPY
from ..calls import prepared
from ..checks import functions
from ..dtypes import BFLOAT16_BITS, lookup
from ..memo.bounded import Bounded, counted
from ..settings.algorithm import on_change
from ..settings.threads import get_num_threads, num_threads

_FUNCTIONS = {
    function.name: function
    for function in (functions.CONV, functions.CONV_BACKWARD_DATA, functions.CONV_BACKWARD_FILTER)
}

#: Address of views while a call is planned. Nothing is read there.
_ADDRESS = 1 << 60

#: (text, threads) -> plan.
known = Bounded()


def forget():
    """Drop all plans."""
    known.clear()


on_change(forget)


def text_of(reading):
    """A `Reading` as text."""
    views = [
        (operand, offset, view.shape, view.strides)
        for operand, offset, view in zip(reading.operands, reading.offsets(), reading.views, strict=True)
    ]
    name = lookup(reading.views[0].dtype).name
    content = reading.function.name, name, views, reading.asked, reading.keywords
    return json.dumps(content, separators=(",", ":")).encode()


def make(text, threads):
    """Make and keep the `Plan` of a text.

    Raises
    ------
    TypeError, ValueError
        The functions of this package refuse the call.
    """
    generation = known.generation
    counted()  # earlier counts of this thread belong to no plan
    with num_threads(threads):
        plan = _plan(*_tuples(json.loads(text)))
    known.keep((text, threads), plan, counted() + len(text), generation)
    return plan


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _plan(name, dtype, views, asked, keywords):
    function, dtype = _FUNCTIONS[name], BFLOAT16_BITS if dtype == "bfloat16" else np.dtype(dtype)
    operands, offsets, *_ = zip(*views, strict=True)
    arrays = [array_at(_ADDRESS + offset, shape, strides, dtype) for _, offset, shape, strides in views]
    geometry = calls.checked(NUMPY, function, *arrays[:2], asked, keywords)
    if geometry.shape != arrays[2].shape:
        raise ValueError(f"{name} has a result of shape {geometry.shape}, not {arrays[2].shape}")
    return Plan(prepared.prepare(function, geometry, arrays).run, operands, offsets)


set_planner(known.entries, make, get_num_threads)
