"""The GPU backend: CUDA kernels for CuPy arrays. Its import needs neither CuPy nor CUDA."""

from ..problem import DGRAD
from .families import family_of as family_of
from .families import plan
from .plan import ALIGNMENT
from .plan import task_of as task_of
from .tensor_map import Encoder
from .work import Work
from .work import device_of as device_of
from .work import release_captured as release_captured


def _accepted_plan(task, addresses):
    """The plan of a task whose operands have these addresses. It is without TMA if the driver refuses a tensor map."""
    whole = plan(task)
    # The driver looks at alignment only. An operand that is not aligned is packed into a workspace, which is.
    every = [address - address % ALIGNMENT for address in addresses]
    every += every[:1] * len(whole.workspaces)
    if any(
        Encoder(launch.maps).refuses([every[number] for number in launch.pointers])
        for launch in whole.launches
        if launch.maps
    ):
        return plan(task._replace(device=task.device._replace(engine=False)))
    return whole


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
        addresses = [tensor.ctypes.data for tensor in (tensors[::-1] if operation == DGRAD else tensors)]
        planned.append((_accepted_plan(task, addresses), places[::-1] if operation == DGRAD else places))
    return Work(planned, arrays, device)
