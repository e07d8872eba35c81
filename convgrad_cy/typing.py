"""Types of arguments, for annotations in programs that call this package. No other module imports this one.

A layer that passes keywords on to the functions can annotate them::

    def __init__(self, w: NDArray[np.float32], **keywords: Unpack[Keywords]) -> None: ...
"""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, SupportsIndex, TypedDict

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Algorithm",
    "CuPyArray",
    "DataFormat",
    "DefaultAlgorithm",
    "FilterFormat",
    "JAXArray",
    "Keywords",
    "Padding",
    "PerAxis",
    "Precision",
    "Shape",
    "TorchTensor",
    "TransposedKeywords",
]

#: The shape of an array, with all axes.
Shape = Sequence[SupportsIndex] | NDArray[np.integer[Any]]

#: One integer for all spatial axes, or one for each of them.
PerAxis = SupportsIndex | Shape

#: An integer, an integer or a (begin, end) pair for each spatial axis, or a name, in lower or upper case.
Padding = (
    PerAxis
    | Sequence[Sequence[SupportsIndex]]
    | Literal["valid", "same", "same_upper", "same_lower", "VALID", "SAME", "SAME_UPPER", "SAME_LOWER"]
)

DataFormat = Literal[
    "NCX", "NCW", "NCHW", "NCDHW", "NXC", "NWC", "NHWC", "NDHWC",
    "ncx", "ncw", "nchw", "ncdhw", "nxc", "nwc", "nhwc", "ndhwc",
]  # fmt: skip
FilterFormat = Literal[
    "OIX", "OIW", "OIHW", "OIDHW", "XIO", "WIO", "HWIO", "DHWIO",
    "oix", "oiw", "oihw", "oidhw", "xio", "wio", "hwio", "dhwio",
]  # fmt: skip
Algorithm = Literal["auto", "direct", "winograd"]
DefaultAlgorithm = Literal["auto", "direct"]
Precision = Literal["ieee", "high", "medium"]


class Keywords(TypedDict, total=False):
    """The keywords of `convgrad_cy.conv` and its gradients, without `out`."""

    stride: PerAxis
    padding: Padding
    dilation: PerAxis
    groups: SupportsIndex
    data_format: DataFormat
    filter_format: FilterFormat
    algorithm: Algorithm | None
    precision: Precision


class TransposedKeywords(Keywords, total=False):
    """The keywords of `convgrad_cy.conv_transpose` and its gradients, without `out`."""

    output_padding: PerAxis | None
    output_shape: Shape | None


# The libraries need not be installed where a program is checked. A missing class would be Any, and then a checker would
# accept every argument. So each class is described by members that arrays of the other libraries do not have.


class TorchTensor(Protocol):
    """Members of torch.Tensor."""

    @property
    def requires_grad(self) -> bool: ...
    def data_ptr(self) -> int: ...


class JAXArray(Protocol):
    """Members of jax.Array."""

    @property
    def is_fully_addressable(self) -> bool: ...
    def devices(self) -> set[Any]: ...


class CuPyArray(Protocol):
    """Members of cupy.ndarray."""

    def reduced_view(self) -> Any: ...
    def set(self, arr: Any, stream: Any = ...) -> None: ...
