"""oneDNN Graph's convolutions and their gradients on NumPy arrays.

An operation is constructed with its attributes, by name, and called with its tensors, by position. Attributes,
defaults, layouts and statuses follow oneDNN; ``docs/golden-model.md`` lists the differences. The two first operations
have names of oneDNN Graph 0.7, the others have names of oneDNN v3.
"""

from .attributes import GraphError, GraphTypeError, GraphValueError
from .convolution import (
    Convolution,
    ConvolutionBackpropData,
    ConvolutionBackwardData,
    ConvolutionBackwardWeights,
)
from .transposed import (
    ConvTranspose,
    ConvTransposeBackpropFilters,
    ConvTransposeBackwardData,
    ConvTransposeBackwardWeights,
)

__all__ = [
    "ConvTranspose",
    "ConvTransposeBackpropFilters",
    "ConvTransposeBackwardData",
    "ConvTransposeBackwardWeights",
    "Convolution",
    "ConvolutionBackpropData",
    "ConvolutionBackwardData",
    "ConvolutionBackwardWeights",
    "GraphError",
    "GraphTypeError",
    "GraphValueError",
]


def __dir__() -> list[str]:
    return __all__
