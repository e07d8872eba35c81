from typing import Any, Literal, TypeVar

from numpy.typing import NDArray

from ..typing import CuPyArray

__all__ = [
    "CUDNN_TENSOR_NCHW",
    "CUDNN_TENSOR_NHWC",
    "CuDNNError",
    "convolution_backward_data",
    "convolution_backward_filter",
    "convolution_forward",
]

_Array = TypeVar("_Array", NDArray[Any], CuPyArray)
_TensorCore = Literal["always", "auto", "never"]

CUDNN_TENSOR_NCHW: Literal[0]
CUDNN_TENSOR_NHWC: Literal[1]

class CuDNNError(ValueError, RuntimeError): ...

def __dir__() -> list[str]: ...
def convolution_forward(
    x: _Array,
    W: _Array,
    b: _Array | None,
    y: _Array,
    pad: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...] | None,
    groups: int,
    *,
    auto_tune: bool,
    tensor_core: _TensorCore,
    d_layout: int = 0,
    w_layout: int = 0,
) -> None: ...
def convolution_backward_data(
    W: _Array,
    x: _Array,
    b: _Array | None,
    y: _Array,
    pad: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...] | None,
    groups: int,
    *,
    deterministic: bool,
    auto_tune: bool,
    tensor_core: _TensorCore,
    d_layout: int = 0,
    w_layout: int = 0,
) -> None: ...
def convolution_backward_filter(
    x: _Array,
    gy: _Array,
    gW: _Array,
    pad: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...] | None,
    groups: int,
    *,
    deterministic: bool,
    auto_tune: bool,
    tensor_core: _TensorCore,
    d_layout: int = 0,
    w_layout: int = 0,
) -> None: ...
