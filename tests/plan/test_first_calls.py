"""The work of the first call of a shape before its kernel runs, as the number of calls of Python functions.

The number is small for any filter, stride and dilation, since walks of a shape class are planned once.
"""

import sys
from math import prod

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from convgrad_cy import cpu, dtypes
from convgrad_cy.problem import DGRAD, FPROP, WGRAD, ConvProblem, conv_size

#: x, kernel, stride, dilation, padding, channels of x and of y, groups.
SHAPES = {
    "3x3": ((56, 56), (3, 3), 1, 1, 1, 64, 64, 1),
    "FCN-32s": ((544, 544), (64, 64), 32, 1, 0, 21, 21, 1),
    "FCN-8s": ((568, 568), (16, 16), 8, 1, 0, 21, 21, 1),
    "STFT": ((160_000,), (400,), 160, 1, 200, 32, 201, 1),
    "patches in 3-D with padding": ((64, 64, 64), (8, 8, 8), 8, 1, 4, 16, 16, 1),
    "overlaps in 3-D": ((65, 65, 65), (9, 9, 9), 8, 1, 4, 16, 16, 1),
    "a stride of 65536": ((1 << 20,), (65_537,), 65_536, 1, 0, 2, 2, 1),
    "3000 taps": ((8000,), (3000,), 1, 1, 0, 64, 64, 1),
    "a million taps": ((1_000_100,), (1_000_000,), 1, 1, 0, 1, 1, 1),
    "51x51 depthwise": ((28, 28), (51, 51), 1, 1, 25, 1, 1, 64),
    "a dilation of 64": ((512, 512), (3, 3), 1, 64, 64, 64, 64, 1),
    "a dilation of 511": ((16_000,), (15,), 1, 511, 0, 64, 64, 1),
    "padding without end": ((200,), (4000,), 1, 1, 2000, 8, 8, 1),
    "groups": ((16, 16), (3, 3), 1, 1, 1, 2, 2, 4096),
}
#: Most calls of functions, including Python's own. A layer of 3 x 3 takes 2000, the eight pieces of overlaps in 3-D
#: 17,000. Costing each walk of Winograd's algorithm would take 385,000 for the gradient of FCN-32s' filter.
MOST = 20_000


def problem_of(x, kernel, stride, dilation, pad, channels, outputs, groups):
    def lifted(values, fill):
        return (fill,) * (3 - len(values)) + tuple(values)

    rank = len(x)
    y = [conv_size(n, k, stride, dilation, (pad, pad)) for n, k in zip(x, kernel, strict=True)]
    sizes = lifted(x, 1), lifted(y, 1), lifted(kernel, 1), lifted([stride] * rank, 1), lifted([dilation] * rank, 1)
    return ConvProblem(1, groups, channels, outputs, *sizes, lifted([pad] * rank, 0))


def forget():
    """Forget all earlier plans."""
    for name, module in sys.modules.items():
        if name.startswith("convgrad_cy."):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def calls_of(function):
    """The number of function calls that a function makes."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("channels_last", (False, True))
@pytest.mark.parametrize("operation", (FPROP, DGRAD, WGRAD))
@pytest.mark.parametrize("shape", SHAPES)
def test_calls_are_few(shape, operation, channels_last):
    problem, tensors = problem_of(*SHAPES[shape]), []
    for lead, extents in (
        ((problem.batch, problem.groups, problem.x_channels), problem.x),
        ((problem.groups, problem.y_channels, problem.x_channels), problem.kernel),
        ((problem.batch, problem.groups, problem.y_channels), problem.y),
    ):
        first, *channels = lead
        last = channels_last and len(tensors) != 1
        extent = (first, *extents, *channels) if last else (*lead, *extents)
        view = as_strided(np.empty(1, np.float32), extent, [4 * prod(extent[i + 1 :]) for i in range(6)])
        tensors.append(view.transpose(0, 4, 5, 1, 2, 3) if last else view)
    places = {FPROP: [0, 1, 2], DGRAD: [2, 1, 0], WGRAD: [0, 2, 1]}[operation]
    operands = [cpu.Operand(place, 0, tensor) for place, tensor in zip(places, tensors, strict=True)]
    forget()
    made = calls_of(lambda: cpu.prepare(operation, problem, dtypes.TABLE[2], "auto", operands))
    assert 100 < made < MOST
