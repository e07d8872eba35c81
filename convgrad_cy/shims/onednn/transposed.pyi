from typing import Literal, final

from typing_extensions import Unpack

from ...typing import Shape
from .operations import Operation, _Attributes  # pyright: ignore[reportPrivateUsage]

class _BackpropFilters(_Attributes, total=False):
    filter_format: Literal["XIO", "OIX"]
    output_padding: Shape
    filter_shape: Shape

class _Transposed(_Attributes, total=False):
    weights_format: Literal["XOI", "IOX"]

class _ConvTranspose(_Transposed, total=False):
    output_padding: Shape

class _TransposedWeights(_Transposed, total=False):
    output_padding: Shape
    weights_shape: Shape

@final
class ConvTransposeBackpropFilters(Operation):
    def __init__(self, **attributes: Unpack[_BackpropFilters]) -> None: ...

@final
class ConvTranspose(Operation):
    def __init__(self, **attributes: Unpack[_ConvTranspose]) -> None: ...

@final
class ConvTransposeBackwardData(Operation):
    def __init__(self, **attributes: Unpack[_Transposed]) -> None: ...

@final
class ConvTransposeBackwardWeights(Operation):
    def __init__(self, **attributes: Unpack[_TransposedWeights]) -> None: ...
