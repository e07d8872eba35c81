from typing import Literal, final

from typing_extensions import Unpack

from ...typing import Shape
from .operations import Operation, _Attributes  # pyright: ignore[reportPrivateUsage]

class _BackpropData(_Attributes, total=False):
    filter_format: Literal["XIO", "OIX"]
    output_padding: Shape
    output_shape: Shape

class _Convolution(_Attributes, total=False):
    weights_format: Literal["XIO", "OIX"]

class _BackwardData(_Convolution, total=False):
    output_padding: Shape
    dst_shape: Shape

class _BackwardWeights(_Convolution, total=False):
    weights_shape: Shape

@final
class ConvolutionBackpropData(Operation):
    def __init__(self, **attributes: Unpack[_BackpropData]) -> None: ...

@final
class Convolution(Operation):
    def __init__(self, **attributes: Unpack[_Convolution]) -> None: ...

@final
class ConvolutionBackwardData(Operation):
    def __init__(self, **attributes: Unpack[_BackwardData]) -> None: ...

@final
class ConvolutionBackwardWeights(Operation):
    def __init__(self, **attributes: Unpack[_BackwardWeights]) -> None: ...
