"""Convolutions of public complaints about XLA on a CPU: with XLA's kernels and with ours."""

from typing import NamedTuple


class Complaint(NamedTuple):
    """The convolution of a complaint and the place of its report. A function of this name in cases.py computes it."""

    title: str
    report: str | None = None  # owner/repository#number on GitHub
    dtype: str = "float32"
    depth: int = 1  # convolutions in sequence; each adds its errors


COMPLAINTS = {
    "loop": Complaint("1-D convolution twice in a loop, 1000 channels", "jax-ml/jax#12868", depth=2),
    "groups": Complaint("3×3, 32 groups, 128 channels, both gradients"),
    "depthwise": Complaint("1-D depthwise, 5 taps, 512 channels, both gradients", "jax-ml/jax#13800"),
    "transposed_3d": Complaint("transposed 3-D, filter gradient", "jax-ml/jax#31662"),
    "transposed_1d": Complaint("transposed 1-D, 1024 taps, stride 256", "jax-ml/jax#23783"),
    "bfloat16": Complaint("3×3 in bfloat16, 64 channels, both gradients", dtype="bfloat16"),
    "examples": Complaint("per-example filter gradients: vmap(grad)"),
    "chain": Complaint("20 small convolutions, one after the other", depth=20),
}
