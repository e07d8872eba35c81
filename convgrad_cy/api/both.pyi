from typing import SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ..typing import (
    Algorithm,
    CuPyArray,
    DataFormat,
    FilterFormat,
    JAXArray,
    Padding,
    PerAxis,
    Precision,
    Shape,
    TorchTensor,
)

_Scalar = TypeVar("_Scalar", bound=np.generic)
_Tensor = TypeVar("_Tensor", bound=TorchTensor)
_JAX = TypeVar("_JAX", bound=JAXArray)
_CuPy = TypeVar("_CuPy", bound=CuPyArray)

_Array = TypeVar("_Array")

#: A pair of arrays that receive the gradients. None stands for a new array.
_Outs = tuple[_Array | None, _Array | None] | list[_Array] | list[_Array | None]

@overload
def conv_backward(
    dy: NDArray[_Scalar], x: NDArray[_Scalar], w: NDArray[_Scalar], *,
    stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: _Outs[NDArray[_Scalar]] | None = None,
) -> tuple[NDArray[_Scalar], NDArray[_Scalar]]: ...  # fmt: skip
@overload
def conv_backward(
    dy: _Tensor, x: _Tensor, w: _Tensor, *,
    stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: _Outs[_Tensor] | None = None,
) -> tuple[_Tensor, _Tensor]: ...  # fmt: skip
@overload
def conv_backward(
    dy: _CuPy, x: _CuPy, w: _CuPy, *,
    stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: _Outs[_CuPy] | None = None,
) -> tuple[_CuPy, _CuPy]: ...  # fmt: skip
@overload
def conv_backward(
    dy: _JAX, x: _JAX, w: _JAX, *,
    stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: None = None,
) -> tuple[_JAX, _JAX]: ...  # fmt: skip
@overload
def conv_transpose_backward(
    dy: NDArray[_Scalar], x: NDArray[_Scalar], w: NDArray[_Scalar], *,
    stride: PerAxis = 1, padding: Padding = 0, output_padding: PerAxis | None = None, output_shape: Shape | None = None,
    dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: _Outs[NDArray[_Scalar]] | None = None,
) -> tuple[NDArray[_Scalar], NDArray[_Scalar]]: ...  # fmt: skip
@overload
def conv_transpose_backward(
    dy: _Tensor, x: _Tensor, w: _Tensor, *,
    stride: PerAxis = 1, padding: Padding = 0, output_padding: PerAxis | None = None, output_shape: Shape | None = None,
    dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: _Outs[_Tensor] | None = None,
) -> tuple[_Tensor, _Tensor]: ...  # fmt: skip
@overload
def conv_transpose_backward(
    dy: _CuPy, x: _CuPy, w: _CuPy, *,
    stride: PerAxis = 1, padding: Padding = 0, output_padding: PerAxis | None = None, output_shape: Shape | None = None,
    dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: _Outs[_CuPy] | None = None,
) -> tuple[_CuPy, _CuPy]: ...  # fmt: skip
@overload
def conv_transpose_backward(
    dy: _JAX, x: _JAX, w: _JAX, *,
    stride: PerAxis = 1, padding: Padding = 0, output_padding: PerAxis | None = None, output_shape: Shape | None = None,
    dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: None = None,
) -> tuple[_JAX, _JAX]: ...  # fmt: skip
