"""Convolution, transposed convolution and their gradients for arrays of NumPy, CuPy, PyTorch and JAX."""

from .api import conv as conv
from .api import conv_backward as conv_backward
from .api import conv_backward_data as conv_backward_data
from .api import conv_backward_filter as conv_backward_filter
from .api import conv_transpose as conv_transpose
from .api import conv_transpose_backward as conv_transpose_backward
from .api import conv_transpose_backward_data as conv_transpose_backward_data
from .api import conv_transpose_backward_filter as conv_transpose_backward_filter
from .explanation import explain as explain
from .settings.algorithm import get_default_algorithm as get_default_algorithm
from .settings.algorithm import set_default_algorithm as set_default_algorithm
from .settings.scratch import get_scratch_limit as get_scratch_limit
from .settings.scratch import set_scratch_limit as set_scratch_limit
from .settings.threads import get_num_threads as get_num_threads
from .settings.threads import num_threads as num_threads
from .settings.threads import set_num_threads as set_num_threads

__all__ = [
    "__version__",
    "conv",
    "conv_backward",
    "conv_backward_data",
    "conv_backward_filter",
    "conv_transpose",
    "conv_transpose_backward",
    "conv_transpose_backward_data",
    "conv_transpose_backward_filter",
    "explain",
    "get_default_algorithm",
    "get_num_threads",
    "get_scratch_limit",
    "num_threads",
    "set_default_algorithm",
    "set_num_threads",
    "set_scratch_limit",
]

__version__ = "0.1.0"


def __dir__() -> list[str]:
    """The public names, and the public modules that have been imported."""
    return [*__all__, *({"dask", "jax", "shims", "torch", "typing"} & globals().keys())]
