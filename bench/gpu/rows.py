"""The rows that are timed on a GPU: layers of layers.txt in types and layouts, in groups with a ratio to reach."""

from pathlib import Path
from typing import NamedTuple

from .. import suites
from ..case import Case

LAYERS = suites.parse(Path(__file__).with_name("layers.txt").read_text(encoding="utf-8"))
#: Training adds dgrad and wgrad to a forward pass, and CuPy has had neither. Some groups have "fprop", or "both"
#: gradients in one call.
KERNELS = ("dgrad", "wgrad")
#: Layers for types that are measured for completeness.
FEW = ("resnet50_stem", "resnet50_3x3_64", "resnet50_3x3_128_stride2", "resnet50_3x3_512", "unet_64", "unet3d_64")


class Group(NamedTuple):
    """Rows whose ratios, cuDNN's time over ours, have one geometric mean."""

    name: str
    suite: str
    dtype: str
    layout: str
    precision: str = "high"
    tf32: bool = False
    few: bool = False
    kernels: tuple = KERNELS
    goal: float | None = None  # least geometric mean
    worst: float | None = None  # least ratio of each row


#: Groups in the order of measurement. Rows that a run has no time for are the last ones.
GROUPS = (
    Group("bfloat16, channels last", "dense", "bfloat16", "NXC", goal=0.5, worst=0.3),
    Group("depthwise, channels last", "depthwise", "bfloat16", "NXC", goal=1.8, worst=1.2),
    Group("depthwise, channels first", "depthwise", "bfloat16", "NCX", goal=1.8, worst=1.2),
    Group("groups, channels last", "grouped", "bfloat16", "NXC", goal=1.2, worst=0.8),
    Group("float32 high; cuDNN without TF32", "dense", "float32", "NXC", goal=1.1, worst=0.8),
    Group("bfloat16, channels first", "dense", "bfloat16", "NCX", goal=0.75, worst=0.45),
    Group("float32 medium; cuDNN with TF32", "dense", "float32", "NXC", "medium", tf32=True, goal=0.3),
    Group("float64", "dense", "float64", "NXC", few=True, goal=1.3),
    Group("float16, channels last", "dense", "float16", "NXC", few=True, goal=0.5, worst=0.3),
    Group("float32 ieee; cuDNN without TF32", "dense", "float32", "NXC", "ieee", few=True),
    Group("int32, which cuDNN has not", "dense", "int32", "NXC", few=True),
    Group("forward, bfloat16, channels last", "dense", "bfloat16", "NXC", kernels=("fprop",)),
    Group("depthwise, float32, channels first", "depthwise", "float32", "NCX"),
    Group("depthwise, float16, channels first", "depthwise", "float16", "NCX"),
    Group("depthwise, float32, channels last", "depthwise", "float32", "NXC"),
    Group("depthwise, float16, channels last", "depthwise", "float16", "NXC"),
    Group("other depthwise kernels, channels first", "depthwise_more", "bfloat16", "NCX"),
    Group("other depthwise kernels, channels last", "depthwise_more", "bfloat16", "NXC"),
    Group("small batches and odd strides, bfloat16, channels last", "small", "bfloat16", "NXC"),
    Group("both gradients, bfloat16, channels last", "dense", "bfloat16", "NXC", few=True, kernels=("both",)),
)


class Row(NamedTuple):
    """One line of the result."""

    group: Group
    case: Case
    kernel: str

    @property
    def name(self):
        return f"{self.case.name} {self.kernel} {self.group.name}"


def rows(*matches):
    """All rows whose name contains one of ``matches``, in the order of ``matches``. All rows without ``matches``."""
    every = [
        Row(group, layer.case(group.layout, group.dtype), kernel)
        for group in GROUPS
        for layer in LAYERS
        if layer.suite == group.suite and (not group.few or layer.name in FEW)
        for kernel in group.kernels
    ]
    chosen = {row.name: row for match in matches or ("",) for row in every if match in row.name}
    return list(chosen.values())
