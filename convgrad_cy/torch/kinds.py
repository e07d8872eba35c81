"""The convolutions on a GPU that ``enable(cuda=True)`` takes from PyTorch: the kinds that were timed and were faster.

The times are the table of docs/performance.md (bench/results/h200-sm_90-gpu.json): gradients on an H200. Each timed
layer of a kind was at least 1.1x as fast as with cuDNN. Another layer is of the kind if its properties are in the
ranges of the timed layers. It may have more channels and elements. PyTorch keeps all other calls. A test compares this
table with the file.
"""

from math import prod
from typing import NamedTuple

from ..problem import DGRAD, WGRAD

#: The compute capability of the GPU that was timed.
ARCH = 90


class Kind(NamedTuple):
    """Layers that are faster here. Each pair has the least and the greatest value of the timed layers."""

    line: str  # of the table in docs/performance.md
    ratio: float  # of the slowest timed layer: cuDNN's time divided by ours
    dtype: str
    layout: str | None  # of all tensors: "NCX" or "NXC"; None: any, even different ones
    operations: tuple
    groups: str  # "one" or "depthwise"
    ranks: tuple
    taps: tuple  # of the filter, on each spatial axis
    strides: tuple  # on each spatial axis
    channels: int  # the fewest of x and y
    elements: int  # the fewest of x and y together


_BOTH = (DGRAD, WGRAD)
_TF32_OFF = "float32 high; cuDNN without TF32"

#: The kinds differ from the timed layers in two ways. 1-D layers with channels last are missing, because PyTorch
#: returns 1-D results channels first. float64 was timed with channels last, and has any layout here, because PyTorch
#: computes float64 channels first. The lines "bfloat16, channels first" and "bfloat16, channels last" show the time of
#: copies. If float64 takes four times as long for them, its slowest layer is still 1.25x as fast as with cuDNN.
KINDS = (
    Kind("bfloat16 depthwise, channels first", 2.54, "bfloat16", "NCX", _BOTH, "depthwise", (1, 3), (3, 7), (1, 1),
         channels=64, elements=19_267_584),
    Kind("bfloat16 depthwise, channels last", 7.32, "bfloat16", "NXC", _BOTH, "depthwise", (3, 3), (3, 3), (1, 1),
         channels=64, elements=134_217_728),
    Kind("bfloat16 depthwise, channels last", 1.17, "bfloat16", "NXC", (DGRAD,), "depthwise", (2, 2), (3, 7), (1, 1),
         channels=144, elements=19_267_584),
    Kind("float64", 2.71, "float64", None, _BOTH, "one", (2, 3), (3, 7), (1, 2), channels=3, elements=6_422_528),
    Kind(_TF32_OFF, 1.92, "float32", "NXC", _BOTH, "one", (3, 3), (3, 3), (1, 1), channels=32, elements=16_777_216),
    Kind(_TF32_OFF, 1.27, "float32", "NXC", _BOTH, "one", (2, 2), (1, 1), (1, 2), channels=64, elements=32_112_640),
    Kind(_TF32_OFF, 1.15, "float32", "NXC", _BOTH, "one", (2, 2), (3, 7), (2, 2), channels=3, elements=64_225_280),
)  # fmt: skip


class Asked(NamedTuple):
    """The properties of a call that decide whether it is of a kind."""

    arch: int  # compute capability of the GPU
    dtype: str
    has_tf32: bool  # whether PyTorch may round float32 to TF32
    operation: str  # FPROP, DGRAD or WGRAD of the convolution, whose DGRAD a transposed one is
    is_transposed: bool
    groups: str  # "one", "depthwise" or "several"
    layout: str  # "NCX", "NXC" or "other"
    rank: int
    taps: tuple
    strides: tuple
    dilations: tuple
    channels: int  # the smaller number of x and y
    elements: int  # of x and y together


def asked(operation, problem, rank, **others):
    """The `Asked` of an operation of a problem with ``rank`` spatial axes. ``others`` are its other fields."""
    channels = problem.x_channels, problem.y_channels
    several = "depthwise" if channels == (1, 1) else "several"
    return Asked(
        operation=operation,
        groups="one" if problem.groups == 1 else several,
        rank=rank,
        taps=problem.kernel[-rank:],
        strides=problem.stride[-rank:],
        dilations=problem.dilation[-rank:],
        channels=problem.groups * min(channels),
        elements=problem.batch * problem.groups * (channels[0] * prod(problem.x) + channels[1] * prod(problem.y)),
        **others,
    )


def _within(limits, values):
    return limits[0] <= min(values) and max(values) <= limits[1]


#: The properties that must agree, in this order: the name in the reason, and whether it agrees.
_STEPS = (
    ("compute capability {arch}", lambda kind, asked: asked.arch == ARCH),
    ("tensors of {dtype}", lambda kind, asked: asked.dtype == kind.dtype),
    ("TF32", lambda kind, asked: asked.dtype != "float32" or not asked.has_tf32),
    ("transposed convolutions", lambda kind, asked: not asked.is_transposed),
    ("groups: {groups}", lambda kind, asked: asked.groups == kind.groups),
    ("the layout {layout}", lambda kind, asked: kind.layout in (None, asked.layout)),
    ("{rank} spatial axes", lambda kind, asked: _within(kind.ranks, (asked.rank,))),
    ("the operation {operation}", lambda kind, asked: asked.operation in kind.operations),
    ("the strides {strides}", lambda kind, asked: _within(kind.strides, asked.strides)),
    ("the filter size {taps}", lambda kind, asked: _within(kind.taps, asked.taps)),
    ("the dilations {dilations}", lambda kind, asked: set(asked.dilations) == {1}),
    ("as few channels", lambda kind, asked: asked.channels >= kind.channels),
    ("as few elements", lambda kind, asked: asked.elements >= kind.elements),
)


def refusal(asked):
    """The reason why PyTorch keeps a call, or None if it is of one of the kinds."""
    kinds = KINDS
    for name, agrees in _STEPS:
        kinds = [kind for kind in kinds if agrees(kind, asked)]
        if not kinds:
            return f"no kind that is taken on a GPU has {name.format(**asked._asdict())}"
    return None
