"""The GPU backend: CUDA kernels for CuPy arrays. Importing it imports neither CuPy nor anything of CUDA."""

from ..problem import DGRAD
from .families import family_of as family_of
from .families import plan
from .plan import task_of as task_of
from .work import Work
from .work import device_of as device_of


def prepare(parts, arrays, device):
    """How to write x (DGRAD), y (FPROP) or w (WGRAD), none of which is empty, for arrays that lie in memory like these.

    Each part is an operation, its geometry, the places of x, w and y among the call's ``arrays``, of which there are so
    many, and the six-dimensional views of these three, as NumPy sees them.
    """
    planned = []
    for operation, geometry, places, tensors in parts:
        views = [(tensor.shape, tensor.strides, tensor.ctypes.data) for tensor in tensors]
        task = task_of(operation, geometry.problem, geometry.dtype, geometry.precision, views, device_of(device))
        planned.append((plan(task), places[::-1] if operation == DGRAD else places))
    return Work(planned, arrays, device)
