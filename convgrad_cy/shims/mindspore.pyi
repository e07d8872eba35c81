from collections.abc import Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..typing import CuPyArray

__all__ = [
    "Conv2DBackpropInput",
    "Conv2DTranspose",
    "ShapeError",
    "Tensor",
    "TensorTypeError",
    "dtype",
    "float16",
    "float32",
    "float64",
    "int32",
    "int64",
    "ops",
    "shape",
]

_Scalar = TypeVar("_Scalar", bound=np.generic)
_CuPy = TypeVar("_CuPy", bound=CuPyArray)
_PadMode = Literal["valid", "same", "pad", "VALID", "SAME", "PAD"]
_Pads = tuple[int, int, int, int]
_Sizes = int | tuple[int, int]
_Shape = tuple[int | np.integer[Any], ...] | list[int] | NDArray[np.integer[Any]]
_PerAxis = int | tuple[int, int] | tuple[int, int, int, int]

def __dir__() -> list[str]: ...

class ShapeError(ValueError, RuntimeError): ...
class TensorTypeError(TypeError, RuntimeError): ...

class Conv2DBackpropInput:
    name: str
    out_channel: int
    kernel_size: tuple[int, int]
    pad_mode: str
    pad: _Pads
    padding: _Pads
    pad_list: Sequence[int] | None
    mode: int
    stride: _Pads
    dilation: _Pads
    group: int
    groups: int
    format: str
    data_format: str
    def __init__(
        self,
        out_channel: int,
        kernel_size: _Sizes,
        pad_mode: _PadMode = "valid",
        pad: int | _Pads = 0,
        pad_list: _Pads | list[int] | None = None,
        mode: int = 1,
        stride: _PerAxis = 1,
        dilation: _PerAxis = 1,
        group: int = 1,
        data_format: Literal["NCHW", "NHWC"] = "NCHW",
    ) -> None: ...
    @overload
    def __call__(self, dout: NDArray[_Scalar], weight: NDArray[_Scalar], input_size: _Shape, /) -> NDArray[_Scalar]: ...
    @overload
    def __call__(self, dout: _CuPy, weight: _CuPy, input_size: _Shape, /) -> _CuPy: ...

class Conv2DTranspose(Conv2DBackpropInput): ...

def shape(input_x: NDArray[Any] | CuPyArray) -> tuple[int, ...]: ...
def Tensor(input_data: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]: ...

float16: type[np.float16]
float32: type[np.float32]
float64: type[np.float64]
int32: type[np.int32]
int64: type[np.int64]

class dtype:
    float16: type[np.float16]
    float32: type[np.float32]
    float64: type[np.float64]
    int32: type[np.int32]
    int64: type[np.int64]

_BackpropInput = Conv2DBackpropInput
_Transpose = Conv2DTranspose

class ops:
    Conv2DBackpropInput: type[_BackpropInput]
    Conv2DTranspose: type[_Transpose]
    @staticmethod
    def shape(input_x: NDArray[Any] | CuPyArray) -> tuple[int, ...]: ...
