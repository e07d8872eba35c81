from typing import Any, Literal, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Required, TypedDict

from ...typing import CuPyArray, Shape

_Scalar = TypeVar("_Scalar", bound=np.generic)
_CuPy = TypeVar("_CuPy", bound=CuPyArray)

class _Attributes(TypedDict, total=False):
    strides: Required[Shape]
    pads_begin: Shape
    pads_end: Shape
    dilations: Required[Shape]
    auto_pad: Literal["none", "valid", "same_upper", "same_lower", "None", "VALID", "SAME_UPPER", "SAME_LOWER"]
    groups: int
    data_format: Literal["NXC", "NCX"]

class Operation:
    attributes: dict[str, Any]
    values: dict[str, Any]
    def __init__(self, **attributes: Any) -> None: ...
    @overload
    def __call__(
        self, first: NDArray[_Scalar], second: NDArray[_Scalar], shape: NDArray[np.int32] | None = ..., /
    ) -> NDArray[_Scalar]: ...
    @overload
    def __call__(self, first: _CuPy, second: _CuPy, shape: NDArray[np.int32] | _CuPy | None = ..., /) -> _CuPy: ...
