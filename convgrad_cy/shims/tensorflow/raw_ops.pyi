from collections.abc import Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...typing import CuPyArray, Shape

__all__ = ["Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput"]

_Scalar = TypeVar("_Scalar", bound=np.generic)
_CuPy = TypeVar("_CuPy", bound=CuPyArray)

def __dir__() -> list[str]: ...
@overload
def Conv2D(
    *,
    input: NDArray[_Scalar],
    filter: ArrayLike,
    strides: Sequence[int],
    padding: Literal["SAME", "VALID", "EXPLICIT"],
    use_cudnn_on_gpu: bool | None = True,
    explicit_paddings: Sequence[int] | None = [],
    data_format: Literal["NHWC", "NCHW"] | None = "NHWC",
    dilations: Sequence[int] | None = [1, 1, 1, 1],
    name: object = None,
) -> NDArray[_Scalar]: ...
@overload
def Conv2D(
    *,
    input: _CuPy,
    filter: _CuPy,
    strides: Sequence[int],
    padding: Literal["SAME", "VALID", "EXPLICIT"],
    use_cudnn_on_gpu: bool | None = True,
    explicit_paddings: Sequence[int] | None = [],
    data_format: Literal["NHWC", "NCHW"] | None = "NHWC",
    dilations: Sequence[int] | None = [1, 1, 1, 1],
    name: object = None,
) -> _CuPy: ...
@overload
def Conv2D(
    *,
    input: ArrayLike,
    filter: ArrayLike,
    strides: Sequence[int],
    padding: Literal["SAME", "VALID", "EXPLICIT"],
    use_cudnn_on_gpu: bool | None = True,
    explicit_paddings: Sequence[int] | None = [],
    data_format: Literal["NHWC", "NCHW"] | None = "NHWC",
    dilations: Sequence[int] | None = [1, 1, 1, 1],
    name: object = None,
) -> NDArray[Any]: ...
@overload
def Conv2DBackpropInput(
    *,
    input_sizes: Shape,
    filter: NDArray[_Scalar],
    out_backprop: ArrayLike,
    strides: Sequence[int],
    padding: Literal["SAME", "VALID", "EXPLICIT"],
    use_cudnn_on_gpu: bool | None = True,
    explicit_paddings: Sequence[int] | None = [],
    data_format: Literal["NHWC", "NCHW"] | None = "NHWC",
    dilations: Sequence[int] | None = [1, 1, 1, 1],
    name: object = None,
) -> NDArray[_Scalar]: ...
@overload
def Conv2DBackpropInput(
    *,
    input_sizes: Shape,
    filter: _CuPy,
    out_backprop: _CuPy,
    strides: Sequence[int],
    padding: Literal["SAME", "VALID", "EXPLICIT"],
    use_cudnn_on_gpu: bool | None = True,
    explicit_paddings: Sequence[int] | None = [],
    data_format: Literal["NHWC", "NCHW"] | None = "NHWC",
    dilations: Sequence[int] | None = [1, 1, 1, 1],
    name: object = None,
) -> _CuPy: ...
@overload
def Conv2DBackpropInput(
    *,
    input_sizes: Shape,
    filter: ArrayLike,
    out_backprop: ArrayLike,
    strides: Sequence[int],
    padding: Literal["SAME", "VALID", "EXPLICIT"],
    use_cudnn_on_gpu: bool | None = True,
    explicit_paddings: Sequence[int] | None = [],
    data_format: Literal["NHWC", "NCHW"] | None = "NHWC",
    dilations: Sequence[int] | None = [1, 1, 1, 1],
    name: object = None,
) -> NDArray[Any]: ...
@overload
def Conv2DBackpropFilter(
    *,
    input: NDArray[_Scalar],
    filter_sizes: Shape,
    out_backprop: ArrayLike,
    strides: Sequence[int],
    padding: Literal["SAME", "VALID", "EXPLICIT"],
    use_cudnn_on_gpu: bool | None = True,
    explicit_paddings: Sequence[int] | None = [],
    data_format: Literal["NHWC", "NCHW"] | None = "NHWC",
    dilations: Sequence[int] | None = [1, 1, 1, 1],
    name: object = None,
) -> NDArray[_Scalar]: ...
@overload
def Conv2DBackpropFilter(
    *,
    input: _CuPy,
    filter_sizes: Shape,
    out_backprop: _CuPy,
    strides: Sequence[int],
    padding: Literal["SAME", "VALID", "EXPLICIT"],
    use_cudnn_on_gpu: bool | None = True,
    explicit_paddings: Sequence[int] | None = [],
    data_format: Literal["NHWC", "NCHW"] | None = "NHWC",
    dilations: Sequence[int] | None = [1, 1, 1, 1],
    name: object = None,
) -> _CuPy: ...
@overload
def Conv2DBackpropFilter(
    *,
    input: ArrayLike,
    filter_sizes: Shape,
    out_backprop: ArrayLike,
    strides: Sequence[int],
    padding: Literal["SAME", "VALID", "EXPLICIT"],
    use_cudnn_on_gpu: bool | None = True,
    explicit_paddings: Sequence[int] | None = [],
    data_format: Literal["NHWC", "NCHW"] | None = "NHWC",
    dilations: Sequence[int] | None = [1, 1, 1, 1],
    name: object = None,
) -> NDArray[Any]: ...
