"""The GPU backend: CUDA kernels for CuPy arrays. Its import needs neither CuPy nor CUDA."""

from ..problem import DGRAD
from .families import family_of as family_of
from .families import plan
from .plan import task_of as task_of
from .work import Work
from .work import device_of as device_of


def prepare(parts, arrays, device):
    """The `Work` of a call that writes x (DGRAD), y (FPROP) or w (WGRAD) in each of its parts.

    Each part has an operation, its geometry, the indices of x, w and y among the call's arrays, and NumPy views of
    these three with six axes. No result is empty. ``arrays`` is the number of the call's arrays. The work runs on any
    arrays with the same layout and alignment.
    """
    planned = []
    for operation, geometry, places, tensors in parts:
        views = [(tensor.shape, tensor.strides, tensor.ctypes.data) for tensor in tensors]
        task = task_of(operation, geometry.problem, geometry.dtype, geometry.precision, views, device_of(device))
        planned.append((plan(task), places[::-1] if operation == DGRAD else places))
    return Work(planned, arrays, device)
