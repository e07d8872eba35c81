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

@overload
def conv(
    x: NDArray[_Scalar], w: NDArray[_Scalar], *,
    stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: NDArray[_Scalar] | None = None,
) -> NDArray[_Scalar]: ...  # fmt: skip
@overload
def conv(
    x: _Tensor, w: _Tensor, *,
    stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: _Tensor | None = None,
) -> _Tensor: ...  # fmt: skip
@overload
def conv(
    x: _CuPy, w: _CuPy, *,
    stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: _CuPy | None = None,
) -> _CuPy: ...  # fmt: skip
@overload
def conv(
    x: _JAX, w: _JAX, *,
    stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: None = None,
) -> _JAX: ...  # fmt: skip
@overload
def conv_backward_data(
    dy: NDArray[_Scalar], w: NDArray[_Scalar], x_shape: Shape, *,
    stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: NDArray[_Scalar] | None = None,
) -> NDArray[_Scalar]: ...  # fmt: skip
@overload
def conv_backward_data(
    dy: _Tensor, w: _Tensor, x_shape: Shape, *,
    stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: _Tensor | None = None,
) -> _Tensor: ...  # fmt: skip
@overload
def conv_backward_data(
    dy: _CuPy, w: _CuPy, x_shape: Shape, *,
    stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: _CuPy | None = None,
) -> _CuPy: ...  # fmt: skip
@overload
def conv_backward_data(
    dy: _JAX, w: _JAX, x_shape: Shape, *,
    stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: None = None,
) -> _JAX: ...  # fmt: skip
@overload
def conv_backward_filter(
    x: NDArray[_Scalar], dy: NDArray[_Scalar], w_shape: Shape, *,
    stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: NDArray[_Scalar] | None = None,
) -> NDArray[_Scalar]: ...  # fmt: skip
@overload
def conv_backward_filter(
    x: _Tensor, dy: _Tensor, w_shape: Shape, *,
    stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: _Tensor | None = None,
) -> _Tensor: ...  # fmt: skip
@overload
def conv_backward_filter(
    x: _CuPy, dy: _CuPy, w_shape: Shape, *,
    stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: _CuPy | None = None,
) -> _CuPy: ...  # fmt: skip
@overload
def conv_backward_filter(
    x: _JAX, dy: _JAX, w_shape: Shape, *,
    stride: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1, groups: SupportsIndex = 1,
    data_format: DataFormat = "NCX", filter_format: FilterFormat = "OIX", algorithm: Algorithm | None = None,
    precision: Precision = "high", out: None = None,
) -> _JAX: ...  # fmt: skip
